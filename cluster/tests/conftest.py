"""A small model, its samples, and what one run of the native program makes of them."""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

WITHOUT_RAY = os.environ.get("OCTET_WITHOUT_RAY")
SAMPLES = 20
SHAPE = [1, 3, 8, 8]


@pytest.fixture(scope="session")
def octet() -> Path:
    return Path(os.environ["OCTET"])


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    """A folder with `m.onnx` and a folder `data` of samples."""
    folder = tmp_path_factory.mktemp("place")
    numbers = np.random.default_rng(40)

    def weight(name: str, *shape: int):
        return numpy_helper.from_array(numbers.normal(size=shape).astype(np.float32), name)

    constants = [weight("w1", 4, 3, 3, 3), weight("b1", 4), weight("w2", 2, 4, 1, 1), weight("b2", 2)]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "w2", "b2"], ["y"], "second"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in
             (("x", SHAPE), ("y", [1, 2, 8, 8]))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "m.onnx")
    (folder / "data").mkdir()
    for at in range(SAMPLES):
        np.savez(folder / f"data/s{at}.npz", x=numbers.normal(size=SHAPE).astype(np.float32) * (1 + at % 5))
    return folder


@pytest.fixture(scope="session")
def alone(octet, place):
    """The bytes of one run with these settings."""
    made: dict[tuple, bytes] = {}

    def result(*settings: str, samples: str = "data") -> bytes:
        key = (*settings, samples)
        if key not in made:
            out = place / "alone.onnx"
            arguments = ["quantize", "m.onnx", "--samples", samples, "--out", str(out), *settings]
            subprocess.run([octet, *arguments], cwd=place, check=True, capture_output=True)
            made[key] = out.read_bytes()
        return made[key]

    return result
