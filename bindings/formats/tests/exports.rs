//! Layouts survive the way through mig-parted.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use slicewise_core::catalog::Catalog;
use slicewise_core::fleet::{Mode, State};
use slicewise_formats::export::{mig_parted, state_json};
use slicewise_formats::{Kind, Options, Source, import, read_state};

const STATE: &str = r#"{"nodes":[
    {"name":"a","gpus":[
        {"model":"h100-sxm5-80gb","mode":"mig","instances":[{"profile":"3g.40gb","start":4},{"profile":"1g.10gb","start":0},
            {"profile":"1g.10gb+me","start":1}]},
        {"model":"h100-sxm5-80gb","mode":"mig","instances":[{"profile":"1g.10gb","start":3},{"profile":"3g.40gb","start":4},
            {"profile":"1g.10gb+me","start":2}]},
        {"model":"h100-sxm5-80gb"},
        {"model":"a100-40gb","mode":"mig","instances":[{"profile":"3g.20gb","start":4,"compute_instances":[
            {"profile":"1c.3g.20gb","start":0},{"profile":"2c.3g.20gb","start":1}]}]},
        {"model":"a30-24gb","mode":"mig"}]},
    {"name":"cpu"},
    {"name":"b","gpus":[{"model":"rtx-pro-6000-96gb","mode":"mig","instances":[{"profile":"2g.48gb","start":6}]}]}]}"#;

fn layouts(state: &State, node: &str) -> Vec<(Mode, Vec<String>)> {
    let node = state.nodes.iter().find(|n| n.name == node).unwrap();
    let of = |gpu: &slicewise_core::fleet::Gpu| {
        let mut names: Vec<String> = gpu
            .instances
            .iter()
            .map(|i| format!("{} {:?}", i.profile, i.compute_instances.iter().map(|c| &c.profile).collect::<Vec<_>>()))
            .collect();
        names.sort();
        (gpu.mode, names)
    };
    node.gpus.iter().map(of).collect()
}

#[test]
fn alike_gpus_share_an_entry() {
    let configs = mig_parted(&read_state("s", STATE).unwrap());
    assert_eq!(configs.iter().map(|c| c.node.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(configs[0].yaml.matches("mig-enabled").count(), 4, "{}", configs[0].yaml);
    assert!(configs[0].yaml.contains("slicewise:"), "{}", configs[0].yaml);
}

#[test]
fn layouts_come_back_the_same() {
    let state = read_state("s", STATE).unwrap();
    let catalog = Catalog::built_in().unwrap();
    for config in mig_parted(&state) {
        let options = Options { node: Some(config.node.clone()), into: Some(state.clone()), ..Options::default() };
        let source = [Source { name: "c.yaml", text: &config.yaml }];
        let back = import(Kind::MigParted, &source, &options, &catalog).unwrap();
        assert_eq!(layouts(&back.state, &config.node), layouts(&state, &config.node), "{}", config.yaml);
    }
}

#[test]
fn states_are_documents() {
    let state = read_state("s", STATE).unwrap();
    assert_eq!(read_state("s", &state_json(&state)).unwrap(), state);
}
