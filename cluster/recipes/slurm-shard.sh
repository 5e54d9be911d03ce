#!/usr/bin/env bash
#SBATCH --job-name=octet
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=1G
#SBATCH --time=01:00:00
# One task of the array of slurm.sh. A file appears under its name only when it is complete.
set -euo pipefail
srun "$OCTET" observe "$MODEL" "$@" --threads "${SLURM_CPUS_PER_TASK:-1}" --bad-samples "${BAD_SAMPLES:-stop}" \
    --samples "$SAMPLES" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
    --out "$PASS/$SLURM_ARRAY_TASK_ID.stats"
