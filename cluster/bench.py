"""Measures shards: `scripts/bench-cluster.sh [merge] [overhead]`.

merge     time, CPU time and peak memory of merging 1,000 shards of EfficientNet-Lite0
overhead  two workers of a local Ray on 500 samples against one process with two threads
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

OCTET = Path(os.environ["OCTET"])
MODEL = Path(os.environ["OCTET_BENCH_MODEL"])
SHARDS = 1000
# Shards that are really observed; the others are copies of them under other numbers.
OBSERVED = 10
SAMPLES = int(os.environ.get("OCTET_BENCH_SAMPLES", "500"))
MIB = 1 << 20


def timed(arguments: list[str]) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds and peak memory in MiB of a run of the native program."""
    began = time.monotonic()
    with subprocess.Popen([str(OCTET), *arguments], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"octet {arguments[0]} ended with {process.returncode}")
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def renumbered(file: bytes, number: int) -> bytes:
    """The file of a shard as that of another one."""
    length, payload = struct.unpack_from("<IQ", file, 12)
    header = json.loads(file[24 : 24 + length])
    for source in header["sources"].values():
        source.update(count=SHARDS, shards=[[number, number]])
    text = json.dumps(header).encode()
    content = file[:12] + struct.pack("<IQ", len(text), payload) + text + file[24 + length : -32]
    return content + hashlib.sha256(content).digest()


def merge(folder: Path) -> None:
    """Prints time and memory of merging all shards, of a first pass and of Gram matrices."""
    first = folder / "first.stats"
    timed(["observe", str(MODEL), "--demo", "4", "--out", str(first)])
    for name, settings in (("first pass", []), ("Gram matrices", ["--rounding", "gptq", "--after", str(first)])):
        # Gram matrices are large, so fewer shards are merged.
        count = SHARDS if not settings else 50
        observed = []
        for at in range(OBSERVED if not settings else 1):
            out = folder / f"observed{at}"
            shard = ["--demo", "4" if settings else str(OBSERVED * 2), "--shard", "1/1" if settings else f"{at + 1}/{OBSERVED}"]
            timed(["observe", str(MODEL), *shard, *settings, "--out", str(out)])
            observed.append(out.read_bytes())
        paths = []
        for number in range(1, count + 1):
            paths.append(folder / f"{number}.stats")
            paths[-1].write_bytes(renumbered(observed[number % len(observed)], number))
        size = sum(path.stat().st_size for path in paths) / count / MIB
        wall, cpu, peak = timed(["merge", *map(str, paths), "--out", str(folder / "all")])
        print(f"{name}: {count} shards of {size:.2f} MiB merge in {wall:.1f} s ({cpu:.1f} CPU s), peak {peak:.0f} MiB")
        for path in paths:
            path.unlink()


def seconds_of_ray() -> float:
    """CPU seconds of this process, of Ray's processes and of the ended children of all of them."""
    tick = os.sysconf("SC_CLK_TCK")
    session = str(Path(ray_session()))
    total = 0.0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            own = entry.name == str(os.getpid())
            mine = own or session in (entry / "cmdline").read_text() or session in (entry / "environ").read_text()
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if mine or "ray::" in (entry / "cmdline").read_text():
            total += sum(int(field) for field in fields[11:15]) / tick
    return total


def ray_session() -> str:
    """The folder of the local Ray."""
    import ray

    return ray._private.worker._global_node.get_session_dir_path()


def overhead(folder: Path) -> None:
    """Prints CPU and wall time of two workers against one process."""
    import ray

    from octet_ray import Calibration, FolderSamples, calibrate

    samples = folder / "samples"
    samples.mkdir()
    numbers = np.random.default_rng(1)
    for at in range(SAMPLES):
        values = numbers.random(size=(1, 3, 224, 224), dtype=np.float32)
        np.save(samples / f"s{at}.npy", values)
    out = folder / "alone.onnx"
    wall, cpu, _ = timed(["quantize", str(MODEL), "--samples", str(samples), "--threads", "2", "--out", str(out)])
    print(f"one process, two threads: {SAMPLES} samples in {wall:.1f} s ({cpu:.1f} CPU s)")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    job = Calibration(model=MODEL, out=folder / "shared.onnx", octet=str(OCTET), report=lambda progress: None)
    began, before = time.monotonic(), seconds_of_ray()
    calibrate(job, FolderSamples(samples))
    shared = time.monotonic() - began
    used = seconds_of_ray() - before
    same = out.read_bytes() == job.out.read_bytes()
    print(f"two workers of Ray: {shared:.1f} s ({used:.1f} CPU s), {100 * (used / cpu - 1):+.1f} % CPU, "
          f"{100 * (shared / wall - 1):+.1f} % time, {'the same' if same else 'OTHER'} bytes")
    ray.shutdown()


def main() -> None:
    """Runs the benches that are named, or all."""
    benches = {"merge": merge, "overhead": overhead}
    for name in sys.argv[1:] or benches:
        with tempfile.TemporaryDirectory() as folder:
            benches[name](Path(folder))


main()
