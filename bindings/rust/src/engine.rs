//! The engine as programs use it.

use slicewise_core::catalog::Catalog;
use slicewise_core::decision::{Decision, Explanation, ModeChange, Step};
use slicewise_core::fleet::{Lease, State};
use slicewise_core::ledger::{Committed, Ledger};
use slicewise_core::place::{self, Budget, Policy};
use slicewise_core::plan::{Objective, Plan};
use slicewise_core::workload::Workload;
use slicewise_solver::{Backend, PlanBudget, Progress};

use crate::error::Error;

/// A fleet with what runs on it, ready to decide.
#[derive(Clone, Debug)]
pub struct Engine {
    ledger: Ledger,
    budget: Budget,
    plan_budget: PlanBudget,
    backend: Backend,
}

/// Options of an engine.
#[derive(Clone, Debug, Default)]
pub struct EngineBuilder {
    catalog: Option<Catalog>,
    policy: Policy,
    budget: Budget,
    plan_budget: PlanBudget,
    backend: Backend,
}

impl EngineBuilder {
    /// Another catalog than the built-in one.
    #[must_use]
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }
    /// How places are ranked.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }
    /// How much work one decision may do.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }
    /// How much work one plan may do.
    #[must_use]
    pub fn plan_budget(mut self, budget: PlanBudget) -> Self {
        self.plan_budget = budget;
        self
    }
    /// Who does the linear algebra of plans.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }
    /// Loads a state.
    ///
    /// # Errors
    /// A state that contradicts itself or the catalog, with the path of the field.
    pub fn build(self, state: &State) -> Result<Engine, Error> {
        let catalog = match self.catalog {
            Some(catalog) => catalog,
            None => Catalog::built_in()?,
        };
        let ledger = Ledger::new(catalog, self.policy, state)?;
        Ok(Engine { ledger, budget: self.budget, plan_budget: self.plan_budget, backend: self.backend })
    }
}

impl Engine {
    /// An engine with the built-in catalog and the default policy.
    ///
    /// # Errors
    /// See [`EngineBuilder::build`].
    pub fn new(state: &State) -> Result<Self, Error> {
        Self::builder().build(state)
    }
    /// An engine with options.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }
    /// The version of the state; each change adds one.
    pub fn version(&self) -> u64 {
        self.ledger.version()
    }
    /// The state in the engine's own form, for reading.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
    /// The state as a document.
    pub fn snapshot(&self) -> State {
        self.ledger.snapshot()
    }
    /// Decides a request; changes nothing. A placement has passed the checker.
    ///
    /// # Errors
    /// A request that is not well formed.
    pub fn decide(&self, workload: &Workload) -> Result<Decision, Error> {
        self.decide_within(workload, self.budget)
    }
    /// [`Engine::decide`] with a budget for this decision alone.
    ///
    /// # Errors
    /// See [`Engine::decide`].
    pub fn decide_within(&self, workload: &Workload, budget: Budget) -> Result<Decision, Error> {
        Ok(place::decide(&self.ledger, workload, budget)?)
    }
    /// Says what keeps a request out and what would help, each remedy tried.
    ///
    /// # Errors
    /// A request that is not well formed.
    pub fn explain(&self, workload: &Workload) -> Result<Explanation, Error> {
        Ok(place::explain(&self.ledger, workload, self.budget)?)
    }
    /// Applies an admitting decision.
    ///
    /// # Errors
    /// A conflict, if what the decision relied on has changed since; nothing is changed then.
    pub fn commit(&mut self, workload: &Workload, decision: &Decision) -> Result<Committed, Error> {
        Ok(self.ledger.commit(workload, decision)?)
    }
    /// Ends a lease; returns the new version.
    ///
    /// # Errors
    /// A name that no lease has.
    pub fn release(&mut self, name: &str) -> Result<u64, Error> {
        Ok(self.ledger.release(name)?)
    }
    /// Takes back a commit whose GPUs nothing has touched since; returns the new version.
    ///
    /// # Errors
    /// A later change of the same GPUs.
    pub fn undo(&mut self, change: &Committed) -> Result<u64, Error> {
        Ok(self.ledger.undo(change)?)
    }

    /// Plans a batch of requests at once.
    ///
    /// # Errors
    /// A request that is not well formed, or a plan that the checker refuses.
    pub fn plan(&self, workloads: &[Workload], objective: Objective) -> Result<Plan, Error> {
        self.plan_with(workloads, objective, &mut |_| {})
    }

    /// [`Engine::plan`] with a callback that is told how far it is.
    ///
    /// # Errors
    /// See [`Engine::plan`].
    pub fn plan_with(
        &self,
        workloads: &[Workload],
        objective: Objective,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Plan, Error> {
        Ok(slicewise_solver::plan_with(&self.ledger, workloads, objective, self.plan_budget, self.backend, progress)?)
    }

    /// Takes the changes of mode and the leases of a plan as they are; all or none.
    ///
    /// # Errors
    /// A lease that does not fit on the present state.
    pub fn adopt(&mut self, plan: &Plan) -> Result<u64, Error> {
        let mut state = self.ledger.snapshot();
        state.version += 1;
        state.change_modes(&plan.mode_changes);
        state.leases.extend(plan.leases.iter().cloned());
        self.ledger = Ledger::new(self.ledger.catalog().clone(), self.ledger.policy().clone(), &state)?;
        Ok(self.version())
    }

    /// What the host has to do so that these leases, which the engine does not have, come
    /// true after these changes of mode.
    ///
    /// # Errors
    /// A placement or change of mode that names what is not there.
    pub fn steps_for(&self, leases: &[Lease], changes: &[ModeChange]) -> Result<Vec<Step>, Error> {
        Ok(place::steps_for(&self.ledger, leases, changes)?)
    }
}
