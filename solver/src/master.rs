//! The class × pattern program and its dual.
//!
//! The program has one integer for every room and pattern; members flow from demands
//! over parts to slots. good_lp's default back end gives no prices, so the dual is
//! written out and solved by itself; its rows for patterns are found by exact search.

use slicewise_core::ids::{Id, IdVec};

use crate::budget::{Backend, PlanBudget, Progress};
use crate::demand::Batch;
use crate::ids::{ColumnId, DemandId, PartId, RoomId, SlotId};
use crate::lp::{Column, Program, Sense, UNIT};
use crate::room::{Pattern, Rooms, SlotPrices};

/// Prices of parts are found to this many decimals.
pub const FINE: u64 = 1_000_000;

/// Most that a member may be priced at in GPUs: keeps a dual finite whose primal has no
/// solution. Any price is a valid price.
const GPUS_MAX: i64 = 1_000;

/// What is aimed at.
#[derive(Clone, Debug)]
pub enum Goal {
    /// Most of this, by demand.
    Value(IdVec<DemandId, u64>),
    /// Fewest GPUs opened, with at least this many members of each demand.
    Gpus(IdVec<DemandId, u64>),
}

/// Prices of parts, in units of 1/[`FINE`].
pub type PartPrices = IdVec<PartId, u64>;

/// What the programs of one batch share.
pub struct Master<'a> {
    /// What is asked.
    pub batch: &'a Batch,
    /// Where it can go.
    pub rooms: &'a Rooms,
    /// The patterns in the program.
    pub pool: IdVec<ColumnId, (RoomId, Pattern)>,
    /// All patterns are in the pool, or no other can improve on it at the last prices.
    pub complete: bool,
    /// Limits.
    pub budget: PlanBudget,
    /// Who solves.
    pub backend: Backend,
}

/// Positions of the columns of a program.
pub struct Layout {
    /// Copies of each pattern.
    pub copies: Vec<usize>,
    /// Members of a demand served by an alternative.
    pub served: Vec<(DemandId, usize, usize)>,
    /// Parts that a slot serves.
    pub flows: Vec<(PartId, SlotId, usize)>,
    /// Lots of a demand that comes in lots.
    pub lots: Vec<(DemandId, usize)>,
}

/// What is decided before a program is solved.
#[derive(Clone, Debug)]
pub struct Given {
    /// Slots that are there already.
    pub slots: IdVec<SlotId, i64>,
    /// GPUs of each room that are left.
    pub left: IdVec<RoomId, i64>,
}

/// The price of a slot is the dearest of the parts it can serve.
pub fn slot_prices(batch: &Batch, parts: &PartPrices) -> SlotPrices {
    let mut prices: SlotPrices = batch.slots.iter().map(|_| 0).collect();
    for (id, part) in batch.parts.iter() {
        let price = parts.lookup(id).copied().unwrap_or(0);
        for slot in &part.slots {
            prices[*slot] = prices[*slot].max(price);
        }
    }
    prices
}

impl<'a> Master<'a> {
    /// A program with its first patterns: all of them where they are few enough.
    pub fn new(batch: &'a Batch, rooms: &'a Rooms, budget: PlanBudget, backend: Backend) -> Self {
        let mut master = Self { batch, rooms, pool: IdVec::default(), complete: false, budget, backend };
        match rooms.maximal(budget.columns) {
            Some(all) => {
                master.pool = all.into_iter().collect();
                master.complete = true;
            }
            None => master.seed(),
        }
        master
    }

    /// As many of one slot as fit, for every room and slot.
    fn seed(&mut self) {
        for (slot, _) in self.batch.slots.iter() {
            let prices: SlotPrices = self.batch.slots.ids().map(|s| u64::from(s == slot)).collect();
            self.add_dearest(&prices, |_, value| value > 0);
        }
    }

    /// Adds the dearest pattern of every room that `wanted` says; how many are new.
    fn add_dearest(&mut self, prices: &SlotPrices, wanted: impl Fn(RoomId, u64) -> bool) -> usize {
        let valuation = self.rooms.value(prices);
        let ids = self.rooms.rooms.ids();
        let found: Vec<(RoomId, Pattern)> =
            ids.filter(|r| wanted(*r, valuation.best(*r))).map(|r| (r, valuation.pattern(r))).collect();
        let room = self.budget.columns.saturating_sub(self.pool.len());
        let new = found.len().min(room);
        found.into_iter().take(room).for_each(|column| {
            self.pool.push(column);
        });
        new
    }

    /// The best prices for the goal, and the patterns that they need.
    pub fn price(&mut self, goal: &Goal, progress: &mut dyn FnMut(Progress)) -> Option<PartPrices> {
        let mut best = None;
        for _ in 0..self.budget.rounds.max(1) {
            let (program, dual) = self.dual(goal);
            let Some(values) = program.solve(self.backend, 0) else { break };
            let at = |position: usize| values.get(position).copied().unwrap_or(0).max(0);
            let fine = |units: i64| (i128::from(units) * i128::from(FINE) / i128::from(UNIT)) as u64;
            let parts: PartPrices = self.batch.parts.ids().map(|p| fine(at(dual.parts + p.index()))).collect();
            let slots = slot_prices(self.batch, &parts);
            best = Some(parts);
            if self.complete {
                break;
            }
            // Rounding of the prices is not an improvement.
            let slack = 64;
            let ceiling = |room: RoomId| {
                let opened = u64::from(matches!(goal, Goal::Gpus(_)) && self.rooms.rooms[room].unused) * FINE;
                fine(at(dual.rooms + room.index())) + opened + slack
            };
            let ceilings: IdVec<RoomId, u64> = self.rooms.rooms.ids().map(ceiling).collect();
            let before = self.pool.len();
            let new = self.add_dearest(&slots, |room, value| value > ceilings[room]);
            progress(Progress::Columns { columns: self.pool.len() });
            if new == 0 {
                self.complete = before < self.budget.columns;
                break;
            }
        }
        best
    }

    fn dual(&self, goal: &Goal) -> (Program, Dual) {
        let batch = self.batch;
        let is_value = matches!(goal, Goal::Value(_));
        // Most value: a minimum over prices. Fewest GPUs: a maximum.
        let sign = if is_value { 1 } else { -1 };
        let mut program = Program { maximise: !is_value, ..Program::default() };
        let parts = program.columns.len();
        batch.parts.iter().for_each(|_| {
            program.column(Column::default());
        });
        let slots = program.columns.len();
        batch.slots.iter().for_each(|_| {
            program.column(Column::default());
        });
        let rooms = program.columns.len();
        for (_, room) in self.rooms.rooms.iter() {
            program.column(Column { cost: sign * room.gpus.len() as i64, ..Column::default() });
        }
        for (id, demand) in batch.demands.iter() {
            let (members, worth) = match goal {
                Goal::Value(worth) => (demand.members, worth[id]),
                Goal::Gpus(members) => (members[id], 0),
            };
            let upper = (!is_value).then_some(GPUS_MAX);
            let own = program.column(Column { cost: clip(members), upper, ..Column::default() });
            for alternative in &demand.alternatives {
                let terms = alternative.iter().map(|(p, n)| (parts + p.index(), sign * i64::from(*n)));
                let terms = std::iter::once((own, 1)).chain(terms).collect();
                program.row(terms, if is_value { Sense::Ge } else { Sense::Le }, clip(worth));
            }
        }
        for (id, part) in batch.parts.iter() {
            for slot in &part.slots {
                program.row(vec![(slots + slot.index(), 1), (parts + id.index(), -1)], Sense::Ge, 0);
            }
        }
        for (_, (room, pattern)) in self.pool.iter() {
            let terms = pattern.iter().map(|(s, n)| (slots + s.index(), -i64::from(*n)));
            let terms = std::iter::once((rooms + room.index(), 1)).chain(terms).collect();
            let opened = i64::from(!is_value && self.rooms.rooms[*room].unused);
            program.row(terms, Sense::Ge, -opened);
        }
        (program, Dual { parts, rooms })
    }

    /// Nothing decided yet.
    pub fn nothing(&self) -> Given {
        Given {
            slots: self.batch.slots.iter().map(|_| 0).collect(),
            left: self.rooms.rooms.iter().map(|(_, r)| r.gpus.len() as i64).collect(),
        }
    }

    /// The program itself.
    pub fn primal(&self, goal: &Goal, given: &Given, integer: bool) -> (Program, Layout) {
        let batch = self.batch;
        let is_value = matches!(goal, Goal::Value(_));
        let mut program = Program { maximise: is_value, ..Program::default() };
        let mut layout = Layout { copies: Vec::new(), served: Vec::new(), flows: Vec::new(), lots: Vec::new() };
        for (_, (room, _)) in self.pool.iter() {
            let cost = i64::from(!is_value && self.rooms.rooms[*room].unused);
            let upper = integer.then_some(given.left[*room]);
            layout.copies.push(program.column(Column { cost, upper, integer, start: None }));
        }
        let mut needs: IdVec<PartId, Vec<(usize, i64)>> = batch.parts.iter().map(|_| Vec::new()).collect();
        for (id, demand) in batch.demands.iter() {
            let worth = if let Goal::Value(worth) = goal { clip(worth[id]) } else { 0 };
            let mut own = Vec::new();
            for (position, alternative) in demand.alternatives.iter().enumerate() {
                let upper = Some(clip(demand.members));
                let column = program.column(Column { cost: worth, upper, ..Column::default() });
                layout.served.push((id, position, column));
                own.push((column, 1));
                alternative.iter().for_each(|(part, n)| needs[*part].push((column, i64::from(*n))));
            }
            if let Goal::Gpus(members) = goal {
                program.row(own.clone(), Sense::Ge, clip(members[id]));
            }
            if demand.lot > 1 {
                let upper = Some(clip(demand.members / demand.lot));
                let lots = program.column(Column { upper, integer, ..Column::default() });
                layout.lots.push((id, lots));
                own.push((lots, -clip(demand.lot)));
                program.row(own.clone(), Sense::Le, 0);
                program.row(own, Sense::Ge, 0);
            } else if own.len() > 1 {
                program.row(own, Sense::Le, clip(demand.members));
            }
        }
        let mut supply: IdVec<SlotId, Vec<(usize, i64)>> = batch.slots.iter().map(|_| Vec::new()).collect();
        for (id, part) in batch.parts.iter() {
            let mut row = std::mem::take(&mut needs[id]);
            for slot in &part.slots {
                let column = program.column(Column::default());
                layout.flows.push((id, *slot, column));
                row.push((column, -1));
                supply[*slot].push((column, 1));
            }
            program.row(row, Sense::Le, 0);
        }
        let mut rooms: IdVec<RoomId, Vec<(usize, i64)>> = self.rooms.rooms.iter().map(|_| Vec::new()).collect();
        for (column, (_, (room, pattern))) in layout.copies.iter().zip(self.pool.iter()) {
            rooms[*room].push((*column, 1));
            pattern.iter().for_each(|(slot, n)| supply[*slot].push((*column, -i64::from(*n))));
        }
        for (id, terms) in supply.iter() {
            program.row(terms.clone(), Sense::Le, given.slots[id]);
        }
        for (id, terms) in rooms.iter() {
            program.row(terms.clone(), Sense::Le, given.left[id]);
        }
        (program, layout)
    }
}

/// Where the prices are among the columns of a dual.
struct Dual {
    parts: usize,
    rooms: usize,
}

/// Numbers that a solver can still tell apart.
fn clip(number: u64) -> i64 {
    i64::try_from(number.min(1_000_000_000)).unwrap_or(0)
}
