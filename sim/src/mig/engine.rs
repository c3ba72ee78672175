//! The product: requests go through [`Engine::decide`] and [`Engine::commit`], and leave by
//! [`Engine::release`].

use slicewise::fleet::Mode;
use slicewise::{Budget, Decision, Engine, Gpu, Node, Policy, State, Verdict, Workload};

use super::replay::{Admission, Placer, ReplayError};
use super::stream::{Request, Stream};

/// Places looked at for one request: what moves of one displacement each need, and little
/// of the search for chains of them.
const WORK_MAX: u64 = 1_000;

/// An engine that is asked for each request.
#[derive(Clone, Debug)]
pub struct Product<'a> {
    engine: Engine,
    stream: &'a Stream,
    last: Option<(Workload, Decision)>,
}

impl<'a> Product<'a> {
    /// An engine with so many empty GPUs of the stream's model on one node.
    ///
    /// # Errors
    /// A policy that the fleet refuses.
    pub fn new(stream: &'a Stream, gpus: usize, policy: Policy) -> Result<Self, ReplayError> {
        let gpu = |index| Gpu { index: Some(index), model: stream.model.clone(), mode: Mode::Mig, ..Gpu::default() };
        let gpus = (0..u32::try_from(gpus).unwrap_or(u32::MAX)).map(gpu).collect();
        let node = Node { name: "node".into(), gpus, ..Node::default() };
        let state = State { nodes: vec![node], ..State::default() };
        let engine = Engine::builder().policy(policy).build(&state);
        let engine = engine.map_err(|error| ReplayError::Engine { step: 0, error })?;
        Ok(Self { engine, stream, last: None })
    }
}

impl Placer for Product<'_> {
    fn decide(&mut self, step: usize, request: &Request, moves_left: u64) -> Result<Admission, ReplayError> {
        let moves = Budget::default().moves.min(u32::try_from(moves_left).unwrap_or(u32::MAX));
        let request = Workload {
            name: step.to_string(),
            count: 1,
            profile: Some(self.stream.grid.rows()[request.profile].name.clone()),
            allow_moves: moves > 0,
            ..Workload::default()
        };
        let decided = self.engine.decide_within(&request, Budget { moves, work: WORK_MAX });
        let decision = decided.map_err(|error| ReplayError::Engine { step, error })?;
        let moves = decision.moves.len() as u32;
        match decision.verdict {
            Verdict::Admit => self.last = Some((request, decision)),
            Verdict::Undecided => return Ok(Admission::Undecided),
            Verdict::Reject | Verdict::Wait => return Ok(Admission::Refused),
        }
        Ok(Admission::Admitted { moves })
    }

    fn apply(&mut self, step: usize) -> Result<(), ReplayError> {
        let Some((request, decision)) = self.last.take() else { return Ok(()) };
        let committed = self.engine.commit(&request, &decision);
        committed.map(drop).map_err(|error| ReplayError::Engine { step, error })
    }

    fn release(&mut self, step: usize) -> Result<(), ReplayError> {
        let released = self.engine.release(&step.to_string());
        released.map(drop).map_err(|error| ReplayError::Engine { step, error })
    }
}
