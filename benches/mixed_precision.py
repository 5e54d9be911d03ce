#!/usr/bin/env python3
"""Mixed precision under a budget beside AMD Quark and NNCF: error, wide tensors, bytes, seconds, memory.

    OCTET=PROGRAM python benches/mixed_precision.py --peers PYTHON [MODEL...]

PYTHON is that of the environment of benches/fine_tuning.py. All begin with 8-bit weights and
activations, and raise what costs most until the calibration samples have the SQNR of the budget.
Octet and Quark may give an activation 16 bits; NNCF takes whole operators back to floats, because it
knows no 16 bits in ONNX. Each runs in a process of its own on the same files. The models are judged
in ONNX Runtime on samples that neither calibrated nor chose.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from fine_tuning import load, print_table, reader, tried

# Decibels on the samples that choose.
BUDGETS = {"ppocr_cls": 35, "squeezenet": 24, "efficientnet_lite0": 24}
PEERS = ["Quark", "NNCF"]


def run(model, samples):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [session.run(None, sample)[0].ravel().astype("float64") for sample in samples]


def sqnr(exact, values):
    """Decibels over all samples, as the samples that judge are measured; at most 100, which floats have."""
    import numpy as np

    signal = sum(float((np.asarray(one, "float64") ** 2).sum()) for one in exact)
    noise = sum(float(((np.asarray(one, "float64") - value) ** 2).sum()) for one, value in zip(exact, values))
    return min(100.0, 10 * np.log10(signal / noise)) if noise > 0 else 100.0


def quark(model, samples, budget, out):
    from quark import onnx as quark_onnx
    from quark.onnx.quantization.config.algorithm import AutoMixprecisionConfig
    from quark.onnx.quantization.config.spec import Int8Spec, QLayerConfig, UInt16Spec

    config = quark_onnx.A8W8_QCONFIG
    wide = QLayerConfig(activation=UInt16Spec(), weight=Int8Spec())
    # Quark's own is a mean of decibels, to which samples without any noise add a lot.
    distance = lambda exact, values: -sqnr([one[0] for one in exact], [one[0] for one in values])  # noqa: E731
    # Without a data size it measures one sample.
    mixed = AutoMixprecisionConfig(
        wide, data_size=len(samples), metric_distance_fn=distance, metric_threshold=-budget,
        metric_optimize_object="quality",
    )  # fmt: skip
    config.algo_config = [*(config.algo_config or []), mixed]
    quark_onnx.ModelQuantizer(config).quantize_model(model, out, reader(samples))


def nncf(model, samples, budget, out):
    import nncf
    import onnx

    reference = run(model, samples)

    def validate(candidate, dataset):
        values = run(candidate.SerializeToString(), list(dataset))
        return sqnr(reference, values), [sqnr([exact], [value]) for exact, value in zip(reference, values)]

    data = nncf.Dataset(samples)
    quantized = nncf.quantize_with_accuracy_control(
        onnx.load(model), data, data, validate, max_drop=100.0 - budget, drop_type=nncf.DropType.ABSOLUTE,
        subset_size=len(samples),
    )  # fmt: skip
    onnx.save(quantized, out)


QUANTIZERS = {"Quark": quark, "NNCF": nncf}


def counts(path):
    """Activations with 16 bits, and operators of floats among those that 8 bits would serve."""
    import onnx

    model = onnx.load(path)
    constants = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    wide, real, made_by = 0, 0, {name: node.op_type for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and len(node.input) > 2:
            wide += constants.get(node.input[2]) in (onnx.TensorProto.INT16, onnx.TensorProto.UINT16)
        if node.op_type in ("Conv", "Gemm", "MatMul") and made_by.get(node.input[0]) != "DequantizeLinear":
            real += 1
    return wide, real


def rows(name, corpus, peers, folder):
    import reference_runtimes
    from tasks import TASKS, first

    task, budget = TASKS[name](corpus), BUDGETS[name]
    part = task.folds[0]
    samples = reference_runtimes.save_samples(folder / "samples", part.calibration)
    source, prepared = corpus.model(name), folder / "prepared.onnx"
    out = folder / "out.onnx"
    before = reference_runtimes.run(source, part.judged)
    reference = [first(outputs) for outputs in before]
    octet, files = os.environ["OCTET"], ["--samples", samples, "--out", out]
    subprocess.run([octet, "quantize", source, *files, "--save-prepared", prepared], check=True, capture_output=True)
    bits = ["--budget", f"sqnr={budget}", "--weight-bits", "8", "--activation-bits", "8,16"]
    commands = {
        "Octet in 8 bits": lambda model: [octet, "quantize", model, *files],
        "Octet": lambda model: [octet, "search", model, *files, *bits],
    }
    for peer in PEERS if peers else []:
        program = [peers, Path(__file__).resolve(), "--one", peer]
        commands[peer] = lambda model, program=program: [*program, model, samples, str(budget), out]
    for label, command in commands.items():
        mark, answers, seconds, peak = tried(command, (source, prepared), out, part.judged)
        if answers is None:
            print(f"{name}, {label}: {mark}", file=sys.stderr)
            yield name, f"{budget} dB", label, "fails", "", "", "", "", ""
            continue
        right, of = task.right(answers, part.truths)
        noise = reference_runtimes.sqnr(reference, [first(outputs) for outputs in answers])
        wide, real = counts(out)
        size = out.stat().st_size / 1e6
        yield (
            name, f"{budget} dB", label + mark, f"{noise:.1f} dB", f"{right} of {of}", f"{wide} and {real}", f"{size:.2f} MB",
            f"{seconds:.1f} s", f"{peak / 2**20:.0f} MiB",
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--peers", help="the python of an environment with the peers")
    parser.add_argument("--one", nargs=5, metavar=("PEER", "MODEL", "SAMPLES", "BUDGET", "OUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        peer, model, samples, budget, out = args.one
        QUANTIZERS[peer](model, load(samples), float(budget), out)
        return
    header = ["model", "budget", "quantizer", "SQNR", "right", "of 16 bits, of floats", "size", "time", "peak memory"]
    print_table(header, args.models or BUDGETS, lambda name, corpus, folder: rows(name, corpus, args.peers, folder))


if __name__ == "__main__":
    main()
