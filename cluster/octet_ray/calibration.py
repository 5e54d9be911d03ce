"""A calibration or a comparison on a cluster: passes in shards, then one step on this machine."""

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import ray

from . import program
from .errors import OctetRayError
from .node_files import SentFile, send
from .shards import Progress, Work, run_shards, to_stderr

# Most shards of one processor: enough to even out slow samples and lost nodes.
SHARDS_OF_A_SLOT = 4
# Options of octet whose value is a file, which goes to the nodes.
FILE_OPTIONS = ("--config", "--labels", "--tokenizer", "--sensitivities")
# Opening the model costs about as much as five samples. A shard has at least this many samples where
# there is more than one shard for each processor, and where there is not.
MANY_SAMPLES = 100
FEWEST_SAMPLES = 8


@dataclass
class Job:
    """What all work on a cluster has in common."""

    # Options of octet, and those that concern samples.
    settings: list[str] = field(default_factory=list)
    reading: list[str] = field(default_factory=list)
    # The native program, or `command/octet.js` of the npm package; without it, $OCTET or `octet` on the path.
    octet: str | None = None
    # Number of shards of a pass; by default chosen for the cluster.
    shards: int | None = None
    # Threads of each shard, each on a processor of its own.
    threads: int = 1
    # True to leave out samples that can't be used, and to count them.
    skip_bad: bool = False
    # Folder that receives the merged statistics of each pass.
    keep: Path | None = None
    report: Callable[[Progress], None] = to_stderr


@dataclass(kw_only=True)
class Calibration(Job):
    """A calibration: the float model, and the file of the quantized one."""

    model: Path
    out: Path


@dataclass(kw_only=True)
class Comparison(Job):
    """A comparison of a float model with the model quantized from it."""

    float: Path
    quantized: Path


def shard_count(samples: int, slots: int) -> int:
    """Number of shards for a number of samples on a number of processors."""
    several = min(SHARDS_OF_A_SLOT, max(1, samples // (MANY_SAMPLES * slots)))
    return max(1, min(several * slots, math.ceil(samples / FEWEST_SAMPLES)))


def send_program(octet: Path) -> tuple[list[SentFile], str]:
    """Sends the program; returns its files and its place among a node's files.

    The npm package runs from its folder, so the files of its command go together.
    """
    if not program.is_package(octet):
        return [send(octet, "octet")], "octet"
    package = octet.parent.parent
    paths = [package / "package.json", *sorted(octet.parent.iterdir())]
    sent = [send(path, f"package/{path.relative_to(package)}") for path in paths if path.is_file()]
    return sent, f"package/{octet.relative_to(package)}"


def data_files(octet: Path, model: Path) -> list[Path]:
    """Files of external data that the model names."""
    told = json.loads(program.run(octet, ["inspect", str(model), "--json"]))
    return [model.parent / one["name"] for one in told["dataFiles"]]


def send_model(octet: Path, model: Path, folder: str) -> list[SentFile]:
    """Sends a model with its data files, into a folder of the nodes."""
    if not model.is_file():
        raise OctetRayError(f"there is no model {model}; check the path", 3)
    paths = [model, *data_files(octet, model)]
    sent = [send(path, f"{folder}/{path.relative_to(model.parent)}") for path in paths]
    # Texts need the tokenizer, which lies beside the model or in the folder above.
    for name in ("tokenizer.json", "tokenizer_config.json"):
        places = (model.parent / name, model.parent.parent / name)
        sent += [send(path, f"{folder}/{name}") for path in places if path.is_file()][:1]
    return sent


def send_named(options: list[str]) -> tuple[list[SentFile], list[str]]:
    """Sends the files that options name, and returns the options as the nodes take them."""
    files: list[SentFile] = []
    changed = list(options)
    for at, option in enumerate(options):
        name, joined, value = option.partition("=")
        if name not in FILE_OPTIONS:
            continue
        value = value if joined else options[at + 1] if at + 1 < len(options) else ""
        if value.lstrip().startswith("{") or not Path(value).is_file():
            continue
        files.append(send(Path(value), f"options/{len(files)}/{Path(value).name}"))
        there = f"{{files}}/{files[-1].name}"
        changed[at if joined else at + 1] = f"{name}={there}" if joined else there
    return files, changed


def calibrate(job: Calibration, samples) -> str:
    """Calibrates on the cluster that Ray is connected to, and writes the quantized model."""
    octet = program.find(job.octet)
    named, options = shard_options(job)
    program_files, place_of_octet = send_program(octet)
    files = [*program_files, *send_model(octet, job.model, "model"), *named]
    parts = samples.shards(shards_of(job, samples.count()))
    with tempfile.TemporaryDirectory() as folder:
        place = job.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        passes: list[Path] = []
        while _next_pass(octet, job, passes):
            sent = [send(path) for path in passes]
            after = ["--after", *(f"{{files}}/{one.name}" for one in sent)] if sent else []
            own = ["observe", f"{{files}}/model/{job.model.name}", *after, *options]
            work = Work([*files, *sent], place_of_octet, own)
            passes.append(place / f"pass{len(passes) + 1}.stats")
            passes[-1].write_bytes(run_shards(work, parts, job.threads, job.report))
        stats = ["--stats", *map(str, passes)]
        return run_here(octet, ["quantize", str(job.model), *job.settings, *stats, "--out", str(job.out)])


def compare(job: Comparison, samples) -> str:
    """Compares on the cluster that Ray is connected to, and returns the result as octet prints it."""
    octet = program.find(job.octet)
    named, options = shard_options(job)
    program_files, place_of_octet = send_program(octet)
    files = [*program_files, *named]
    files += [*send_model(octet, job.float, "float"), *send_model(octet, job.quantized, "quantized")]
    models = [f"{{files}}/float/{job.float.name}", f"{{files}}/quantized/{job.quantized.name}"]
    parts = samples.shards(shards_of(job, samples.count()))
    work = Work(files, place_of_octet, ["compare", *models, *options], "--save-stats")
    with tempfile.TemporaryDirectory() as folder:
        place = job.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        merged = place / "comparison.stats"
        merged.write_bytes(run_shards(work, parts, job.threads, job.report))
        own = [str(job.float), str(job.quantized), *job.settings, "--stats", str(merged)]
        return run_here(octet, ["compare", *own])


def shards_of(job: Job, parts: int) -> int:
    """Number of shards of a pass that can be divided into so many parts."""
    slots = max(1, int(ray.cluster_resources().get("CPU", 1)) // job.threads)
    return job.shards or shard_count(parts, slots)


def shard_options(job: Job) -> tuple[list[SentFile], list[str]]:
    """Files and options of a shard's run."""
    files, options = send_named([*job.settings, *job.reading])
    bad = "skip" if job.skip_bad else "stop"
    return files, [*options, "--threads", str(job.threads), "--bad-samples", bad]


def run_here(octet: Path, arguments: list[str]) -> str:
    """Runs the program on this machine."""
    try:
        return program.run(octet, arguments)
    except program.Interrupted as error:
        raise OctetRayError(str(error)) from None


def _next_pass(octet: Path, job: Calibration, passes: list[Path]) -> bool:
    after = ["--after", *map(str, passes)] if passes else []
    plan = ["observe", str(job.model), *job.settings, *job.reading, *after, "--plan"]
    return json.loads(run_here(octet, plan))["pass"] is not None
