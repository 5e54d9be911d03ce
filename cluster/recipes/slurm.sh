#!/usr/bin/env bash
# Calibrates with Slurm arrays: one array for each pass that the settings need. Run it on a login
# node, in a folder that all nodes share.
#
#     MODEL=model.onnx SAMPLES=samples OUT=model_int8.onnx SHARDS=64 cluster/recipes/slurm.sh [SETTINGS]
set -euo pipefail
: "${MODEL:?the float model}" "${SAMPLES:?a folder of samples}" "${OUT:?file of the quantized model}"
octet=${OCTET:-octet} shards=${SHARDS:-64}
work=${WORK:-octet-stats}
mkdir -p "$work"

passes=()
while
    after=()
    [ "${#passes[@]}" -eq 0 ] || after=(--after "${passes[@]}")
    plan=$("$octet" observe "$MODEL" "$@" "${after[@]}" --plan)
    [[ $plan != *'"pass":null'* ]]
do
    pass=$work/pass$((${#passes[@]} + 1))
    mkdir -p "$pass"
    # --wait returns when all tasks have ended, and fails if one has failed. --requeue runs the tasks of
    # a lost node again.
    OCTET=$octet PASS=$pass sbatch --wait --requeue --export=ALL --array="1-$shards" \
        "$(dirname "$0")/slurm-shard.sh" "$@" "${after[@]}"
    "$octet" merge "$pass"/*.stats --complete --out "$pass.stats"
    passes+=("$pass.stats")
done
"$octet" quantize "$MODEL" "$@" --stats "${passes[@]}" --out "$OUT"
