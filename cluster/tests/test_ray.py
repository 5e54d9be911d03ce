"""A real Ray with several nodes on this machine: the bytes of one run for any number of shards, and
when workers, nodes and programs are lost."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import SAMPLES, WITHOUT_RAY

if WITHOUT_RAY:
    pytest.skip(WITHOUT_RAY, allow_module_level=True)

import ray
from ray.cluster_utils import Cluster

from octet_ray import (
    Calibration,
    Comparison,
    FolderSamples,
    OctetRayError,
    Search,
    ShippedSamples,
    calibrate,
    compare,
    search,
)

GPTQ = ["--rounding", "gptq"]


def started(last: bool = False) -> Cluster | None:
    """A head without processors, and two nodes with one each. A node that Ray can't start in 30
    seconds, as on a machine that is busy with other tests, ends the attempt."""
    cluster = Cluster()
    try:
        cluster.add_node(num_cpus=0, include_dashboard=False)
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
    except Exception:
        cluster.shutdown()
        if last:
            raise
        return None
    return cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of this machine, for all tests."""
    os.environ["OCTET_RAY_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    cluster = started() or started() or started(last=True)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def job(cluster, place, octet, tmp_path):
    """A calibration of the small model; `more` are its fields."""

    def make(**more) -> Calibration:
        fields = {"octet": str(octet), "report": lambda progress: None, **more}
        return Calibration(model=place / "m.onnx", out=tmp_path / "q.onnx", **fields)

    return make


@pytest.fixture
def faulty(octet, tmp_path):
    """The program with a fault in the shards that the pattern names."""

    def make(shard: str, fault: str) -> str:
        program = tmp_path / "faulty-octet"
        program.write_text(
            f"#!/usr/bin/env bash\ncase \" $* \" in *' --shard '{shard}' '*)\n{fault}\n;; esac\nexec {octet} \"$@\"\n"
        )
        program.chmod(0o755)
        return str(program)

    return make


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_any_number_of_shards_has_the_bytes_of_one_run(count, job, place, alone):
    one = job(shards=count)
    calibrate(one, FolderSamples(place / "data"))
    assert one.out.read_bytes() == alone()


def test_settings_of_several_passes_and_shipped_samples_have_the_bytes_of_one_run(job, place, alone, tmp_path):
    (tmp_path / "settings.yaml").write_text("rounding: gptq\n")
    one = job(shards=3, settings=["--config", str(tmp_path / "settings.yaml")], keep=tmp_path / "kept")
    told = calibrate(one, ShippedSamples.from_folder(place / "data"))
    assert one.out.read_bytes() == alone(*GPTQ)
    assert "in integer arithmetic" in told
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["pass1.stats", "pass2.stats"]


def test_samples_may_come_from_any_source(job, place, alone):
    names = [f"s{at}.npz" for at in range(SAMPLES)]
    rows = ([(name, (place / "data" / name).read_bytes())] for name in names)
    one = job(shards=2)
    calibrate(one, ShippedSamples(rows))
    assert one.out.read_bytes() == alone()


def test_the_npm_package_goes_to_the_nodes_with_all_of_its_files(job, place, octet, alone, tmp_path):
    package = tmp_path / "package"
    (package / "command").mkdir(parents=True)
    (package / "package.json").write_text('{"type": "module"}')
    (package / "command/worker.js").write_text(
        "import { spawnSync } from 'node:child_process';\n"
        f"export const run = (words) => spawnSync('{octet}', words, {{ stdio: 'inherit' }}).status;\n"
    )
    (package / "command/octet.js").write_text(
        "import { run } from './worker.js';\nprocess.exit(run(process.argv.slice(2)));\n"
    )
    one = job(shards=3, octet=str(package / "command/octet.js"))
    calibrate(one, FolderSamples(place / "data"))
    assert one.out.read_bytes() == alone()


def test_a_comparison_has_the_figures_of_one_run(cluster, place, octet, alone):
    (place / "int8.onnx").write_bytes(alone())
    call = [octet, "compare", "m.onnx", "int8.onnx", "--samples", "data", "--json"]
    whole = subprocess.run(call, cwd=place, capture_output=True, text=True, check=True).stdout
    fields = {"octet": str(octet), "shards": 3, "settings": ["--json"], "report": lambda progress: None}
    one = Comparison(float=place / "m.onnx", quantized=place / "int8.onnx", **fields)
    assert compare(one, FolderSamples(place / "data")) == whole


@pytest.mark.parametrize("budget", ["sqnr=30", "bytes=6kB"])
def test_a_search_has_the_result_of_one_run(budget, cluster, place, octet, tmp_path):
    call = [octet, "search", "m.onnx", "--samples", "data", "--budget", budget, "--json", "--out", tmp_path / "one.onnx"]
    whole = subprocess.run(call, cwd=place, capture_output=True, text=True, check=True).stdout
    result = ["--json", "--out", str(tmp_path / "shared.onnx")]
    fields = {"octet": str(octet), "shards": 3, "report": lambda progress: None}
    one = Search(model=place / "m.onnx", budget=budget, result=result, **fields)
    assert search(one, FolderSamples(place / "data")) == whole
    assert (tmp_path / "shared.onnx").read_bytes() == (tmp_path / "one.onnx").read_bytes()


def test_a_killed_worker_does_not_change_the_bytes(job, place, faulty, alone, tmp_path):
    # The parent of the program is the worker.
    fault = f"if mkdir {tmp_path}/killed 2>/dev/null; then kill -9 $PPID; sleep 60; fi"
    one = job(shards=7, octet=faulty("2/7", fault))
    calibrate(one, FolderSamples(place / "data"))
    assert (tmp_path / "killed").is_dir()
    assert one.out.read_bytes() == alone()


def test_a_removed_node_does_not_change_the_bytes(cluster, job, place, faulty, alone, tmp_path):
    added = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    # The program waits on the added node, in whose folder it is, until that node is removed. On the
    # others it waits for that moment, so that the added node surely runs a shard.
    waits = f"{tmp_path}/waits"
    fault = (
        f"case $0 in */{added.node_id}/*) mkdir -p {waits}; sleep 120;; "
        f"*) for _ in $(seq 1200); do [ -d {waits} ] && break; sleep 0.05; done;; esac"
    )
    one = job(shards=7, octet=faulty("*/7", fault))
    removed = []

    def remove() -> None:
        deadline = time.monotonic() + 100
        while not (tmp_path / "waits").is_dir() and time.monotonic() < deadline:
            time.sleep(0.05)
        removed.append((tmp_path / "waits").is_dir())
        cluster.remove_node(added, allow_graceful=False)

    remover = threading.Thread(target=remove)
    remover.start()
    calibrate(one, FolderSamples(place / "data"))
    remover.join()
    assert removed == [True]
    assert one.out.read_bytes() == alone()


def test_a_program_that_is_always_killed_is_a_clear_error(job, place, faulty):
    one = job(shards=3, octet=faulty("3/3", "kill -9 $$"))
    with pytest.raises(OctetRayError, match=r"a shard did not end in 6 tries: octet ended with -9; check the memory"):
        calibrate(one, FolderSamples(place / "data"))
    assert not one.out.exists()


def test_a_bad_sample_is_named_and_skipped_only_when_allowed(job, place, alone, octet, tmp_path):
    samples = tmp_path / "samples"
    samples.mkdir()
    for at in range(6):
        (samples / f"s{at}.npz").write_bytes((place / f"data/s{at}.npz").read_bytes())
    (samples / "s4.npz").write_text("no archive")
    with pytest.raises(OctetRayError, match=r"s4\.npz") as refused:
        calibrate(job(shards=3), FolderSamples(samples))
    assert refused.value.code == 3
    one = job(shards=3, skip_bad=True, keep=tmp_path)
    calibrate(one, FolderSamples(samples))
    assert one.out.read_bytes() == alone(samples=str(samples))
    told = subprocess.run(
        [octet, "merge", tmp_path / "pass1.stats", "--out", tmp_path / "again"], capture_output=True, text=True, check=True
    )
    assert "5 samples, 1 skipped" in told.stdout


def command(arguments: list[str], octet: Path) -> subprocess.CompletedProcess:
    call = [sys.executable, "-c", "from octet_ray.command import main; main()", *arguments]
    environment = {**os.environ, "OCTET": str(octet)}
    return subprocess.run(call, capture_output=True, text=True, env=environment, check=False)


def test_the_command_starts_a_local_ray_without_an_address(place, octet, alone, tmp_path):
    out = tmp_path / "q.onnx"
    own = ["calibrate", str(place / "m.onnx"), str(place / "data"), "--out", str(out), "--shards", "2"]
    done = command([*own, "--", "--method", "mse"], octet)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == alone("--method", "mse")
    assert "in integer arithmetic" in done.stdout


def test_a_cluster_that_is_not_there_is_a_clear_error(place, octet, tmp_path):
    own = ["calibrate", str(place / "m.onnx"), str(place / "data"), "--out", str(tmp_path / "q.onnx")]
    done = command([*own, "--address", "127.0.0.1:1"], octet)
    assert done.returncode == 1
    assert "can't reach the Ray cluster 127.0.0.1:1" in done.stderr.splitlines()[-1]
