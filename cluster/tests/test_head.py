"""The command when the head of its cluster is lost in the middle of a run."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import WITHOUT_RAY

if WITHOUT_RAY:
    pytest.skip(WITHOUT_RAY, allow_module_level=True)

# Ray ends a process whose head is away for this long.
PATIENCE = {"RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
# A cluster in a process of its own, because Ray ends processes that lose their head. It prints its
# address; a line on its input takes the head away.
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
cluster.wait_for_nodes()
print(cluster.address, flush=True)
sys.stdin.readline()
cluster.head_node.kill_gcs_server(check_alive=False)
print("killed", flush=True)
sys.stdin.readline()
cluster.shutdown()
"""


def begun_cluster() -> tuple[subprocess.Popen, str]:
    """The process of a cluster, and its address; the address is empty if Ray could not start in time."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **PATIENCE},
        start_new_session=True,
    )
    return process, process.stdout.readline().strip()


def ended_cluster(process: subprocess.Popen) -> None:
    """Ends the process and its nodes, which no head can end."""
    try:
        process.communicate(timeout=20)
    except (subprocess.TimeoutExpired, BrokenPipeError):
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


@pytest.fixture
def head():
    """A cluster with a head that can be taken away. A machine that is busy with other tests may need
    another try."""
    for _ in range(3):
        process, address = begun_cluster()
        if address:
            break
        ended_cluster(process)
    process.address = address
    yield process
    ended_cluster(process)


def waiting(octet, tmp_path):
    """The program; its shards never end. The file `begun` tells that one has begun."""
    program = tmp_path / "octet"
    program.write_text(
        f"#!/usr/bin/env bash\ncase \" $* \" in *' --shard '*) touch {tmp_path}/begun; exec sleep 300;; esac\nexec {octet} \"$@\"\n"
    )
    program.chmod(0o755)
    return program


def begun(place, octet, tmp_path, address: str) -> subprocess.Popen:
    """The command, when a shard has begun."""
    call = [sys.executable, "-c", "from octet_ray.command import main; main()", "calibrate", place / "m.onnx", place / "data"]
    call += ["--out", tmp_path / "q.onnx", "--shards", "2", "--address", address]
    environment = {**os.environ, **PATIENCE, "OCTET": str(waiting(octet, tmp_path)), "OCTET_RAY_CACHE": str(tmp_path / "cache")}
    # Jobs in the background of a shell ignore SIGINT, as those of `make test` do.
    heeds = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heeds)
    deadline = time.monotonic() + 100
    while not (tmp_path / "begun").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "begun").exists(), process.stderr.read() if process.poll() is not None else "no shard began"
    return process


def test_a_lost_head_is_a_clear_error(head, place, octet, tmp_path):
    process = begun(place, octet, tmp_path, head.address)
    head.stdin.write("\n")
    head.stdin.flush()
    assert head.stdout.readline() == "killed\n"
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.splitlines()[-1] == (
        "octet-ray: the connection to the head of the Ray cluster was lost; no file was replaced; "
        "check the head with `ray status`, and start the command again"
    )
    assert not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_command_says_so(sent, head, place, octet, tmp_path):
    process = begun(place, octet, tmp_path, head.address)
    # A terminal sends SIGINT to all processes of the command.
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout.split()
    if sent == signal.SIGINT:
        for child in children[:1]:
            os.kill(int(child), sent)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.splitlines()[-1] == "octet-ray: stopped; no file was replaced"
    assert not (tmp_path / "q.onnx").exists()
