"""The recipes run as far as one machine allows: with GNU parallel or xargs, with doubles of Slurm's
programs, and with the command of the Kubernetes Job, whose manifest fits a schema."""

import os
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

RECIPES = Path(__file__).parents[1] / "recipes"
GPTQ = ("--rounding", "gptq")

# `sbatch` runs the array's tasks one after the other; `srun` runs its command.
SBATCH = """#!/usr/bin/env bash
set -eu
[ -z "${SBATCH_LOG:-}" ] || printf '%s\\n' "$*" >>"$SBATCH_LOG"
while [ "${1#--}" != "$1" ]; do
    case $1 in
        --array=1-*) count=${1#--array=1-} ;;
        --wait | --requeue | --export=ALL) ;;
        *) echo "sbatch: unrecognized option $1" >&2; exit 1 ;;
    esac
    shift
done
[ -x "$1" ] || { echo "sbatch: there is no script $1" >&2; exit 1; }
cpus=$(sed -n 's/^#SBATCH --cpus-per-task=//p' "$1")
for task in $(seq "$count"); do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$count SLURM_CPUS_PER_TASK=$cpus "$@" || exit 1
done
"""
SRUN = '#!/usr/bin/env bash\nexec "$@"\n'

TEXT = {"type": "string", "minLength": 1}
# The parts of batch/v1 Job that the manifest uses; any other key is an error.
JOB = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "batch/v1"},
        "kind": {"const": "Job"},
        "metadata": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}},
        },
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["completionMode", "completions", "template"],
            "properties": {
                "completionMode": {"const": "Indexed"},
                "completions": {"type": "integer", "minimum": 1},
                "parallelism": {"type": "integer", "minimum": 1},
                "backoffLimitPerIndex": {"type": "integer", "minimum": 0},
                "maxFailedIndexes": {"type": "integer", "minimum": 0},
                "ttlSecondsAfterFinished": {"type": "integer", "minimum": 0},
                "podFailurePolicy": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["rules"],
                    "properties": {
                        "rules": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "additionalProperties": False,
                                "required": ["action"],
                                "properties": {
                                    "action": {"enum": ["FailIndex", "FailJob", "Ignore", "Count"]},
                                    "onExitCodes": {
                                        "type": "object",
                                        "additionalProperties": False,
                                        "required": ["operator", "values"],
                                        "properties": {
                                            "containerName": TEXT,
                                            "operator": {"enum": ["In", "NotIn"]},
                                            "values": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                                        },
                                    },
                                    "onPodConditions": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "additionalProperties": False,
                                            "required": ["type"],
                                            "properties": {"type": TEXT, "status": {"enum": ["True", "False"]}},
                                        },
                                    },
                                },
                            },
                        }
                    },
                },
                "template": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["restartPolicy", "containers"],
                            "properties": {
                                # A failure policy of pods needs `Never`.
                                "restartPolicy": {"const": "Never"},
                                "containers": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {
                                        "type": "object",
                                        "additionalProperties": False,
                                        "required": ["name", "image"],
                                        "properties": {
                                            "name": TEXT,
                                            "image": TEXT,
                                            "command": {"type": "array", "items": {"type": "string"}},
                                            "args": {"type": "array", "items": {"type": "string"}},
                                            "env": {
                                                "type": "array",
                                                "items": {
                                                    "type": "object",
                                                    "additionalProperties": False,
                                                    "required": ["name", "value"],
                                                    "properties": {"name": TEXT, "value": {"type": "string"}},
                                                },
                                            },
                                            "resources": {
                                                "type": "object",
                                                "additionalProperties": False,
                                                "patternProperties": {
                                                    "^(requests|limits)$": {
                                                        "type": "object",
                                                        "additionalProperties": False,
                                                        "properties": {"cpu": TEXT, "memory": TEXT},
                                                    }
                                                },
                                            },
                                            "volumeMounts": {
                                                "type": "array",
                                                "items": {
                                                    "type": "object",
                                                    "additionalProperties": False,
                                                    "required": ["name", "mountPath"],
                                                    "properties": {"name": TEXT, "mountPath": TEXT},
                                                },
                                            },
                                        },
                                    },
                                },
                                "volumes": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "additionalProperties": False,
                                        "required": ["name", "persistentVolumeClaim"],
                                        "properties": {
                                            "name": TEXT,
                                            "persistentVolumeClaim": {
                                                "type": "object",
                                                "additionalProperties": False,
                                                "required": ["claimName"],
                                                "properties": {"claimName": TEXT},
                                            },
                                        },
                                    },
                                },
                            },
                        }
                    },
                },
            },
        },
    },
}


def recipe(name: str, place: Path, octet: Path, work: Path, settings=(), **more: str) -> subprocess.CompletedProcess:
    out = work / "q.onnx"
    environment = {
        **os.environ,
        "OCTET": str(octet),
        "MODEL": "m.onnx",
        "SAMPLES": "data",
        "OUT": str(out),
        "WORK": str(work / "stats"),
        **more,
    }
    script = [str(RECIPES / name), *settings]
    return subprocess.run(script, cwd=place, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("settings", [(), GPTQ])
@pytest.mark.parametrize("runner", ["parallel", "xargs"])
def test_parallel_processes_have_the_bytes_of_one_run(runner, settings, place, octet, alone, tmp_path):
    if runner == "parallel" and not shutil.which("parallel"):
        pytest.skip("GNU parallel is not installed here; the recipe then uses xargs")
    more = {"XARGS": "1"} if runner == "xargs" else {}
    done = recipe("parallel.sh", place, octet, tmp_path, settings, SHARDS="7", JOBS="2", **more)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "q.onnx").read_bytes() == alone(*settings)


def test_a_bad_sample_ends_the_recipe_by_name(place, octet, tmp_path):
    (tmp_path / "bad").mkdir()
    shutil.copy(place / "data/s0.npz", tmp_path / "bad")
    (tmp_path / "bad/s1.npz").write_text("no archive")
    done = recipe("parallel.sh", place, octet, tmp_path, XARGS="1", SHARDS="2", SAMPLES=str(tmp_path / "bad"))
    assert done.returncode != 0
    assert "s1.npz" in done.stderr
    assert not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize("settings", [(), GPTQ])
def test_slurm_arrays_have_the_bytes_of_one_run(settings, place, octet, alone, tmp_path):
    for name, text in (("sbatch", SBATCH), ("srun", SRUN)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = recipe("slurm.sh", place, octet, tmp_path, settings, SHARDS="3", PATH=path, SBATCH_LOG=str(tmp_path / "log"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "q.onnx").read_bytes() == alone(*settings)
    submitted = (tmp_path / "log").read_text().splitlines()
    assert len(submitted) == (2 if settings else 1)
    assert all("--array=1-3" in line for line in submitted)


def test_the_kubernetes_job_is_valid_and_its_pods_observe_all_shards(place, octet, alone, tmp_path):
    manifest = yaml.safe_load((RECIPES / "kubernetes-job.yaml").read_text())
    jsonschema.validate(manifest, JOB)
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert manifest["spec"]["completions"] == int(variables["SHARDS"])
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in manifest["spec"]["template"]["spec"]["volumes"]}
    shards = 4
    here = {
        **os.environ,
        **variables,
        "OCTET": str(octet),
        "MODEL": "m.onnx",
        "SAMPLES": "data",
        "PASS": str(tmp_path / "pass1"),
        "SHARDS": str(shards),
        "THREADS": "1",
    }
    for index in range(shards):
        pod = [*container["command"], *container["args"]]
        subprocess.run(pod, cwd=place, env={**here, "JOB_COMPLETION_INDEX": str(index)}, check=True)
    files = sorted((tmp_path / "pass1").iterdir())
    merged, out = tmp_path / "pass1.stats", tmp_path / "q.onnx"
    subprocess.run([octet, "merge", *files, "--complete", "--out", merged], check=True)
    subprocess.run([octet, "quantize", "m.onnx", "--stats", merged, "--out", out], cwd=place, check=True)
    assert out.read_bytes() == alone()
