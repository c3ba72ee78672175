//! The one place with floating point: programs with integer data go to a solver through
//! good_lp, and answers come back as integers. Nothing here is trusted by the rest.
#![expect(clippy::float_arithmetic, reason = "solvers work in floating point; their answers are rounded here")]

use good_lp::{Expression, ProblemVariables, SolverModel, Variable, variable};

use crate::budget::Backend;

/// Answers are in units of one part in this many.
pub const UNIT: i64 = 1_000_000_000;

/// Largest integer bound that a back end takes.
const INTEGER_MAX: i64 = i32::MAX as i64;

/// A variable: from 0 to `upper`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Column {
    /// What one of it adds to the objective.
    pub cost: i64,
    /// Largest value; `None`: no limit.
    pub upper: Option<i64>,
    /// Whether it must be whole.
    pub integer: bool,
    /// Value in a solution known to be feasible.
    pub start: Option<i64>,
}

/// How a row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// At most.
    Le,
    /// At least.
    Ge,
}

/// A constraint.
#[derive(Clone, Debug)]
pub struct Row {
    /// Columns with their coefficients.
    pub terms: Vec<(usize, i64)>,
    /// How it compares.
    pub sense: Sense,
    /// With what.
    pub rhs: i64,
}

/// A linear or integer program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Whether the objective is to grow.
    pub maximise: bool,
    /// Variables.
    pub columns: Vec<Column>,
    /// Constraints.
    pub rows: Vec<Row>,
}

impl Program {
    /// Adds a variable and returns its position.
    pub fn column(&mut self, column: Column) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }
    /// Adds a constraint; one without terms is left out.
    pub fn row(&mut self, terms: Vec<(usize, i64)>, sense: Sense, rhs: i64) {
        if !terms.is_empty() {
            self.rows.push(Row { terms, sense, rhs });
        }
    }

    /// Whether whole values meet every bound and row, in integers.
    pub fn is_met_by(&self, values: &[i64]) -> bool {
        let bounds = self.columns.iter().zip(values).all(|(c, v)| *v >= 0 && c.upper.is_none_or(|u| *v <= u));
        let value = |i: &usize| i128::from(values.get(*i).copied().unwrap_or(0));
        let row = |row: &Row| {
            let sum: i128 = row.terms.iter().map(|(i, a)| value(i) * i128::from(*a)).sum();
            match row.sense {
                Sense::Le => sum <= i128::from(row.rhs),
                Sense::Ge => sum >= i128::from(row.rhs),
            }
        };
        bounds && values.len() == self.columns.len() && self.rows.iter().all(row)
    }

    /// Solves; values in units of 1/[`UNIT`], in the order of the columns. `None` where
    /// the back end found nothing.
    pub fn solve(&self, backend: Backend, nodes: u64) -> Option<Vec<i64>> {
        let mut variables = ProblemVariables::new();
        let columns: Vec<Variable> = self.columns.iter().map(|c| variables.add(definition(c))).collect();
        let objective: Expression =
            self.columns.iter().zip(&columns).filter(|(c, _)| c.cost != 0).map(|(c, v)| c.cost as f64 * *v).sum();
        let problem = if self.maximise { variables.maximise(objective) } else { variables.minimise(objective) };
        match backend {
            Backend::Microlp => self.by_microlp(problem.using(good_lp::microlp), &columns, nodes),
            #[cfg(feature = "highs")]
            Backend::Highs => {
                use good_lp::Solution;
                let mut model = problem.using(good_lp::highs).set_option("mip_max_nodes", nodes.min(1 << 30) as i32);
                self.constrain(&mut model, &columns);
                let solution = model.solve().ok()?;
                Some(columns.iter().map(|v| units(solution.value(*v))).collect())
            }
        }
    }

    /// good_lp does not pass a node limit on to microlp, so the model it builds is solved
    /// through microlp's own call.
    fn by_microlp(
        &self,
        mut model: good_lp::solvers::microlp::MicroLpProblem,
        columns: &[Variable],
        nodes: u64,
    ) -> Option<Vec<i64>> {
        self.constrain(&mut model, columns);
        let mut options = microlp::SolveOptions::default();
        if self.columns.iter().any(|c| c.integer) {
            options.node_limit = Some(nodes);
            options.warm_start = self.warm_start();
        }
        let problem = model.as_inner().clone();
        let solution = problem.solve_with(options).ok()?.into_solution().ok()?;
        Some(solution.iter().map(|(_, value)| units(value)).collect())
    }

    /// microlp's variables can only be made by one of its problems, and good_lp keeps its
    /// own to itself; those of any problem of the same size are the same. Columns without
    /// a start are left to the solver.
    fn warm_start(&self) -> Option<Vec<(microlp::Variable, f64)>> {
        let mut twin = microlp::Problem::new(microlp::OptimizationDirection::Maximize);
        let variables: Vec<microlp::Variable> = self.columns.iter().map(|_| twin.add_var(0.0, (0.0, 0.0))).collect();
        let starts = self.columns.iter().zip(variables).filter_map(|(c, v)| Some((v, c.start? as f64)));
        Some(starts.collect()).filter(|starts: &Vec<_>| !starts.is_empty())
    }

    fn constrain<M: SolverModel>(&self, model: &mut M, columns: &[Variable]) {
        for row in &self.rows {
            let term = |(i, a): &(usize, i64)| columns.get(*i).map(|v| *a as f64 * *v);
            let sum: Expression = row.terms.iter().filter_map(term).sum();
            let rhs = row.rhs as f64;
            model.add_constraint(match row.sense {
                Sense::Le => sum.leq(rhs),
                Sense::Ge => sum.geq(rhs),
            });
        }
    }
}

fn definition(column: &Column) -> good_lp::VariableDefinition {
    let mut definition = variable().min(0.0);
    match (column.integer, column.upper) {
        (true, upper) => definition = definition.integer().max(upper.unwrap_or(INTEGER_MAX).min(INTEGER_MAX) as f64),
        (false, Some(upper)) => definition = definition.max(upper as f64),
        (false, None) => {}
    }
    match column.start {
        Some(start) => definition.initial(start as f64),
        None => definition,
    }
}

fn units(value: f64) -> i64 {
    (value * UNIT as f64).round() as i64
}

/// The nearest whole number.
pub fn whole(units: i64) -> i64 {
    units.saturating_add(UNIT / 2).div_euclid(UNIT)
}

/// The largest whole number not above; what is within rounding of a whole number counts as it.
pub fn floor(units: i64) -> i64 {
    units.saturating_add(UNIT / 1_000_000).div_euclid(UNIT)
}
