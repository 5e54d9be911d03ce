"""Models with functions against ONNX Runtime: in float, quantized by every scheme, compared, and
invalid ones.
"""

import json
import subprocess

import function_models
import reference_runtimes
import numpy as np
import onnx
import pytest
from control_models import rows
from onnx import inliner, numpy_helper
from run_model import attempt, run_all

NAMES = list(function_models.MODELS)
GOOD = 25.0
FREE = ["dynamic", "weights", "blocks", "float16"]


def written_out(model):
    """The model with functions inlined by ONNX's own inliner."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    kept = [function for function in model.functions if function.domain]
    del model.functions[:]
    model.functions.extend(kept)
    for function in model.functions:
        # It inlines only functions of the model's own opset. Those of other opsets here have the
        # same meaning in it.
        for one in function.opset_import:
            one.version = 18 if one.domain == "" else one.version
    # It does not handle default attributes either.
    usual = {function.name: function.attribute_proto for function in model.functions}
    for node in model.graph.node:
        given = {attribute.name for attribute in node.attribute}
        if node.domain == "lib":
            node.attribute.extend(one for one in usual[node.op_type] if one.name not in given)
    model = inliner.inline_local_functions(model)
    assert not model.functions
    if "com.microsoft" in {node.domain for node in model.graph.node}:
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.fixture
def made(tmp_path):
    """Maps a model's name to its file, the inlined file, and its samples."""

    def make(name):
        model, samples = function_models.MODELS[name]()
        onnx.save(model, tmp_path / "model.onnx")
        onnx.save(written_out(model), tmp_path / "plain.onnx")
        return tmp_path / "model.onnx", tmp_path / "plain.onnx", samples

    return make


def told(graph, around=None):
    """A graph without its names: what each node is, and of what it is computed, constants by their values."""
    known = dict(around or {})
    for index, value in enumerate(graph.input):
        known[value.name] = f"input {index}"
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        known[tensor.name] = f"{values.dtype} {values.shape} {values.tobytes().hex()}"
    lines = []
    for index, node in enumerate(graph.node):
        said = []
        for attribute in sorted(node.attribute, key=lambda one: one.name):
            value = onnx.helper.get_attribute_value(attribute)
            said.append((attribute.name, told(value, known) if isinstance(value, onnx.GraphProto) else str(value)))
        for place, output in enumerate(node.output):
            known[output] = f"node {len(around or {})} {index}:{place}"
        lines.append((node.domain, node.op_type, [known.get(name, name) for name in node.input], said, len(node.output)))
    return lines, [known[value.name] for value in graph.output]


def command(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert "panicked" not in done.stderr.lower() and done.returncode in (0, 3), done.stderr
    return done


def folder(path):
    path.mkdir()
    return path


@pytest.mark.parametrize("name", NAMES)
def test_floats_are_those_of_onnx_runtime(name, made, tmp_path):
    path, _, samples = made(name)
    expected = reference_runtimes.run(path, samples, optimize=False)
    found, _ = run_all(path, samples, tmp_path, "--float")
    for one, other in zip(found, expected, strict=True):
        for output, values in other.items():
            np.testing.assert_allclose(one[output], values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", [(), ("--format", "qoperator"), ("--method", "auto")])
@pytest.mark.parametrize("name", NAMES)
def test_integers_are_those_of_the_model_written_out(name, form, made, program, tmp_path):
    path, plain, samples = made(name)
    _, ours = reference_runtimes.quantize(program, folder(tmp_path / "ours"), path, samples, *form)
    _, theirs = reference_runtimes.quantize(program, folder(tmp_path / "theirs"), plain, samples, *form)
    model = onnx.load(ours)
    assert told(model.graph) == told(onnx.load(theirs).graph)
    assert not [function for function in model.functions if function.domain]
    assert any("Linear" in node.op_type for node in model.graph.node)
    expected, found = reference_runtimes.run(path, samples), reference_runtimes.run(ours, samples)
    for output in expected[0]:
        assert reference_runtimes.sqnr([one[output] for one in expected], [one[output] for one in found]) > GOOD, output


@pytest.mark.parametrize("scheme", FREE)
@pytest.mark.parametrize("name", NAMES)
def test_schemes_without_samples_quantize_what_is_inside(name, scheme, made, program, tmp_path):
    path, plain, samples = made(name)
    if scheme == "blocks" and "MatMul" not in {node.op_type for node in onnx.load(plain).graph.node}:
        pytest.skip("blocks are of products only")
    _, ours = reference_runtimes.quantize(program, folder(tmp_path / "ours"), path, [], "--scheme", scheme)
    _, theirs = reference_runtimes.quantize(program, folder(tmp_path / "theirs"), plain, [], "--scheme", scheme)
    assert told(onnx.load(ours).graph) == told(onnx.load(theirs).graph)
    reference_runtimes.run(ours, samples)


def test_names_say_which_call_a_layer_is_of(made, program, tmp_path):
    path, _, samples = made("nested")
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"by_name": {"n1": {"float": True}}}))
    prepared, quantized = reference_runtimes.quantize(program, tmp_path, path, samples, "--config", settings)
    nodes = {node.name: node for node in onnx.load(prepared).graph.node}
    inside = {"n0/n0", "n0/n1/n0", "n1/n0/n0", "n1/n0/n1/n0", "n1/n1/n0", "n1/n1/n1/n0", "n1/n2"}
    assert set(nodes) == inside | {"n2"}
    assert len({output for node in nodes.values() for output in node.output}) == len(nodes)
    made_by = {output: node for node in onnx.load(quantized).graph.node for output in node.output}
    reads = {node.name: [made_by[name].op_type for name in node.input if name in made_by] for node in made_by.values()}
    assert "DequantizeLinear" in reads["n0/n0"] and "DequantizeLinear" not in reads["n1/n1/n0"], reads


def test_card_and_report_tell_of_functions(made, program, tmp_path):
    path, _, samples = made("nested")
    card = command(program, "inspect", path)
    assert card.returncode == 0, card.stderr
    assert "lib::act 3" in card.stdout and "MatMul" in card.stdout and "LeakyRelu" in card.stdout, card.stdout
    report = tmp_path / "report.yaml"
    reference_runtimes.quantize(program, tmp_path, path, samples, "--report", report)
    assert "7 calls of the model's functions inlined: lib::act 3, lib::dense 3, lib::both 1" in report.read_text()


@pytest.mark.parametrize("name", ["nested", "captures"])
def test_models_with_functions_are_compared_and_timed(name, made, program, tmp_path):
    path, _, samples = made(name)
    _, quantized = reference_runtimes.quantize(program, tmp_path, path, samples)
    done = command(program, "compare", path, quantized, "--data", tmp_path / "samples", "--json")
    assert done.returncode == 0, done.stderr
    assert all(output["apart"]["sqnr"] > GOOD for output in json.loads(done.stdout)["outputs"])
    done = command(program, "run", path, "--input", tmp_path / "samples" / "000.npz")
    assert done.returncode == 0, done.stderr


def graph(calls="y = lib.f(x)"):
    return f"rows (float[N,6] x) => (float[] y) {{ {calls} }}"


def test_what_an_older_opset_says_is_raised(tmp_path):
    body = """f <axes : ints = [1]> (v) => (r) {
      m = ReduceMean <axes : ints = @axes, keepdims = 1> (v)
      s = Split <axis = 1> (v)
      a = Squeeze <axes = [0]> (m)
      b = Unsqueeze <axes = [0]> (a)
      r = Add(v, b)
    }""".replace("s = Split <axis = 1> (v)\n", "")
    old = function_models.model(graph(), f"12 | {body}", opset=18)
    same = function_models.model(graph(), f"12 | {body}", opset=12)
    onnx.save(old, tmp_path / "model.onnx")
    samples = rows(1, 1)
    found, _ = run_all(tmp_path / "model.onnx", samples, tmp_path, "--float")
    for one, other in zip(found, reference_runtimes.run(same, samples), strict=True):
        np.testing.assert_allclose(one["y"], other["y"], rtol=1e-5, atol=1e-6)


def two_meanings():
    """A function with an operator that differs between its opset and the model's, beside one that
    is unambiguous.
    """
    text = """picture (float[1,3,8,8] x) => (float[] y) {
      a = Conv <pads=[1,1,1,1]> (x, w0)
      b = lib.norm(a)
      c = lib.act(b)
      d = lib.act(c)
      e = Conv <pads=[1,1,1,1]> (d, w2)
      y = MatMul(e, m1)
    }"""
    norm = """21 | norm (v) => (r) {
      s = Constant <value = float[4] {1, 2, 3, 4}> ()
      b = Constant <value = float[4] {0, 1, 0, 1}> ()
      n = GroupNormalization <num_groups = 4> (v, s, b)
      r = lib.hidden(n)
    }"""
    return function_models.model(text, norm, "act (v) => (r) { r = Relu(v) }", "hidden (v) => (r) { r = lib.act(v) }")


@pytest.mark.parametrize("scheme", FREE)
def test_schemes_without_samples_leave_what_cannot_be_written_out(scheme, program, tmp_path):
    onnx.save(two_meanings(), tmp_path / "model.onnx")
    report = tmp_path / "report.yaml"
    _, quantized = reference_runtimes.quantize(program, tmp_path, tmp_path / "model.onnx", [], "--scheme", scheme, "--report", report)
    model = onnx.load(quantized)
    assert [node.op_type for node in model.graph.node if node.domain == "lib"] == ["norm"]
    # Functions that other calls need stay.
    assert [function.name for function in model.functions] == ["norm", "act", "hidden"]
    assert "GroupNormalization" in report.read_text() and "lib::act 2" in report.read_text()
    reference_runtimes.run(model, function_models.pictures(8))


def test_what_cannot_be_written_out_is_refused_where_it_must_run(program, tmp_path):
    path, samples = tmp_path / "model.onnx", reference_runtimes.save_samples(tmp_path / "samples", function_models.pictures(8))
    onnx.save(two_meanings(), path)
    for arguments in (("quantize", path, "--calib", samples, "--out", tmp_path / "o.onnx"), ("run", path, "--input", samples / "000.npz")):
        done = command(program, *arguments)
        assert done.returncode == 3
        for word in ("lib::norm", "GroupNormalization", "21", "18", "onnx.inliner"):
            assert word in done.stderr, done.stderr


def doubling(depth):
    calls = [f"f{i} (v) => (r) {{ a = lib.f{i + 1} (v) r = lib.f{i + 1} (a) }}" for i in range(depth)]
    return ["f (v) => (r) { r = lib.f0 (v) }", *calls, f"f{depth} (v) => (r) {{ r = Neg(v) }}"]


def chain(length):
    return ["f (v) => (r) { r = lib.f0 (v) }", *(f"f{i} (v) => (r) {{ r = lib.f{i + 1} (v) }}" for i in range(length)),
            f"f{length} (v) => (r) {{ r = Neg(v) }}"]  # fmt: skip


BAD = {
    "a function that calls itself": (graph(), ["f (v) => (r) { r = lib.f (v) }"], ("lib::f", "calls itself")),
    "functions that call each other": (
        graph(), ["f (v) => (r) { r = lib.g (v) }", "g (v) => (r) { r = lib.f (v) }"], ("lib::f", "calls itself")),
    "one that calls itself in a graph": (
        graph(), ["f (v) => (r) { c = Constant <value = bool {1}> () r = If <then_branch = a () => (float[] p) { p = lib.f(v) }, "
                  "else_branch = b () => (float[] q) { q = Neg(v) }> (c) }"], ("lib::f", "calls itself")),
    "calls that double": (graph(), doubling(60), ("200000 nodes", "node n0 ")),
    "calls that double and hold nothing": (
        graph("y = lib.f(x)"), [*doubling(60)[:-1], "f60 (v) => (r) { }"], ("200000 nodes",)),
    "functions in functions without end": (graph(), chain(5000), ("64 functions and graphs", "node n0 ",)),
    "more inputs than there are": (graph("y = lib.f(x, x)"), ["f (v) => (r) { r = Neg(v) }"], ("lib::f", "1 inputs", "called with 2")),
    "more outputs than there are": (graph("y, z = lib.f(x)"), ["f (v) => (r) { r = Neg(v) }"], ("lib::f", "1 outputs", "called with 2")),
    "two functions of one name": (graph(), ["f (v) => (r) { r = Neg(v) }"] * 2, ("two functions", "lib::f")),
    "a body that reads what nothing makes": (
        graph("q = Neg(x) y = lib.f(q)"), ["f (v) => (r) { r = Add(v, q) }"], ("which nothing produces", "/q")),
    "a body that makes a value twice": (graph(), ["f (v) => (r) { r = Neg(v) r = Abs(v) }"], ("which already exists",)),
    "a body that makes its input": (graph(), ["f (v) => (r) { v = Neg(v) r = Abs(v) }"], ("which already exists",)),
    "a body that goes round": (graph(), ["f (v) => (r) { a = Add(b, v) b = Neg(a) r = Abs(b) }"], ("cycle",)),
    "an output that nothing makes": (graph(), ["f (v) => (r) { a = Neg(v) }"], ("y", "no node produces")),
    "a function that is not there": (graph("y = lib.g(x)"), ["f (v) => (r) { r = Neg(v) }"], ("lib", "no operator")),
    "an attribute of another kind": (
        graph('y = lib.f <alpha = "much"> (x)'), ["f <alpha> (v) => (r) { r = LeakyRelu <alpha : float = @alpha> (v) }"], ()),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_an_error_in_words(name, program, tmp_path):
    text, functions, words = BAD[name]
    path = tmp_path / "model.onnx"
    onnx.save(function_models.model(text, *functions), path)
    samples = reference_runtimes.save_samples(tmp_path / "samples", rows(2))
    runs = [("quantize", path, "--calib", samples, "--out", tmp_path / "o.onnx"), ("run", path, "--input", samples / "000.npz")]
    for arguments in runs:
        done = command(program, *arguments)
        assert not words or done.returncode == 3
        for word in words:
            assert word in done.stderr, done.stderr
    command(program, "inspect", path)
    attempt(path, rows(2)[0], tmp_path, "--float")
