"""A pass over the samples: shards run as tasks, and their statistics merge in a tree.

Ray runs a task again when its worker or node is lost, and computes a lost result again. A shard's
bytes do not depend on the try, and a merge refuses a shard that it has already, so nothing is counted
twice.
"""

import sys
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ray

from . import program
from .errors import Interrupted, OctetRayError
from .node_files import SentFile, receive

# Files that one task merges.
FAN_IN = 16
# Tries after a shard's worker was lost or its program was killed.
TRIES = 5


@dataclass(frozen=True)
class Work:
    """What all shards of a pass have in common."""

    files: list[SentFile]
    program: str
    # Arguments before those of the samples; `{files}` is the folder of `files` on the node.
    arguments: list[str]
    # Option of the file that the shard writes.
    out: str = "--out"


@ray.remote(num_returns=2)
def observe(work: Work, shard) -> tuple[int, bytes]:
    """Runs a shard and returns the size and the content of the file of its statistics.

    The size tells the driver of the end, or of an error, while the file stays on the node.
    """
    here = receive(work.files)
    arguments = [one.replace("{files}", str(here)) for one in work.arguments]
    with tempfile.TemporaryDirectory() as folder:
        out, samples = Path(folder) / "shard.stats", Path(folder) / "samples"
        samples.mkdir()
        program.run(here / work.program, [*arguments, *shard.arguments(samples), work.out, str(out)])
        return out.stat().st_size, out.read_bytes()


@ray.remote(num_returns=2)
def merge(work: Work, *parts: bytes) -> tuple[int, bytes]:
    """Merges files of statistics; the results are as those of `observe`."""
    here = receive(work.files)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, part in enumerate(parts):
            paths.append(str(Path(folder) / f"{number}.stats"))
            Path(paths[-1]).write_bytes(part)
        out = Path(folder) / "merged.stats"
        program.run(here / work.program, ["merge", *paths, "--out", str(out), "--threads", "1"])
        return out.stat().st_size, out.read_bytes()


@dataclass
class Progress:
    """Shards that have ended, and merges."""

    shards: int
    done: int = 0
    merges: int = 0


def run_shards(work: Work, shards: list, threads: int, report: Callable[[Progress], None]) -> bytes:
    """Runs all shards and returns their merge."""
    retried = {"max_retries": TRIES, "retry_exceptions": [Interrupted]}
    progress = Progress(len(shards))
    common = ray.put(work)
    # Files by the size that announces them.
    observing = dict(observe.options(num_cpus=threads, **retried).remote(common, shard) for shard in shards)
    merging: dict = {}
    ready: deque = deque()
    try:
        while observing or merging or len(ready) > 1:
            # A merge waits for FAN_IN files, or for the end of all shards.
            while len(ready) >= FAN_IN or (len(ready) > 1 and not observing and not merging):
                parts = [ready.popleft() for _ in range(min(FAN_IN, len(ready)))]
                size, file = merge.options(num_cpus=1, **retried).remote(common, *parts)
                merging[size] = file
            done, _ = ray.wait([*observing, *merging], num_returns=1)
            for size in done:
                _result(size)
                if size in observing:
                    ready.append(observing.pop(size))
                    progress.done += 1
                else:
                    ready.append(merging.pop(size))
                    progress.merges += 1
            report(progress)
        return _result(ready.pop())
    except BaseException:
        for size in [*observing, *merging]:
            ray.cancel(size, force=True)
        raise


def _result(reference):
    """The result of a task. Errors become sentences."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, OctetRayError):
            raise OctetRayError(cause.message, cause.code) from None
        if isinstance(cause, Interrupted):
            raise OctetRayError(
                f"a shard did not end in {TRIES + 1} tries: {cause}; check the memory and the disks of the nodes"
            ) from None
        first = (str(cause).splitlines() or [""])[0]
        raise OctetRayError(f"a task failed: {type(cause).__name__}: {first}; check the nodes and start again") from None
    except ray.exceptions.RayError as error:
        lost = str(error).splitlines()[0]
        raise OctetRayError(
            f"the cluster lost a shard's task and could not run it again: {lost}; no file was replaced: "
            "check the nodes and start again"
        ) from None


def to_stderr(progress: Progress) -> None:
    """Prints the progress on one line of the error stream, if that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{progress.done} of {progress.shards} shards, {progress.merges} merges", end="", file=sys.stderr)
