//! `slicewise explain`, and decisions in words.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use slicewise::{Action, Code, Decision, Explanations, ModeChange, Part, Placement, Proof, Remedy, Site, Verdict};

use super::{FleetArgs, exit_code, verdict_name};
use crate::failure::Failure;
use crate::io::{self, Text};

/// Say why a request does not fit and what would help.
#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Request, or list of requests (JSON, YAML or CSV).
    #[arg(long = "request", alias = "requests", value_name = "FILE")]
    request: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (_, engine) = self.fleet.load()?;
        let text = Text::read(&self.request)?;
        let mut worst = Verdict::Admit;
        let mut explanations = Vec::new();
        for request in text.requests()? {
            let fail = |e| Failure::engine(&text, e);
            let decision = engine.decide(&request).map_err(fail)?;
            let explanation = engine.explain(&request).map_err(fail)?;
            if worst == Verdict::Admit {
                worst = decision.verdict;
            }
            if !self.json {
                io::print(&render(&decision, &explanation.conflict, &explanation.remedies))?;
            }
            explanations.push(explanation);
        }
        if self.json {
            io::print_json(&Explanations::from(explanations))?;
        }
        Ok(exit_code(worst))
    }
}

/// A decision in words.
pub fn render(decision: &Decision, conflict: &[String], remedies: &[Remedy]) -> String {
    let mut text = String::new();
    let proof = match (decision.proved, decision.proof) {
        (true, Some(Proof::ExhaustedSearch)) => ", proved: every place was tried",
        (true, Some(Proof::CountBound)) => ", proved: even the most that fits is less",
        (true, Some(Proof::Verified)) => ", checked",
        _ => "",
    };
    let _ = writeln!(text, "{}: {}{proof}", decision.workload, verdict_name(decision.verdict));
    for placement in &decision.placements {
        let _ = writeln!(text, "  member {} gets {}", placement.member, place(placement));
    }
    for change in &decision.mode_changes {
        let _ = writeln!(text, "  {}", mode_change(change));
    }
    for moved in &decision.moves {
        let _ = writeln!(text, "  moves {} from {} to {}", moved.lease, site(&moved.from), site(&moved.to));
    }
    for reason in &decision.reasons {
        let _ = writeln!(text, "  {reason}");
        for blocker in &reason.blockers {
            let by = if blocker.by.is_empty() { "nothing on its cells".to_string() } else { blocker.by.join(", ") };
            let what = match reason.code {
                Code::ModeOccupied => String::from("has to be left by"),
                _ => format!("start {}:", blocker.start),
            };
            let _ = writeln!(text, "    {} GPU{} {what} {by}", blocker.node, blocker.gpu);
        }
    }
    if !conflict.is_empty() {
        let _ = writeln!(text, "  cannot stay together with what is asked: {}", conflict.join(", "));
    }
    for (i, remedy) in remedies.iter().enumerate() {
        let label = if i == 0 { "would help:" } else { "        or:" };
        let _ = writeln!(text, "  {label} {}", remedy_line(remedy));
    }
    for (i, step) in decision.steps.iter().enumerate() {
        let disturbs =
            if step.disturbs.is_empty() { String::new() } else { format!(" (disturbs {})", step.disturbs.join(", ")) };
        let _ = writeln!(text, "  step {}: {} on {} GPU{}{disturbs}", i + 1, action(&step.action), step.node, step.gpu);
    }
    text
}

fn place(placement: &Placement) -> String {
    let at = placement.gpu.map_or_else(|| placement.node.clone(), |gpu| format!("{} GPU{gpu}", placement.node));
    match &placement.part {
        Part::NodeOnly => format!("a place on {at}"),
        Part::Whole => format!("all of {at}"),
        Part::Instance { profile, start, .. } => format!("{profile} at {start} on {at}"),
        Part::Compute { profile, start, compute_profile, compute_start, .. } => {
            format!("{compute_profile} at {compute_start} inside {profile} at {start} on {at}")
        }
        Part::Share { share } => format!("one {share} on {at}"),
        Part::Fraction { milli, memory_mib: 0, .. } => format!("{milli} thousandths of {at}"),
        Part::Fraction { milli, memory_mib, .. } => format!("{milli} thousandths and {memory_mib} MiB of {at}"),
    }
}

/// A change of mode in words.
pub fn mode_change(change: &ModeChange) -> String {
    let ModeChange { node, gpu, from, to } = change;
    format!("changes the mode of {node} GPU{gpu} from {} to {}", from.name(), to.name())
}

fn site(site: &Site) -> String {
    format!("{} GPU{} start {}", site.node, site.gpu, site.start)
}

fn remedy_line(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Move { moves, fewest } => {
            let each: Vec<String> =
                moves.iter().map(|m| format!("{} from {} to {}", m.lease, site(&m.from), site(&m.to))).collect();
            let proof = if *fewest { "; no fewer moves do" } else { "" };
            format!("moving {}{proof}", each.join(", then "))
        }
        Remedy::AddGpus { model, mode, count } => format!("one more node with {count} × {model} in mode {mode}"),
        Remedy::ChangeMode { node, gpu, mode, leave } if leave.is_empty() => {
            format!("changing the mode of {node} GPU{gpu}, which is empty, to {mode}")
        }
        Remedy::ChangeMode { node, gpu, mode, leave } => {
            format!("changing the mode of {node} GPU{gpu} to {mode} once {} left", leave.join(", "))
        }
        Remedy::Uncordon { node, gpu: Some(gpu) } => format!("uncordoning {node} GPU{gpu}"),
        Remedy::Uncordon { node, gpu: None } => format!("uncordoning {node}"),
        Remedy::FewerMembers { count } => format!("asking for {count} members"),
        Remedy::OtherProfile { profile } => format!("asking for {profile}"),
        Remedy::Relax { field } => format!("dropping `{field}`"),
    }
}

fn inside(instance_start: Option<u16>) -> String {
    instance_start.map_or_else(String::new, |start| format!(" inside the instance at {start}"))
}

fn action(action: &Action) -> String {
    match action {
        Action::SetMode { from, to } => format!("change the mode from {} to {}", from.name(), to.name()),
        Action::CreateInstance { profile, start, .. } => format!("create {profile} at {start}"),
        Action::DestroyInstance { profile, start, .. } => format!("destroy {profile} at {start}"),
        Action::CreateCompute { profile, start, instance_start, .. } => {
            format!("create {profile} at {start} inside the instance at {instance_start}")
        }
        Action::DestroyCompute { profile, start, instance_start, .. } => {
            format!("destroy {profile} at {start} inside the instance at {instance_start}")
        }
        Action::CreateVgpu { vgpu, placement_id, instance_start } => {
            format!("create {vgpu} at placement id {placement_id}{}", inside(*instance_start))
        }
        Action::DestroyVgpu { vgpu, placement_id, instance_start } => {
            format!("destroy {vgpu} at placement id {placement_id}{}", inside(*instance_start))
        }
        Action::Attach { lease, member } => format!("hand over to {lease} member {member}"),
        Action::Detach { lease, member } => format!("take from {lease} member {member}"),
    }
}
