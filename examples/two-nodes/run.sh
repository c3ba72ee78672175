#!/bin/sh
# From what two machines print to a checked plan and the commands that carry it out.
set -eu
cd "$(dirname "$0")/../.."
out=target/two-nodes
mkdir -p "$out"
slicewise() { cargo run -q --release --bin slicewise -- "$@"; }

slicewise import mig-lgip examples/two-nodes/alpha.txt --node alpha --out "$out/alpha.json"
slicewise import topo examples/two-nodes/beta.txt --node beta --into "$out/alpha.json" --out "$out/fleet.json"
slicewise plan --fleet "$out/fleet.json" --requests examples/two-nodes/requests.yaml --out "$out/plan.json"
slicewise verify --fleet "$out/fleet.json" --requests examples/two-nodes/requests.yaml --plan "$out/plan.json"
slicewise export nvidia-smi --fleet "$out/fleet.json" --plan "$out/plan.json"
