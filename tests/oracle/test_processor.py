"""The answers on x86 without VNNI, which Octet emulates, held against ONNX Runtime on an emulated
Haswell (qemu). The outputs are equal, number by number.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import reference_runtimes
from onnx import TensorProto, helper
from schemes import build, node, weight

HERE = Path(__file__).resolve().parent


def convolutions():
    """Channels of three, an odd number, groups, depthwise, and a pointwise end."""
    nodes = [
        node("Conv", ["x", "a", "ab"], "c1", pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", ["c1"], "r1"),
        node("Conv", ["r1", "b"], "c2", pads=[1, 1, 1, 1], group=5), node("Relu", ["c2"], "r2"),
        node("Conv", ["r2", "c"], "c3", pads=[1, 1, 1, 1], group=2), node("Relu", ["c3"], "r3"),
        node("Conv", ["r3", "d"], "c4"), node("GlobalAveragePool", ["c4"], "y"),
    ]  # fmt: skip
    constants = [weight("a", 10, 3, 3, 3), weight("ab", 10), weight("b", 10, 2, 3, 3), weight("c", 8, 5, 3, 3), weight("d", 16, 8, 1, 1)]
    return build(nodes, constants, [("x", [1, 3, 16, 16])], [("y", [1, 16, 1, 1])])


def depthwise():
    nodes = [node("Conv", ["x", "a"], "c1"), node("Relu", ["c1"], "r1"),
             node("Conv", ["r1", "b"], "c2", pads=[1, 1, 1, 1], group=16), node("Relu", ["c2"], "y")]  # fmt: skip
    return build(nodes, [weight("a", 16, 8, 1, 1), weight("b", 16, 1, 3, 3)], [("x", [1, 8, 8, 8])], [("y", [1, 16, 8, 8])])


def products():
    """A MatMul with an odd depth, and Gemms in both orders."""
    nodes = [node("MatMul", ["x", "a"], "m"), node("Relu", ["m"], "r"), node("Gemm", ["r", "b", "bb"], "g", transB=1),
             node("Relu", ["g"], "s"), node("Gemm", ["s", "c"], "y")]  # fmt: skip
    constants = [weight("a", 33, 48), weight("b", 24, 48), weight("bb", 24), weight("c", 24, 10)]
    return build(nodes, constants, [("x", [7, 33])], [("y", [7, 10])])


MODELS = {make.__name__: make() for make in (convolutions, depthwise, products)}
# Settings, and True if sums are cut off with them. ONNX Runtime makes u8 of i8 activations on x86.
WAYS = {"i8": ("", True), "u8": ("weights: {type: u8}\n", False), "seven": ("weights: {reduce_range: true}\n", False),
        "dynamic": ("scheme: dynamic\n", True), "signed": ("activations: {type: i8, symmetric: true}\n", True)}  # fmt: skip
CASES = [(name, way) for name in MODELS for way in WAYS if way != "dynamic" or name == "products"]


def samples_of(model):
    value = model.graph.input[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    # Large numbers of one sign make large pairs.
    return [{value.name: np.random.default_rng(seed).uniform(-0.2, 1, shape).astype(np.float32)} for seed in range(3)]


@pytest.fixture(scope="module")
def made(program, tmp_path_factory):
    """Each quantized model, its sample, and the outputs on the emulated Haswell: one child process."""
    qemu = shutil.which("qemu-x86_64")
    assert qemu, "qemu-x86_64 is missing; scripts/setup.sh test installs the package qemu-user"
    folder, jobs = tmp_path_factory.mktemp("processor"), []
    for name, way in CASES:
        model, place = MODELS[name], folder / f"{name}-{way}"
        place.mkdir()
        # Weights of one sign and size, so that two neighbours exceed 16 bits.
        model = onnx.ModelProto.FromString(model.SerializeToString())
        for tensor in model.graph.initializer:
            numbers = onnx.numpy_helper.to_array(tensor)
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.abs(numbers), tensor.name))
        onnx.save(model, place / "float.onnx")
        samples = samples_of(model)
        given = reference_runtimes.save_samples(place / "samples", samples)
        (place / "config.yaml").write_text(WAYS[way][0] + ("method: minmax\nguard: false\nbias_correction: false\n" if way != "dynamic" else ""))
        command = [program, "quantize", place / "float.onnx", "--config", place / "config.yaml", "--out", place / "int8.onnx"]
        done = subprocess.run([*command, *([] if way == "dynamic" else ["--calib", given])], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        np.savez(place / "in.npz", **samples[0])
        jobs += [place / "int8.onnx", place / "in.npz", place / "haswell.npz"]
    child = [qemu, "-cpu", "Haswell", sys.executable, HERE / "on_haswell.py", *jobs]
    done = subprocess.run(child, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def run_model(program, place, *options):
    out = place / f"out{len(options)}.npz"
    command = [program.parent / "examples" / "run_model", place / "int8.onnx", place / "in.npz", out, *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(np.load(out)), json.loads(done.stdout)["nodes"]


@pytest.mark.parametrize("name,way", CASES)
def test_emulated_outputs_equal_those_of_the_processor(program, made, name, way):
    place, cut = made / f"{name}-{way}", WAYS[way][1]
    there = dict(np.load(place / "haswell.npz"))
    emulated, nodes = run_model(program, place, "--pairs")
    exact, _ = run_model(program, place)
    for output, wanted in there.items():
        differs = np.abs(exact[output] - wanted).max()
        print(f"{name} {way} {output}: exact sums are {differs:.4f} apart of {np.abs(wanted).max():.4f}")
        np.testing.assert_allclose(emulated[output], wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())
        assert (differs > 0.01 * np.abs(wanted).max()) == cut
    assert any(item["kernel"] == "cut-pairs" for item in nodes) == cut


@pytest.mark.parametrize("way", ["i8", "u8"])
def test_compare_tells_the_answers_there(program, made, way):
    place = made / f"convolutions-{way}"
    command = [program, "compare", place / "float.onnx", place / "int8.onnx", "--samples", place / "samples",
               "--processor", "x86-without-vnni", "--json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = [item["message"] for item in json.loads(done.stdout)["warnings"] if item["kind"] == "processor"]
    assert len(told) == 2 and "output `y` on x86 without VNNI" in told[0]
    if WAYS[way][1]:
        assert "`the_c1`" in told[1] and "{type: u8}" in told[1]
    else:
        assert "no layer has a product" in told[1]
