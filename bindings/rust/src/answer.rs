//! Answers as every surface prints them.

use serde::Serialize;
use slicewise_core::decision::{Decision, Explanation, Remedy, Verdict};
use slicewise_core::fleet::Placement;
use slicewise_core::plan::Plan;
use slicewise_core::workload::Workload;

use crate::engine::Engine;
use crate::error::Error;

/// A decision with what would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
    /// Checked remedies, cheapest first.
    pub remedies: Vec<Remedy>,
    /// Fields of the request that cannot stay together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflict: Vec<String>,
}

impl Answer {
    /// A decision and its explanation.
    pub fn new(decision: Decision, explanation: Explanation) -> Self {
        let Explanation { conflict, remedies, .. } = explanation;
        Self { decision, remedies, conflict }
    }
}

/// The answer to one request as it is, or those to several in `decisions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Answers {
    /// The answer to the only request.
    One(Box<Answer>),
    /// The answers in the order of the requests.
    Several {
        /// The first verdict that does not admit, else `admit`.
        verdict: Verdict,
        /// One for each request.
        decisions: Vec<Answer>,
    },
}

impl Answers {
    /// The first verdict that does not admit, else `admit`.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::One(answer) => answer.decision.verdict,
            Self::Several { verdict, .. } => *verdict,
        }
    }
    /// Each answer, in the order of the requests.
    pub fn iter(&self) -> impl Iterator<Item = &Answer> {
        match self {
            Self::One(answer) => std::slice::from_ref(&**answer).iter(),
            Self::Several { decisions, .. } => decisions.iter(),
        }
    }
}

impl From<Vec<Answer>> for Answers {
    fn from(answers: Vec<Answer>) -> Self {
        match <[Answer; 1]>::try_from(answers) {
            Ok([answer]) => Self::One(Box::new(answer)),
            Err(decisions) => {
                let refused = decisions.iter().map(|a| a.decision.verdict).find(|v| *v != Verdict::Admit);
                Self::Several { verdict: refused.unwrap_or(Verdict::Admit), decisions }
            }
        }
    }
}

/// The explanation of one request as it is, or those of several in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Explanations {
    /// The explanation of the only request.
    One(Box<Explanation>),
    /// One for each request, in their order.
    Several(Vec<Explanation>),
}

impl From<Vec<Explanation>> for Explanations {
    fn from(explanations: Vec<Explanation>) -> Self {
        match <[Explanation; 1]>::try_from(explanations) {
            Ok([one]) => Self::One(Box::new(one)),
            Err(several) => Self::Several(several),
        }
    }
}

impl Engine {
    /// Decides requests and says what would help, each on the state that the ones before it
    /// leave. The engine itself is not changed; for more than one request a copy is made.
    ///
    /// # Errors
    /// A request that is not well formed.
    pub fn answer(&self, requests: &[Workload]) -> Result<Answers, Error> {
        if let [request] = requests {
            return Ok(Answers::One(Box::new(Answer::new(self.decide(request)?, self.explain(request)?))));
        }
        let mut copy = self.clone();
        let mut answers = Vec::new();
        for request in requests {
            let answer = Answer::new(copy.decide(request)?, copy.explain(request)?);
            if answer.decision.verdict == Verdict::Admit {
                copy.commit(request, &answer.decision)?;
            }
            answers.push(answer);
        }
        Ok(answers.into())
    }
}

/// A plan with its placements in one flat list besides.
#[derive(Clone, Debug, Serialize)]
pub struct PlanAnswer<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    placements: Vec<Placed<'a>>,
}

#[derive(Clone, Debug, Serialize)]
struct Placed<'a> {
    workload: &'a str,
    #[serde(flatten)]
    placement: &'a Placement,
}

impl<'a> From<&'a Plan> for PlanAnswer<'a> {
    fn from(plan: &'a Plan) -> Self {
        let of = |lease: &'a slicewise_core::fleet::Lease| {
            lease.placements.iter().map(|placement| Placed { workload: &lease.name, placement })
        };
        Self { plan, placements: plan.leases.iter().flat_map(of).collect() }
    }
}
