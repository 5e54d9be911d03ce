#!/usr/bin/env bash
# Measures shards and Ray on EfficientNet-Lite0. Arguments: merge, overhead; without any, both.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ -x "$OCTET" ] || fail "there is no program $OCTET; run cargo build --release --features cli"
scripts/corpus.sh efficientnet_lite0 >&2
export OCTET_BENCH_MODEL=${OCTET_BENCH_MODEL:-$OCTET_CORPUS/models/efficientnet_lite0.onnx}
export PYTHONPATH=$checkout/cluster RAY_USAGE_STATS_ENABLED=0
exec "$(scripts/venv.sh ray)" cluster/bench.py "$@"
