#!/bin/sh
# Waits at 85 % load: best effort, what is chosen instead, and promises that nothing keeps.
set -eu
cd "$(dirname "$0")/../.."
slicewise() { cargo run -q --release --bin slicewise -- "$@"; }

slicewise timeshare examples/timeshare/busy.yaml
slicewise timeshare examples/timeshare/busy.yaml --choose
slicewise timeshare examples/timeshare/impossible.yaml || test $? -eq 5
