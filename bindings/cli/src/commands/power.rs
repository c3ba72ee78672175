//! `slicewise power`.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use slicewise::Ledger;
use slicewise::perf::power::{Slowed, slowed};

use super::FleetArgs;
use crate::failure::Failure;
use crate::{io, table};

/// What nodes and racks draw if everybody uses all they have, and who is slowed by limits and caps.
#[derive(Args)]
pub struct Power {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    nodes: Vec<Draw>,
    racks: Vec<Draw>,
    slowed: Vec<Slowed>,
}

/// A node or rack; its draw is `None` where watts are not known.
#[derive(Serialize)]
struct Draw {
    name: String,
    draw_mw: Option<u64>,
    cap_w: Option<u32>,
}

impl Power {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (_, engine) = self.fleet.load()?;
        let answer = answer(engine.ledger());
        if self.json {
            io::print_json(&answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut rows = table::table(&["", "name", "draw", "cap"]);
        let kinds = [("node", &answer.nodes), ("rack", &answer.racks)];
        for (kind, draw) in kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |draw| (kind, draw))) {
            let cap = draw.cap_w.map_or_else(String::new, |cap| format!("{cap} W"));
            rows.add_row([kind.into(), draw.name.clone(), table::watts(draw.draw_mw), cap]);
        }
        io::print(&format!("{rows}\n"))?;
        if !answer.slowed.is_empty() {
            let mut rows = table::table(&["slowed", "node", "GPU", "would draw", "gets", "speed"]);
            for one in &answer.slowed {
                let speed = [one.rate_ppm.low, one.rate_ppm.high].map(table::percent).join(" to ");
                let watts = [one.demand_mw, one.share_mw].map(|mw| table::watts(Some(mw)));
                let [would, gets] = watts;
                rows.add_row([one.name.clone(), one.node.clone(), one.gpu.to_string(), would, gets, speed]);
            }
            io::print(&format!("Watts above idle\n{rows}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn answer(ledger: &Ledger) -> Answer {
    let nodes = ledger.nodes().iter().map(|(id, node)| Draw {
        name: node.name.clone(),
        draw_mw: ledger.node_draw_mw(id),
        cap_w: node.power_cap().map(|cap| cap.limit_w),
    });
    let racks = ledger.racks().map(|(id, rack)| Draw {
        name: rack.document.name.clone(),
        draw_mw: ledger.nodes_in(id).map(|node| ledger.node_draw_mw(node)).sum(),
        cap_w: rack.document.power_cap.map(|cap| cap.limit_w),
    });
    Answer { nodes: nodes.collect(), racks: racks.collect(), slowed: slowed(ledger) }
}
