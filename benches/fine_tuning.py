#!/usr/bin/env python3
"""Fine-tuned models beside those of AMD Quark, ONNX Runtime and NNCF: error, answers, seconds, memory.

    OCTET=PROGRAM python benches/fine_tuning.py --peers PYTHON [--only QUANTIZER...] [MODEL...]

PYTHON is that of an environment with the peers, which a checkout does not install (six gigabytes):

    python3 -m venv DIR && DIR/bin/pip install amd-quark==0.13 nncf==3.4.0 torch onnxruntime ninja setuptools

Each quantizer runs in a process of its own on the same files; seconds and the peak of memory are
those of the process, imports included. The models are judged in ONNX Runtime on samples that did
not calibrate. All have 8-bit weights and activations; Quark's settings are its own for A8W8.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = ["ppocr_cls", "squeezenet", "efficientnet_lite0"]
OURS = {
    "Octet auto": ["--method", "auto"],
    "Octet closed form": ["--method", "auto", "--rounding", "closed-form"],
    "Octet AdaRound": ["--method", "auto", "--rounding", "gptq", "--finetune", "adaround"],
    "Octet AdaQuant": ["--method", "auto", "--rounding", "closed-form", "--finetune", "adaquant"],
}
PEERS = ["ONNX Runtime", "NNCF", "Quark", "Quark AdaRound", "Quark AdaQuant"]


def load(folder):
    import numpy as np

    return [dict(np.load(path)) for path in sorted(Path(folder).glob("*.npz"))]


class Reader:
    """The samples as ONNX Runtime's quantizer and Quark read them."""

    def __init__(self, samples):
        self.samples, self.at = samples, 0

    def get_next(self):
        self.at += 1
        return self.samples[self.at - 1] if self.at <= len(self.samples) else None

    def reset_iter(self):
        self.at = 0

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, at):
        return self.samples[at]


def reader(samples):
    """The samples as ONNX Runtime's quantizer and Quark check their type."""
    from onnxruntime.quantization import CalibrationDataReader

    return type("CheckedReader", (Reader, CalibrationDataReader), {})(samples)


def onnx_runtime(model, samples, out):
    from onnxruntime.quantization import QuantType, quantize_static

    quantize_static(model, out, reader(samples), weight_type=QuantType.QInt8, per_channel=True)


def nncf(model, samples, out):
    import nncf
    import onnx

    onnx.save(nncf.quantize(onnx.load(model), nncf.Dataset(samples), subset_size=len(samples)), out)


def quark(tuning):
    def quantize(model, samples, out):
        from quark import onnx as quark_onnx

        config = getattr(quark_onnx, f"A8W8{tuning}_QCONFIG")
        quark_onnx.ModelQuantizer(config).quantize_model(model, out, reader(samples))

    return quantize


QUANTIZERS = {
    "ONNX Runtime": onnx_runtime, "NNCF": nncf, "Quark": quark(""),
    "Quark AdaRound": quark("_ADAROUND"), "Quark AdaQuant": quark("_ADAQUANT"),
}  # fmt: skip


def measured(command, folder):
    """Seconds and peak bytes of a process; a folder takes what it writes beside its result."""
    import process_use

    # Quark builds its operators with the ninja of its environment.
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    used, _ = process_use.measured(["env", "-C", folder, *command], env={**os.environ, "PATH": path})
    return used["seconds"], used["peak_bytes"]


def tried(command, models, out, judged):
    """The mark of the model that a quantizer took, the result's answers, seconds and peak bytes. Without
    answers the mark is the reason.

    Quantizers that refuse the model, or make one that does not load, get it as Octet prepares it.
    """
    import reference_runtimes

    for model, mark in zip(models, ["", " †"]):
        out.unlink(missing_ok=True)
        try:
            seconds, peak = measured(command(model), out.parent)
            return mark, reference_runtimes.run(out, judged), seconds, peak
        except Exception as error:
            why = error
    lines = str(why).strip().splitlines()
    return lines[-1] if lines else type(why).__name__, None, 0, 0


def print_table(header, names, rows):
    """Prints the rows of each model of the corpus."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
    from corpus import Corpus

    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for row in rows(name, Corpus(), Path(folder)):
                print("| " + " | ".join(row) + " |", flush=True)


def rows(name, corpus, peers, wanted, folder):
    import reference_runtimes
    from tasks import TASKS, first

    task = TASKS[name](corpus)
    part = task.folds[0]
    samples = reference_runtimes.save_samples(folder / "samples", part.calibration)
    source, prepared = corpus.model(name), folder / "prepared.onnx"
    before = reference_runtimes.run(source, part.judged)
    reference = [first(outputs) for outputs in before]
    right, of = task.right(before, part.truths)
    yield name, "float", f"{right} of {of} {task.unit}", "", "", ""
    octet = [os.environ["OCTET"], "quantize", source, "--calib", samples, "--out", folder / "octet.onnx"]
    subprocess.run([*octet, "--save-prepared", prepared], check=True, capture_output=True)
    for label in wanted or [*OURS, *(PEERS if peers else [])]:
        out = folder / "out.onnx"

        def command(model, label=label, out=out):
            ours = [octet[0], "quantize", model, "--calib", samples, "--out", out, *OURS.get(label, [])]
            return ours if label in OURS else [peers, Path(__file__).resolve(), "--one", label, model, samples, out]

        mark, answers, seconds, peak = tried(command, (source, prepared), out, part.judged)
        if answers is None:
            print(f"{name}, {label}: {mark}", file=sys.stderr)
            yield name, label, "fails", "", "", ""
            continue
        right, of = task.right(answers, part.truths)
        noise = reference_runtimes.sqnr(reference, [first(outputs) for outputs in answers])
        yield name, label + mark, f"{right} of {of}", f"{noise:.1f} dB", f"{seconds:.1f} s", f"{peak / 2**20:.0f} MiB"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--peers", help="the python of an environment with the peers")
    parser.add_argument("--only", nargs="+", choices=[*OURS, *PEERS], metavar="QUANTIZER", help="only these, such as `Quark AdaQuant`")
    parser.add_argument("--one", nargs=4, metavar=("PEER", "MODEL", "SAMPLES", "OUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        peer, model, samples, out = args.one
        QUANTIZERS[peer](model, load(samples), out)
        return
    header = ["model", "quantizer", "right", "SQNR", "time", "peak memory"]
    print_table(header, args.models or MODELS, lambda name, corpus, folder: rows(name, corpus, args.peers, args.only, folder))


if __name__ == "__main__":
    main()
