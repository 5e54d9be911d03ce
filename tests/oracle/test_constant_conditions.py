"""Ifs with constant conditions: the taken branch is quantized as if it stood in the graph."""

import json
import subprocess

import control_models
import reference_runtimes
import constant_condition_models
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from run_model import run_all

NAMES = list(constant_condition_models.MODELS)
GOOD = 25.0
FREE = ["dynamic", "weights", "blocks", "float16"]


@pytest.fixture
def made(tmp_path):
    """Maps a model's name to its file, that of its twin without the If, and its samples."""

    def make(name):
        model, plain, samples = constant_condition_models.made(constant_condition_models.MODELS[name])
        onnx.save(model, tmp_path / "model.onnx")
        onnx.save(plain, tmp_path / "plain.onnx")
        return tmp_path / "model.onnx", tmp_path / "plain.onnx", samples

    return make


def told(path):
    """A model without names: operators in order, each with its constants."""
    model = onnx.load(path)
    constants = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in model.graph.initializer}
    return [(node.op_type, [constants[name] for name in node.input if name in constants]) for node in model.graph.node]


def choices(path):
    return [node for node in onnx.load(path).graph.node if node.op_type == "If"]


@pytest.mark.parametrize("name", NAMES)
def test_floats_are_those_of_onnx_runtime(name, made, tmp_path):
    path, _, samples = made(name)
    found, _ = run_all(path, samples, tmp_path, "--float")
    for one, other in zip(found, reference_runtimes.run(path, samples, optimize=False), strict=True):
        for output, values in other.items():
            np.testing.assert_allclose(one[output], values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", [(), ("--format", "qoperator"), ("--method", "auto")])
@pytest.mark.parametrize("name", NAMES)
def test_integers_are_those_of_the_model_without_the_choice(name, form, made, program, tmp_path):
    path, plain, samples = made(name)
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    prepared, ours = reference_runtimes.quantize(program, tmp_path / "ours", path, samples, *form)
    _, theirs = reference_runtimes.quantize(program, tmp_path / "theirs", plain, samples, *form)
    assert len(choices(prepared)) == len(choices(plain))
    assert told(ours) == told(theirs)
    expected, found = reference_runtimes.run(path, samples), reference_runtimes.run(ours, samples)
    for output in expected[0]:
        assert reference_runtimes.sqnr([one[output] for one in expected], [one[output] for one in found]) > GOOD, output


@pytest.mark.parametrize("scheme", FREE)
@pytest.mark.parametrize("name", NAMES)
def test_schemes_without_samples_quantize_what_is_inside(name, scheme, made, program, tmp_path):
    path, plain, samples = made(name)
    if scheme == "blocks" and "MatMul" not in {node.op_type for node in onnx.load(plain).graph.node}:
        pytest.skip("blocks are of products only")
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    _, ours = reference_runtimes.quantize(program, tmp_path / "ours", path, [], "--scheme", scheme)
    _, theirs = reference_runtimes.quantize(program, tmp_path / "theirs", plain, [], "--scheme", scheme)
    assert told(ours) == told(theirs)
    reference_runtimes.run(ours, samples)


def test_settings_find_a_layer_by_its_choice_and_the_report_tells_of_it(made, program, tmp_path):
    path, _, samples = made("twins")
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, path)
    settings, report = tmp_path / "settings.json", tmp_path / "report.yaml"
    settings.write_text(json.dumps({"by_name": {"y": {"float": True}}}))
    _, quantized = reference_runtimes.quantize(program, tmp_path, path, samples, "--config", settings, "--report", report)
    graph = onnx.load(quantized).graph
    products = {node.output[0]: node for node in graph.node if node.op_type == "MatMul"}
    constants = {tensor.name for tensor in graph.initializer}
    assert products["y/p"].input[1] in constants and products["b/p"].input[1] not in constants, products
    assert "2 Ifs with known conditions replaced by their branches" in report.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_quantized_model_is_held_against_the_one_with_the_choice(name, made, program, tmp_path):
    path, _, samples = made(name)
    _, quantized = reference_runtimes.quantize(program, tmp_path, path, samples)
    done = subprocess.run(
        [program, "compare", path, quantized, "--data", tmp_path / "samples", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compared = json.loads(done.stdout)
    assert all(output["apart"]["sqnr"] > GOOD for output in compared["outputs"]), compared["outputs"]


def test_choices_that_are_known_may_lie_in_each_other_as_deep_as_a_file_may_be(tmp_path):
    text = "p = Neg(x)"
    # Each is nested three messages deep; a file may nest 90 (onnx/scan.rs).
    for depth in range(27):
        text = f"""c{depth} = Constant <value = bool {{1}}> ()
          p = If <then_branch = a () => (float[] p) {{ {text} }}, else_branch = b () => (float[] q) {{ q = Abs(x) }}> (c{depth})"""
    model = control_models.model(f"rows (float[N,6] x) => (float[] y) {{ {text} y = Neg(p) }}")
    onnx.save(model, tmp_path / "model.onnx")
    samples = control_models.rows(3)
    found, _ = run_all(tmp_path / "model.onnx", samples, tmp_path, "--float")
    np.testing.assert_array_equal(found[0]["y"], samples[0]["x"])
