#!/usr/bin/env bash
# Calibrates on the processors of one machine, or on those of a list of hosts that GNU parallel knows
# (PARALLEL="--sshloginfile hosts" with a shared file system).
#
#     MODEL=model.onnx SAMPLES=samples OUT=model_int8.onnx SHARDS=16 cluster/recipes/parallel.sh [SETTINGS]
set -euo pipefail
: "${MODEL:?the float model}" "${SAMPLES:?a folder of samples}" "${OUT:?file of the quantized model}"
octet=${OCTET:-octet} shards=${SHARDS:-$(nproc)} jobs=${JOBS:-$(nproc)}
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"

# Runs one command a shard; the first failure ends all.
each_shard() {
    if command -v parallel >/dev/null && [ -z "${XARGS:-}" ]; then
        seq "$shards" | parallel --halt now,fail=1 --jobs "$jobs" "$@"
    else
        seq "$shards" | xargs -P "$jobs" -I{} "$@"
    fi
}

passes=()
while
    after=()
    [ "${#passes[@]}" -eq 0 ] || after=(--after "${passes[@]}")
    plan=$("$octet" observe "$MODEL" "$@" "${after[@]}" --plan)
    [[ $plan != *'"pass":null'* ]]
do
    pass=$work/pass$((${#passes[@]} + 1))
    mkdir -p "$pass"
    each_shard "$octet" observe "$MODEL" "$@" "${after[@]}" --threads 1 --bad-samples "${BAD_SAMPLES:-stop}" \
        --samples "$SAMPLES" --shard "{}/$shards" --out "$pass/{}.stats"
    "$octet" merge "$pass"/*.stats --complete --out "$pass.stats"
    passes+=("$pass.stats")
done
"$octet" quantize "$MODEL" "$@" --stats "${passes[@]}" --out "$OUT"
