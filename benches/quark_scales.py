#!/usr/bin/env python3
"""Compares scales with those of AMD Quark for the same model, with corresponding settings by
docs/settings.md.

    python benches/quark_scales.py [NAME...]

Quark needs PyTorch, six gigabytes, so a checkout does not install it. Create an environment with

    python3 -m venv DIR && DIR/bin/pip install amd-quark==0.13 torch onnxruntime ninja setuptools

and run this with its python, with DIR/bin on the PATH and OCTET set to a built `octet`. For each
method it prints the number of tensors that both quantize, and how many of them have the same scale
(to a millionth) and zero point: activations, weights and biases.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType
from quark.onnx import Config, ModelQuantizer, PowerOfTwoMethod, QuantizationConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
from corpus import Corpus  # noqa: E402

SAMPLES = 4
NEAREST = {"type": "i8", "symmetric": True, "power_of_two": "nearest"}
ONE_SCALE = {"per_channel": False}
# label → settings of Quark, its further options, settings of Octet
METHODS = {
    "minmax": ((CalibrationMethod.MinMax, QuantType.QUInt8), {}, {"method": "minmax", "weights": ONE_SCALE}),
    "NonOverflow": ((PowerOfTwoMethod.NonOverflow, QuantType.QInt8), {"ActivationSymmetric": True, "WeightSymmetric": True},
                    {"method": "minmax", "activations": NEAREST, "weights": {**NEAREST, **ONE_SCALE}}),
    "MinMSE": ((PowerOfTwoMethod.MinMSE, QuantType.QInt8), {"ActivationSymmetric": True, "WeightSymmetric": True},
               {"method": "mse-power-of-two", "activations": NEAREST, "weights": {**NEAREST, **ONE_SCALE, "method": "mse"}}),
}  # fmt: skip


class Reader(CalibrationDataReader):
    def __init__(self, paths):
        self.paths = paths
        self.left = iter(paths)

    def get_next(self):
        path = next(self.left, None)
        return None if path is None else dict(np.load(path))


def scales(path):
    """Scale and zero point of each activation, and of each weight or bias, by name."""
    graph = onnx.load(path).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    activations, weights = {}, {}
    for node in graph.node:
        if not node.op_type.endswith("uantizeLinear"):
            continue
        found = constants[node.input[1]], constants[node.input[2]].astype(np.int64)
        if node.input[0] in constants:
            weights[node.input[0].removesuffix("_quantized")] = found
        elif node.op_type.endswith("QuantizeLinear"):
            activations[node.input[0]] = found
    return activations, weights


def same(one, other):
    return (one[0].shape == other[0].shape and bool(np.allclose(one[0], other[0], rtol=1e-6, atol=0))
            and np.array_equal(one[1], other[1]))  # fmt: skip


def compare(name, corpus, folder):
    program = os.environ["OCTET"]
    source, samples = corpus.model(name), sorted(Path(corpus.samples(name)).glob("*.npz"))[:SAMPLES]
    prepared, theirs, ours, config = (folder / file for file in ("prepared.onnx", "theirs.onnx", "ours.onnx", "settings.json"))
    for label, ((method, element), options, settings) in METHODS.items():
        config.write_text(json.dumps({"guard": False, **settings}))
        command = [program, "quantize", source, "--calib", *samples, "--out", ours, "--config", config, "--save-prepared", prepared]
        subprocess.run(command, check=True, capture_output=True)
        quantization = QuantizationConfig(
            quant_format=QuantFormat.QDQ, calibrate_method=method, activation_type=element, weight_type=QuantType.QInt8,
            per_channel=False, optimize_model=False, include_cle=False, enable_npu_cnn=False, extra_options=options)  # fmt: skip
        ModelQuantizer(Config(global_quant_config=quantization)).quantize_model(str(prepared), str(theirs), Reader(samples))
        counted = []
        for mine, other in zip(scales(ours), scales(theirs)):
            both = [tensor for tensor in mine if tensor in other]
            counted.append(f"{sum(same(mine[tensor], other[tensor]) for tensor in both)} of {len(both)}")
        print(f"RESULT {name} {label}: activations {counted[0]}, weights and biases {counted[1]}", flush=True)


def main():
    corpus = Corpus()
    for name in sys.argv[1:] or ["squeezenet", "captcha_crnn"]:
        with tempfile.TemporaryDirectory() as folder:
            compare(name, corpus, Path(folder))


if __name__ == "__main__":
    main()
