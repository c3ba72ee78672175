//! What is on one GPU, and what putting something more on it does.

use alloc::string::String;
use alloc::vec::Vec;

use super::kind::{Kind, cells_of};
use super::{Rule, device};
use crate::catalog::{ComputeProfile, Profile};
use crate::fleet::{Mode, SpaceKind};

/// A lease, by position in what holds it, and its member.
pub(super) type Owner = (usize, u32);

/// What is on a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum On {
    Grid(Vec<Piece>),
    Shares { share: usize, taken: u16 },
    Fluid { whole: bool, milli: u32, mib: u64, users: u32 },
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    pub(super) start: u16,
    pub(super) profile: usize,
    pub(super) hold: Hold,
    /// Whose it is; none for an instance found on the device.
    pub(super) owner: Option<Owner>,
    /// Its position among the instances that the document lists.
    pub(super) listed: Option<usize>,
}

/// Who uses an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hold {
    Idle,
    Busy,
    Shared(Vec<Inner>),
}

/// A compute instance that is used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inner {
    pub(super) start: u16,
    pub(super) profile: usize,
    pub(super) owner: Option<Owner>,
}

/// Something of one GPU, with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Whole,
    Instance { profile: usize, start: u16 },
    Compute { profile: usize, start: u16, inner: usize, inner_start: u16 },
    Share(usize),
    Fraction { milli: u16, mib: u32, users: u16 },
}

/// Why something cannot be put.
pub(super) type Refused = (Rule, String);

fn no<T>(rule: Rule, text: impl Into<String>) -> Result<T, Refused> {
    Err((rule, text.into()))
}

impl On {
    /// An unused GPU.
    pub(super) fn empty(mode: Mode) -> Self {
        match mode.space() {
            SpaceKind::Grid => Self::Grid(Vec::new()),
            SpaceKind::Uniform => Self::Shares { share: 0, taken: 0 },
            SpaceKind::Fluid => Self::Fluid { whole: false, milli: 0, mib: 0, users: 0 },
        }
    }

    /// Whether nothing uses it; idle instances may be there.
    pub(super) fn is_unused(&self) -> bool {
        match self {
            Self::Grid(pieces) => pieces.iter().all(|p| p.hold == Hold::Idle),
            Self::Shares { taken, .. } => *taken == 0,
            Self::Fluid { whole, users, .. } => !*whole && *users == 0,
        }
    }

    /// The same without idle instances and owners, for comparing and grouping.
    pub(super) fn used(&self) -> Self {
        match self {
            Self::Grid(pieces) => {
                let bare = |i: &Inner| Inner { owner: None, ..i.clone() };
                let mut used: Vec<Piece> = pieces
                    .iter()
                    .filter(|p| p.hold != Hold::Idle)
                    .map(|p| Piece {
                        start: p.start,
                        profile: p.profile,
                        hold: p.hold.clone(),
                        owner: None,
                        listed: None,
                    })
                    .collect();
                for piece in &mut used {
                    if let Hold::Shared(inside) = &mut piece.hold {
                        *inside = inside.iter().map(bare).collect();
                        inside.sort();
                    }
                }
                used.sort();
                Self::Grid(used)
            }
            Self::Shares { taken: 0, .. } => Self::Shares { share: 0, taken: 0 },
            other => other.clone(),
        }
    }

    /// Puts something new on the GPU; idle instances in its way go and are returned. The
    /// limits of the GPU as a whole are left to [`On::check_used`].
    pub(super) fn put(&mut self, kind: &Kind<'_>, place: Place, owner: Option<Owner>) -> Result<Vec<Piece>, Refused> {
        match (self, place) {
            (Self::Grid(pieces), Place::Instance { profile, start }) => {
                put_piece(pieces, kind, profile, start, Hold::Busy, owner)
            }
            (Self::Grid(pieces), Place::Compute { profile, start, inner, inner_start }) => {
                let Some(facts) = kind.compute(profile, inner) else {
                    return no(Rule::Unknown, "no such compute profile");
                };
                let entry = Inner { start: inner_start, profile: inner, owner };
                let host = pieces.iter_mut().find(|p| p.start == start && p.profile == profile);
                if let Some(Piece { hold: Hold::Shared(inside), .. }) = host {
                    check_inner(kind, profile, inside, facts, inner_start)?;
                    inside.push(entry);
                    return Ok(Vec::new());
                }
                check_inner(kind, profile, &[], facts, inner_start)?;
                put_piece(pieces, kind, profile, start, Hold::Shared(Vec::from([entry])), None)
            }
            (Self::Shares { share, taken }, Place::Share(asked)) => {
                let most = kind.shares.get(asked).map_or(0, |t| t.max_per_gpu);
                if *taken > 0 && !kind.is_one_size(*share, asked) {
                    return no(Rule::Overlap, "the GPU holds shares of another size");
                }
                if *taken >= most {
                    return no(Rule::Amount, alloc::format!("all {most} shares are taken"));
                }
                (*share, *taken) = (asked, *taken + 1);
                Ok(Vec::new())
            }
            (Self::Fluid { .. }, Place::Whole) if kind.mode != Mode::Whole => {
                no(Rule::NotOffered, alloc::format!("a GPU in mode `{}` is not given whole", kind.mode.name()))
            }
            (Self::Fluid { whole, users, .. }, Place::Whole) => {
                if *whole || *users > 0 {
                    return no(Rule::Overlap, "the GPU is in use");
                }
                *whole = true;
                Ok(Vec::new())
            }
            (Self::Fluid { whole, milli, mib, users }, Place::Fraction { milli: m, mib: b, users: n }) => {
                if *whole {
                    return no(Rule::Overlap, "the GPU is in use as a whole");
                }
                if *users + u32::from(n) > u32::from(kind.amounts.users) {
                    let most = kind.amounts.users;
                    return no(Rule::Amount, alloc::format!("{n} clients beside {users} of {most} are too many"));
                }
                if *milli + u32::from(m) > u32::from(kind.amounts.compute) {
                    return no(Rule::Amount, alloc::format!("{m} milli-GPU beside {milli} are too many"));
                }
                let total = u64::from(kind.memory_mib.unwrap_or(0));
                if b > 0 && *mib + u64::from(b) > total {
                    return no(Rule::Amount, alloc::format!("{b} MiB beside {mib} of {total} MiB are too many"));
                }
                (*milli, *mib, *users) = (*milli + u32::from(m), *mib + u64::from(b), *users + u32::from(n));
                Ok(Vec::new())
            }
            _ => no(Rule::NotOffered, alloc::format!("a GPU in mode `{}` has no such part", kind.mode.name())),
        }
    }

    /// The limits of the GPU over what is used; idle instances can go.
    pub(super) fn check_used(&self, kind: &Kind<'_>) -> Result<(), Refused> {
        self.check(kind, |p| p.hold != Hold::Idle)
    }

    /// The limits of the GPU over everything that is there.
    pub(super) fn check_all(&self, kind: &Kind<'_>) -> Result<(), Refused> {
        self.check(kind, |_| true)
    }

    fn check(&self, kind: &Kind<'_>, counts: impl Fn(&Piece) -> bool) -> Result<(), Refused> {
        let Self::Grid(pieces) = self else { return Ok(()) };
        let there: Vec<(usize, u16)> = pieces.iter().filter(|p| counts(p)).map(|p| (p.profile, p.start)).collect();
        device::check(kind.model, kind.profiles, kind.driver, kind.max_instances, &there).map_err(|v| (v.rule, v.text))
    }
}

/// Whether a run of cells meets a piece.
pub(super) fn overlaps(kind: &Kind<'_>, piece: &Piece, start: u16, size: u16) -> bool {
    let own = kind.profile(piece.profile).map_or(0, cells_of);
    u32::from(piece.start) < u32::from(start) + u32::from(size)
        && u32::from(start) < u32::from(piece.start) + u32::from(own)
}

fn put_piece(
    pieces: &mut Vec<Piece>,
    kind: &Kind<'_>,
    profile: usize,
    start: u16,
    hold: Hold,
    owner: Option<Owner>,
) -> Result<Vec<Piece>, Refused> {
    let Some(facts) = kind.profile(profile) else { return no(Rule::Unknown, "no such profile") };
    if !facts.placements.as_ref().is_some_and(|p| p.starts.contains(&start)) {
        return no(Rule::Start, alloc::format!("`{}` cannot start at {start}", facts.name));
    }
    let size = cells_of(facts);
    if let Some(hit) = pieces.iter().find(|p| p.hold != Hold::Idle && overlaps(kind, p, start, size)) {
        let text = alloc::format!("`{}` at {start} meets `{}` at {}", facts.name, kind.name(hit.profile), hit.start);
        return no(Rule::Overlap, text);
    }
    if let Some(same) = pieces.iter_mut().find(|p| p.start == start && p.profile == profile) {
        (same.hold, same.owner) = (hold, owner);
        return Ok(Vec::new());
    }
    let (gone, mut kept): (Vec<Piece>, Vec<Piece>) =
        core::mem::take(pieces).into_iter().partition(|p| overlaps(kind, p, start, size));
    kept.push(Piece { start, profile, hold, owner, listed: None });
    *pieces = kept;
    Ok(gone)
}

/// Whether one more compute instance is legal inside an instance that holds these.
pub(super) fn check_inner(
    kind: &Kind<'_>,
    profile: usize,
    inside: &[Inner],
    facts: &ComputeProfile,
    start: u16,
) -> Result<(), Refused> {
    let places = |facts: &ComputeProfile| facts.placements.as_ref().map_or(facts.compute_slices, |p| p.size);
    if !facts.placements.as_ref().is_some_and(|p| p.starts.contains(&start)) {
        return no(Rule::Start, alloc::format!("`{}` cannot start at {start}", facts.name));
    }
    let slices = kind.profile(profile).map_or(0, Profile::cells_inside);
    if u32::from(start) + u32::from(places(facts)) > u32::from(slices) {
        return no(Rule::ComputeSlices, alloc::format!("`{}` at {start} passes {slices} slices", facts.name));
    }
    let mut alike = 0;
    for other in inside {
        let Some(beside) = kind.compute(profile, other.profile) else { continue };
        if u32::from(other.start) < u32::from(start) + u32::from(places(facts))
            && u32::from(start) < u32::from(other.start) + u32::from(places(beside))
        {
            return no(Rule::Overlap, alloc::format!("`{}` at {start} meets `{}`", facts.name, beside.name));
        }
        alike += u32::from(beside.name == facts.name);
    }
    if facts.max_instances.is_some_and(|max| alike >= u32::from(max)) {
        return no(Rule::MaxInstances, alloc::format!("one more `{}` than its instance allows", facts.name));
    }
    Ok(())
}
