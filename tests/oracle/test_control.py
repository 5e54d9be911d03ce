"""If, Loop and Scan against ONNX Runtime: in floats, quantized with samples, compared, and on integers."""

import json
import subprocess

import control_float16_models
import control_models
import reference_runtimes
import numpy as np
import onnx
import pytest
from run_model import attempt, run_all

NAMES = list(control_models.MODELS)
# 8-bit weights and activations on such small layers; a body that reads wrong values is below 10.
GOOD = 25.0
# Float16 models where only float16 is rounded.
HALF = 45.0
MIXED = {**control_models.MODELS, **control_float16_models.HALVES}


@pytest.fixture
def made(tmp_path):
    """Maps a model's name to its file and its samples."""

    def make(name):
        model, samples = control_models.MODELS[name]()
        onnx.save(model, tmp_path / "model.onnx")
        return tmp_path / "model.onnx", samples

    return make


def equal(found, expected, **bounds):
    for one, other in zip(found, expected, strict=True):
        for output, values in other.items():
            assert one[output].shape == values.shape, output
            np.testing.assert_allclose(one[output], values, **bounds)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("name", NAMES)
def test_floats_are_those_of_onnx_runtime(name, threads, made, tmp_path):
    path, samples = made(name)
    expected = reference_runtimes.run(path, samples, optimize=False)
    found, _ = run_all(path, samples, tmp_path, "--float", "--threads", threads)
    equal(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", [(), ("--format", "qoperator"), ("--equalize",), ("--method", "ort-percentile")])
@pytest.mark.parametrize("name", NAMES)
def test_what_lies_around_is_quantized_with_samples(name, form, made, program, tmp_path):
    path, samples = made(name)
    prepared, quantized = reference_runtimes.quantize(program, tmp_path, path, samples, *form)
    before, after = onnx.load(prepared), onnx.load(quantized)
    held = [[node for node in model.graph.node if node.op_type in ("If", "Loop", "Scan")] for model in (before, after)]
    assert held[0]
    for one, other in zip(*held, strict=True):
        assert [a.SerializeToString() for a in one.attribute] == [a.SerializeToString() for a in other.attribute]
    integers = [node for node in after.graph.node if "QuantizeLinear" in node.op_type or node.op_type.startswith("QLinear")]
    assert integers
    expected, found = reference_runtimes.run(path, samples), reference_runtimes.run(quantized, samples)
    for output, values in expected[0].items():
        if values.dtype == np.float32 and values.size:
            assert reference_runtimes.sqnr([one[output] for one in expected], [one[output] for one in found]) > GOOD, output


@pytest.mark.parametrize("name", NAMES)
def test_what_is_quantized_runs_on_integers(name, made, program, tmp_path):
    path, samples = made(name)
    _, quantized = reference_runtimes.quantize(program, tmp_path, path, samples)
    expected = reference_runtimes.run(quantized, samples, optimize=False)
    found, told = run_all(quantized, samples, tmp_path)
    for output, values in expected[0].items():
        assert all(one[output].shape == other[output].shape for one, other in zip(found, expected, strict=True))
        if values.dtype == np.float32 and values.size:
            assert reference_runtimes.sqnr([one[output] for one in expected], [one[output] for one in found]) > GOOD, output
        elif values.size:
            equal([{output: one[output]} for one in found], [{output: one[output]} for one in expected])
    products = [node for node in told["nodes"] if node["operator"] in ("Conv", "MatMul")]
    assert products and all(node["region"] is not None for node in products), products
    held = [node for node in told["nodes"] if node["operator"] in ("If", "Loop", "Scan")]
    assert held and all(node["reason"] for node in held)


@pytest.mark.parametrize("name", NAMES)
def test_layers_around_are_compared_and_timed(name, made, program, tmp_path):
    path, samples = made(name)
    _, quantized = reference_runtimes.quantize(program, tmp_path, path, samples)
    folder = reference_runtimes.save_samples(tmp_path / "samples", samples)
    done = subprocess.run(
        [program, "compare", path, quantized, "--data", folder, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # Subgraphs compute on the same values, so their own error is small, and the outputs agree with
    # ONNX Runtime.
    held = [layer for layer in told["layers"] if layer["operator"] in ("If", "Loop", "Scan")]
    assert held and all(layer["added"]["sqnr"] > GOOD for layer in held), held
    assert all(output["apart"]["sqnr"] > GOOD for output in told["outputs"]), told["outputs"]
    done = subprocess.run([program, "run", quantized, "--input", folder / "000.npz"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def written(program, folder, path, *options):
    """A quantized file beside the model, without samples or with those of a folder."""
    out = folder / "quantized.onnx"
    done = subprocess.run([program, "quantize", path, "--out", out, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def decibels(expected, found):
    """The minimum over all float outputs; the others are equal."""
    least = 200.0
    for output, values in expected[0].items():
        pairs = [[one[output].astype(np.float64) for one in outputs] for outputs in (expected, found)]
        if values.dtype in (np.float16, np.float32):
            least = min(least, reference_runtimes.sqnr(*pairs))
        else:
            equal([{output: one} for one in pairs[1]], [{output: one} for one in pairs[0]])
    return least


def compared(program, path, quantized, folder):
    command = [program, "compare", path, quantized, "--data", folder, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def held_in(told):
    return [layer for layer in told["layers"] if layer["operator"] in ("If", "Loop", "Scan")]


@pytest.mark.parametrize("name, form", [
    *((name, form) for name in MIXED for form in ("float16", "bfloat16")), *((name, "mixed") for name in control_float16_models.HALVES)])
def test_halves_go_into_graphs_and_come_out_of_them(name, form, program, tmp_path):
    made = MIXED[name]()
    element = getattr(onnx.TensorProto, form.upper(), None)
    model, samples = control_float16_models.halved(made, element) if element else made
    onnx.save(model, tmp_path / "model.onnx")
    found, _ = run_all(tmp_path / "model.onnx", samples, tmp_path, "--float")
    if form == "bfloat16":
        # ONNX Runtime has few float16 operators, so the float32 model is the reference.
        model, samples = MIXED[name]()
    expected = reference_runtimes.run(model, samples, optimize=False)
    assert decibels(expected, found) > (30.0 if form == "bfloat16" else HALF)


@pytest.mark.parametrize("source", ["floats", "halves"])
@pytest.mark.parametrize("name", MIXED)
def test_half_precision_around_graphs_is_compared_and_run(name, source, program, tmp_path):
    model, samples = control_float16_models.halved(MIXED[name]()) if source == "halves" else MIXED[name]()
    path, folder = tmp_path / "model.onnx", reference_runtimes.save_samples(tmp_path / "samples", samples)
    onnx.save(model, path)
    quantized = written(program, tmp_path, path, "--scheme", "float16")
    assert decibels(reference_runtimes.run(path, samples), reference_runtimes.run(quantized, samples)) > HALF
    told = compared(program, path, quantized, folder)
    assert told["unpaired"] == []
    assert held_in(told) and all(layer["added"]["sqnr"] > HALF for layer in held_in(told)), held_in(told)
    assert all(output["apart"]["sqnr"] > HALF for output in told["outputs"]), told["outputs"]
    done = subprocess.run([program, "run", quantized, "--input", folder / "000.npz"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["for loop", "choice"])
def test_what_lies_below_a_relu_that_graphs_read_is_not_called_clipped(name, made, program, tmp_path):
    path, samples = made(name)
    folder = reference_runtimes.save_samples(tmp_path / "samples", samples)
    quantized = written(program, tmp_path, path, "--calib", folder)
    assert "Relu" in [node.op_type for node in onnx.load(quantized).graph.node], "a graph reads what it makes"
    layer = next(layer for layer in compared(program, path, quantized, folder)["layers"] if layer["value"] == "a")
    assert layer["rounded"] and layer["clipped"] == 0 and layer["added"]["sqnr"] > GOOD, layer


def loop(body, given="x", turns="n", condition="go", made="y"):
    return control_models.model(f"""rows (float[N,6] x) => (float[] y) {{
      n = Constant <value = int64 {{3}}> ()
      go = Constant <value = bool {{1}}> ()
      {made} = Loop <body = turn {body}> ({turns or '""'}, {condition or '""'}, {given})
    }}""")


STEP = "(int64 i, bool c, float[] v) => (bool c2, float[] v2)"
BAD = {
    "a Loop that never ends": (loop(f"{STEP} {{ v2 = Neg(v) c2 = Identity(c) }}", turns=""), ("Endless", "Loop", "1000000")),
    "a Loop that grows without end": (loop(f"{STEP} {{ v2 = Concat <axis=0> (v, v) c2 = Identity(c) }}", turns=""), ("the state that it carries to the next iteration", "elements")),
    "a body of fewer inputs": (loop("(int64 i, bool c) => (bool c2, float[] v2) { v2 = Neg(x) c2 = Identity(c) }"), ("inputs",)),
    "a body of more outputs": (
        loop("(int64 i, bool c, float[] v) => (bool c2, float[] v2, float[] k) { v2 = Neg(v) k = Neg(v) c2 = Identity(c) }"),
        ("outputs",)),
    "a condition of floats": (loop(f"{STEP} {{ v2 = Neg(v) c2 = Neg(v) }}"), ("condition", "one truth value")),
    "a trip count of floats": (loop(f"{STEP} {{ v2 = Neg(v) c2 = Identity(c) }}", turns="x"), ("trip count", "integer")),
    "what is kept of another shape each turn": (
        loop("(int64 i, bool c, float[] v) => (bool c2, float[] v2, float[] k) { v2 = Concat <axis=0> (v, v) k = Neg(v) c2 = Identity(c) }",
             made="l, y"), ("type and shape in all iterations",)),
    "an operator that nobody knows": (loop(f"{STEP} {{ v2 = Frobnicate(v) c2 = Identity(c) }}"), ("Frobnicate",)),
    "shapes that don't fit": (loop(f"{STEP} {{ w = Transpose(v) s = Add(v, w) v2 = Neg(s) c2 = Identity(c) }}"), ("Add", "the shape of its inputs")),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_an_error_in_words(name, tmp_path):
    model, words = BAD[name]
    onnx.save(model, tmp_path / "model.onnx")
    done, _ = attempt(tmp_path / "model.onnx", {"x": control_models.floats(2, 6)}, tmp_path, "--float")
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr, done.stderr


def test_graphs_in_graphs_have_an_end(tmp_path):
    text = "p = Neg(x)"
    for depth in range(20):
        text = f"""m{depth} = ReduceMax <keepdims=0> (x)
          c{depth} = Cast <to=9> (m{depth})
          p = If <then_branch = a () => (float[] p) {{ {text} }}, else_branch = b () => (float[] q) {{ q = Abs(x) }}> (c{depth})"""
    model = control_models.model(f"rows (float[N,6] x) => (float[] y) {{ {text} y = Neg(p) }}")
    onnx.save(model, tmp_path / "model.onnx")
    done, _ = attempt(tmp_path / "model.onnx", {"x": control_models.floats(2, 6)}, tmp_path, "--float")
    assert done.returncode == 1
    assert "16 graphs deep" in done.stderr, done.stderr
