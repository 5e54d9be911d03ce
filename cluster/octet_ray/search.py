"""A search under a budget on a cluster: each pass of measurements in shards, the result on this machine."""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from . import program
from .calibration import Job, run_here, send_model, send_program, shard_options, shards_of
from .node_files import send
from .samples import FolderSamples
from .shards import Work, run_shards


@dataclass(kw_only=True)
class Search(Job):
    """A search: the float model, the budget as octet takes it, and files of the result."""

    model: Path
    budget: str
    # Options of the last step, such as `--out` and `--json`.
    result: list[str] = field(default_factory=list)


def search(job: Search, samples: FolderSamples) -> str:
    """Searches on the cluster that Ray is connected to, and returns the result as octet prints it."""
    octet = program.find(job.octet)
    named, options = shard_options(job)
    program_files, place_of_octet = send_program(octet)
    files = [*program_files, *send_model(octet, job.model, "model"), *named]
    bad = ["--bad-samples", "skip" if job.skip_bad else "stop"]
    own = ["--budget", job.budget, *job.settings, *job.reading, *bad]
    here = ["search", str(job.model), "--samples", str(samples.path), *own]
    there = ["search", f"{{files}}/model/{job.model.name}", "--budget", job.budget, *options]
    with tempfile.TemporaryDirectory() as folder:
        place = job.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        passes: list[Path] = []
        while True:
            stats = ["--stats", *map(str, passes)] if passes else []
            plan = json.loads(run_here(octet, [*here, *stats, "--plan"]))
            if plan["pass"] is None:
                return run_here(octet, [*here, *stats, *job.result])
            sent = [send(path) for path in passes]
            after = ["--stats", *(f"{{files}}/{one.name}" for one in sent)] if sent else []
            work = Work([*files, *sent], place_of_octet, [*there, *after], "--save-stats")
            parts = samples.shards(shards_of(job, plan["parts"]))
            passes.append(place / f"pass{len(passes) + 1}.stats")
            passes[-1].write_bytes(run_shards(work, parts, job.threads, job.report))
