"""Scales that are powers of two as AMD Quark chooses them, by its rules in numpy: the nearest power to the scale, and for weights by `mse`
the best of five.
"""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

CHANNELS = 6


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of two layers, its samples and weights."""
    folder, random = tmp_path_factory.mktemp("powers"), np.random.default_rng(3)
    weights = {"w": random.standard_normal((CHANNELS, 3, 3, 3)) * np.geomspace(0.1, 9, CHANNELS)[:, None, None, None],
               "v": random.standard_t(2, (4, CHANNELS, 3, 3))}  # fmt: skip
    weights = {name: np.float32(values) for name, values in weights.items()}
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["r"], name="relu"),
             helper.make_node("Conv", ["r", "v"], ["y"], name="second")]  # fmt: skip
    graph = helper.make_graph(nodes, "powers", [helper.make_tensor_value_info("x", 1, [1, 3, 12, 12])],
                              [helper.make_tensor_value_info("y", 1, [1, 4, 8, 8])],
                              [numpy_helper.from_array(values, name) for name, values in weights.items()])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "float.onnx")
    for index in range(3):
        np.savez(folder / f"{index}.npz", x=np.float32(random.standard_normal((1, 3, 12, 12)) * (index + 1)))
    return folder, weights


def quantized(program, files, folder, settings):
    """The ranges that were found, and every scale by the tensor it is of."""
    source, target = files[0], folder / "out.onnx"
    config, ranges = folder / "settings.json", folder / "ranges.json"
    config.write_text(json.dumps({"guard": False, "method": "minmax", **settings}))
    command = [program, "quantize", source / "float.onnx", "--calib", *sorted(source.glob("*.npz")), "--out", target,
               "--config", config, "--save-ranges", ranges]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    graph = onnx.load(target).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    pairs = {node.input[0]: constants[node.input[1]] for node in graph.node if node.op_type.endswith("uantizeLinear")}
    return json.loads(ranges.read_text()), pairs


def nearest(scale):
    return np.float32(2.0 ** np.rint(np.log2(np.float64(scale))))


@pytest.mark.parametrize("element, symmetric, steps", [("i8", True, 254), ("u8", False, 255)])
def test_the_nearest_power_of_two(element, symmetric, steps, program, files, tmp_path):
    activations = {"type": element, "symmetric": symmetric, "power_of_two": "nearest"}
    weights = {"power_of_two": "nearest", "per_channel": False}
    ranges, scales = quantized(program, files, tmp_path, {"activations": activations, "weights": weights})
    below = 0
    for name in ("x", "r"):
        low, high = min(ranges[name][0], 0), max(ranges[name][1], 0)
        whole = (2 * max(-low, high) if symmetric else high - low) / steps
        assert scales[name] == nearest(whole)
        below += scales[name] < whole
    for name, values in files[1].items():
        scale = np.abs(values).max() / 127
        assert scales[f"{name}_quantized"] == nearest(scale)
        below += scales[f"{name}_quantized"] < scale
    assert below, "no scale is one that `true` would not have"


@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_have_the_best_of_five(per_channel, program, files, tmp_path):
    weights = {"power_of_two": "nearest", "method": "mse", "per_channel": per_channel}
    scales = quantized(program, files, tmp_path, {"weights": weights})[1]
    other = 0
    for name, values in files[1].items():
        rows = values.reshape(len(values) if per_channel else 1, -1).astype(np.float64)
        for row, found in zip(rows, np.atleast_1d(scales[f"{name}_quantized"]), strict=True):
            first = nearest(np.abs(row).max() / 127)
            tried = [first * factor for factor in (2, 1, 0.5, 0.25, 0.125)]
            costs = [np.square(np.clip(np.rint(row / scale), -127, 127) * scale - row).sum() for scale in tried]
            assert found == tried[int(np.argmin(costs))]
            other += found != first
    assert other, "the nearest is always the best"
