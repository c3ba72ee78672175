//! The ledger as a state machine: whatever is done in whatever order, the state passes the
//! checker, reloads to itself, and decides after a reload as before.
#![expect(clippy::unwrap_used, reason = "a test stops at whatever is not as expected")]

use proptest::prelude::*;
use slicewise_core::catalog::Catalog;
use slicewise_core::decision::{Decision, Verdict};
use slicewise_core::fleet::State;
use slicewise_core::ledger::{CommitError, Committed, Ledger};
use slicewise_core::place::{Budget, Policy, decide};
use slicewise_core::verify;
use slicewise_core::workload::Workload;
use slicewise_tests::dice::{Dice, cases};
use slicewise_tests::fleets::{fleet, policy, request};

fn catalog() -> Catalog {
    Catalog::built_in().unwrap()
}

fn content(ledger: &Ledger) -> String {
    serde_json::to_string(&State { version: 0, ..ledger.snapshot() }).unwrap()
}

fn answer(ledger: &Ledger, workload: &Workload) -> Decision {
    decide(ledger, workload, Budget::default()).unwrap()
}

struct Machine {
    ledger: Ledger,
    policy: Policy,
    /// Changes that can be taken back, with the content before each.
    done: Vec<(Committed, String)>,
    /// Decisions that wait for their commit.
    held: Vec<(Workload, Decision)>,
    next: usize,
}

impl Machine {
    fn act(&mut self, dice: &mut Dice) -> Result<(), TestCaseError> {
        let version = self.ledger.version();
        let before = content(&self.ledger);
        match dice.roll(10) {
            0..=3 => {
                let workload = self.request(dice);
                let decision = answer(&self.ledger, &workload);
                let state = self.ledger.snapshot();
                let checked = verify::decision(&catalog(), &state, &workload, &decision, false);
                prop_assert!(
                    checked.is_ok(),
                    "{} on {}: {}",
                    serde_json::to_string(&workload).unwrap(),
                    before,
                    checked.unwrap_err()
                );
                if decision.verdict == Verdict::Admit {
                    let made = self.ledger.commit(&workload, &decision).unwrap();
                    self.done.push((made, before));
                }
            }
            4 => {
                let workload = self.request(dice);
                let decision = answer(&self.ledger, &workload);
                if decision.verdict == Verdict::Admit {
                    self.held.push((workload, decision));
                }
            }
            // What was decided earlier: it commits to a legal state, or is refused and
            // changes nothing.
            5 => {
                if let Some((workload, decision)) = self.held.pop() {
                    match self.ledger.commit(&workload, &decision) {
                        Ok(made) => self.done.push((made, before)),
                        Err(CommitError::Conflict { .. }) => prop_assert_eq!(content(&self.ledger), before),
                        Err(other) => prop_assert!(false, "{}", other),
                    }
                }
            }
            6 => {
                let names: Vec<String> = self.ledger.leases().map(|(_, l)| l.name.clone()).collect();
                if let Some(name) = dice.pick(&names) {
                    self.ledger.release(&name).unwrap();
                    // What is left of the record says nothing of the content before it.
                    self.done.clear();
                }
            }
            7 | 8 => {
                if let Some((made, content_before)) = self.done.pop() {
                    match self.ledger.undo(&made) {
                        Ok(_) => prop_assert_eq!(content(&self.ledger), content_before, "undo"),
                        Err(CommitError::UndoBlocked(_)) => {
                            prop_assert_eq!(content(&self.ledger), before);
                            self.done.clear();
                        }
                        Err(other) => prop_assert!(false, "{}", other),
                    }
                }
            }
            _ => {
                let gpus: Vec<_> = self.ledger.gpus().ids().collect();
                // A node's cordon is not in the snapshot: see `known_issues`.
                self.ledger.set_gpu_cordon(dice.pick(&gpus).unwrap(), dice.once_in(2));
                self.done.clear();
            }
        }
        prop_assert!(self.ledger.version() >= version, "versions only grow");
        let state = self.ledger.snapshot();
        let checked = verify::state(&catalog(), &state);
        prop_assert!(checked.is_ok(), "{}: {}", content(&self.ledger), checked.unwrap_err());
        Ok(())
    }

    fn request(&mut self, dice: &mut Dice) -> Workload {
        self.next += 1;
        request(dice, &format!("w{}", self.next), 2)
    }

    /// The same from its snapshot.
    fn reload(&self, dice: &mut Dice) -> Result<(), TestCaseError> {
        let state = self.ledger.snapshot();
        let again = Ledger::new(catalog(), self.policy.clone(), &state).unwrap();
        prop_assert_eq!(
            serde_json::to_string(&again.snapshot()).unwrap(),
            serde_json::to_string(&state).unwrap(),
            "a reload is another state"
        );
        for i in 0..3 {
            let workload = request(dice, &format!("later{i}"), 2);
            let (a, b) = (answer(&again, &workload), answer(&self.ledger, &workload));
            prop_assert_eq!(
                serde_json::to_string(&a).unwrap(),
                serde_json::to_string(&b).unwrap(),
                "after a reload: {} on {}",
                serde_json::to_string(&workload).unwrap(),
                content(&self.ledger)
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(80), max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_state_is_legal(tape in proptest::collection::vec(any::<u16>(), 0..400)) {
        let mut dice = Dice::new(tape);
        let policy = policy(dice.pick(&Policy::NAMES).unwrap());
        let state = fleet(&mut dice, 2, 2);
        let ledger = Ledger::new(catalog(), policy.clone(), &state).unwrap();
        let mut machine = Machine { ledger, policy, done: Vec::new(), held: Vec::new(), next: 0 };
        for _ in 0..dice.roll(14) {
            machine.act(&mut dice)?;
        }
        machine.reload(&mut dice)?;
    }
}
