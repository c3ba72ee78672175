//! One decision, on fleets of a thousand to a million GPUs. Prints the number of classes
//! and the bytes of state per GPU on the way.
#![expect(clippy::print_stderr, reason = "a benchmark prints")]

mod ground;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{LazyCell, RefCell};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use slicewise_core::ledger::Ledger;
use slicewise_core::place::{Budget, decide};
use slicewise_core::workload::Workload;

use ground::Kind;

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Counts what is allocated while it is told to.
struct Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static GROWTH: AtomicI64 = AtomicI64::new(0);

fn count(bytes: usize, sign: i64) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        GROWTH.fetch_add(i64::try_from(bytes).unwrap_or(i64::MAX) * sign, Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator that hands everything on to the system's")]
// SAFETY: both functions hand their arguments on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What `make` leaves allocated.
fn measured<T>(make: impl FnOnce() -> T) -> (T, i64) {
    GROWTH.store(0, Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
    let made = make();
    IS_COUNTING.store(false, Ordering::Relaxed);
    (made, GROWTH.load(Ordering::Relaxed))
}

#[expect(clippy::expect_used, reason = "without a fleet there is nothing to measure")]
fn half_full(kind: Kind, gpus: usize) -> Ledger {
    let state = ground::empty(kind, gpus);
    let (bare, bytes) = measured(|| ground::ledger(&state).expect("a legal state"));
    // A node's name is there three times: in the record, in its document, and as a key.
    let names: usize = state.nodes.iter().map(|n| n.name.len() * 3).sum();
    drop(bare);
    let state = ground::half_full(kind, gpus);
    let leases = state.leases.len();
    let (ledger, filled) = measured(|| ground::ledger(&state).expect("a legal state"));
    let classes = ledger.index().len();
    let each = |bytes: i64, of: usize| bytes / i64::try_from(of.max(1)).unwrap_or(1);
    let own = bytes - i64::try_from(names).unwrap_or(0);
    eprintln!(
        "{}/{gpus}: {classes} classes; empty {} bytes a GPU and {} of names; {leases} leases, {} bytes each",
        kind.name(),
        each(own, gpus),
        each(bytes - own, gpus),
        each(filled - bytes, leases),
    );
    ledger
}

/// Decides a request, and commits and releases it if it is admitted.
fn come_and_go(ledger: &mut Ledger, workload: &Workload) {
    if let Ok(decision) = decide(ledger, workload, Budget::default())
        && ledger.commit(workload, &decision).is_ok()
    {
        black_box(ledger.release(&workload.name).is_ok());
    }
}

/// Takes every GPU that is empty.
fn fill_up(ledger: &mut Ledger, kind: Kind) {
    for position in 0_usize.. {
        let workload = ground::largest(kind, &format!("filler-{}-{position}", ledger.version()));
        let Ok(decision) = decide(ledger, &workload, Budget::default()) else { return };
        if ledger.commit(&workload, &decision).is_err() {
            return;
        }
    }
}

fn scenario(criterion: &mut Criterion, kind: Kind) {
    for gpus in SIZES {
        let ledger = LazyCell::new(|| RefCell::new(half_full(kind, gpus)));
        let requests = ground::requests(kind, 4_096);
        let mut group = criterion.benchmark_group(kind.name());
        group.bench_function(BenchmarkId::new("decide", gpus), |bencher| {
            let ledger = ledger.borrow();
            let mut next = requests.iter().cycle();
            bencher.iter(|| next.next().map(|w| decide(&ledger, w, Budget::default())));
        });
        group.bench_function(BenchmarkId::new("decide-commit-release", gpus), |bencher| {
            let mut ledger = ledger.borrow_mut();
            let mut next = requests.iter().cycle();
            bencher.iter(|| next.next().map(|w| come_and_go(&mut ledger, w)));
        });
        if kind == Kind::Mig {
            let pair = ground::pair();
            group.bench_function(BenchmarkId::new("decide-pair", gpus), |bencher| {
                let ledger = ledger.borrow();
                bencher.iter(|| decide(&ledger, &pair, Budget::default()));
            });
        }
        // Last, since it fills the fleet: the answer is no, with its reasons.
        group.bench_function(BenchmarkId::new("refuse", gpus), |bencher| {
            let mut ledger = ledger.borrow_mut();
            fill_up(&mut ledger, kind);
            let refused = ground::largest(kind, "refused");
            bencher.iter(|| decide(&ledger, &refused, Budget::default()));
        });
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for kind in [Kind::Mig, Kind::Fractions, Kind::MigOnUnlikeNodes] {
        scenario(&mut criterion, kind);
    }
    criterion.final_summary();
}
