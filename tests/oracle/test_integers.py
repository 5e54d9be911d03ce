"""Quantized models run in fused integer regions and agree with ONNX Runtime without its fusion.

A single operator may differ by one step of its output's scale (a tie that is rounded after other roundings); whole models are
held in test_whole_models.
"""

import json

import selection_models
import edge_case_models
import low_bit_models
import reference_runtimes
import numpy as np
import onnx
import operator_models
import qdq_models
import product_models
import pytest
import small_models
import data_movement_models
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantFormat
from qdq_models import Pairs
from run_model import attempt, run
from test_same_as_onnxruntime import SETTINGS, find_ranges, ours, theirs

# Operators without an integer form run in float between integers, and are reported.
FLOAT = {"ArgMax", "CumSum", "GatherElements", "TopK"}
FLOAT_NAMES = {
    "Conv:3-D", "Conv:weight as input", "Pad:filled", "Resize:cubic", "Where:constant",
}  # fmt: skip
# Nodes with an input: a table of constants alone has nothing to run.
NAMES = [name for name in operator_models.MODELS if not name.endswith(":table")]
# Operators for which ONNX Runtime's QOperator form is no reference: it leaves these float, averages
# differently, lacks cubic interpolation, or writes Where in a form that it can't load.
LEFT_FLOAT = ("BatchNormalization", "LayerNormalization", "InstanceNormalization")
NOT_LOADED = [name for name in NAMES if name.startswith("Where")]
AS_OPERATORS = [name for name in NAMES if name not in ("AveragePool:hanging over", "Resize:cubic", *NOT_LOADED)
                and not name.startswith(LEFT_FLOAT)]


def scales(model):
    """The scale of every value that a DequantizeLinear or QuantizeLinear makes."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    pairs = [n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[1] in constants]
    return {n.output[0]: float(constants[n.input[1]].max()) for n in pairs}


def noise(model, seed=1):
    random, made = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [d.dim_value if d.HasField("dim_value") else 2 for d in value.type.tensor_type.shape.dim]
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if kind == bool:
            made[value.name] = random.random(shape) < 0.5
        elif np.issubdtype(kind, np.integer):
            made[value.name] = random.integers(0, 120, shape).astype(kind)
        else:
            made[value.name] = random.standard_normal(shape).astype(kind)
    return made


def steps_apart(model, expected, found):
    """Per output: the largest difference in steps of its scale, and the share that is equal."""
    known, result = scales(model), {}
    for name, values in expected.items():
        assert found[name].shape == values.shape and found[name].dtype == values.dtype, name
        if values.dtype.kind != "f":
            apart = np.abs(found[name].astype(np.int64) - values.astype(np.int64)).astype(float)
        else:
            # The float result of a product has no scale; a 127th of its range is used instead.
            step = known.get(name) or max(np.abs(values).max(initial=0) / 127, 1e-30)
            apart = np.abs(found[name].astype(np.float64) - values) / step
        result[name] = (apart.max(initial=0), float((apart < 0.01).mean()) if apart.size else 1.0)
    return result


def check(model, folder, limit=1, **feeds):
    """Runs both; every output within `limit` steps. Gives what was told of the nodes."""
    path = folder / "checked.onnx"
    onnx.save(model, path)
    sample = feeds or noise(model)
    expected = reference_runtimes.run(path, [sample], optimize=False)[0]
    found, told = run(path, sample, folder)
    for name, (apart, equal) in steps_apart(model, expected, found).items():
        assert apart < limit + 0.1, f"{name} is {apart} steps apart, {equal:.3f} equal: {told['nodes']}"
        assert equal > 0.9 or expected[name].size < 40, f"only {equal:.3f} of {name} are equal"
    return told["nodes"]


def floats(nodes):
    return [node for node in nodes if node["reason"]]


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_runs_on_integers_or_says_why_not(name, settings, tmp_path):
    model = operator_models.build(name)
    quantized = ours(model, find_ranges(model), settings, tmp_path)
    nodes = check(quantized, tmp_path)
    operator = name.split(":")[0]
    per_channel = settings[2]
    kept = operator in FLOAT or name in FLOAT_NAMES
    kept |= name == "Pad:filled" or (name in ("MatMul:stacked weight", "MatMul:constant first") and per_channel)
    mine = [node for node in nodes if node["operator"] == operator]
    if kept:
        assert mine and all(node["reason"] for node in mine), nodes
    else:
        assert not floats(nodes), floats(nodes)
        assert all(node["region"] == 0 for node in nodes), "one region holds all of it"


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", small_models.MODELS)
def test_a_small_model_runs_on_integers(name, settings, tmp_path):
    model = small_models.build(name)
    quantized = ours(model, find_ranges(model), settings, tmp_path)
    path = tmp_path / "octet.onnx"
    sample = noise(quantized)
    expected = reference_runtimes.run(path, [sample], optimize=False)[0]
    found, told = run(path, sample, tmp_path)
    for output, (apart, equal) in steps_apart(quantized, expected, found).items():
        # One step may become a few where many layers follow, but not for most values.
        assert apart < 4.1 and (equal > 0.8 or expected[output].size < 40), f"{output}: {apart} steps, {equal:.3f}"
    assert any(node["region"] is not None for node in told["nodes"])
    assert all(node["reason"] for node in told["nodes"] if node["region"] is None)


@pytest.mark.parametrize("name", NOT_LOADED)
def test_onnx_runtime_does_not_load_what_it_writes_of_these(name, tmp_path):
    model = operator_models.build(name)
    with pytest.raises(RuntimeError, match="unknown initializers"):
        theirs(model, find_ranges(model), SETTINGS[3], tmp_path / "theirs.onnx", QuantFormat.QOperator)


@pytest.mark.parametrize("name", AS_OPERATORS)
def test_integer_operators_run_as_what_they_stand_for(name, tmp_path):
    """ONNX Runtime's own QOperator form: its own kernels are the reference here."""
    model = operator_models.build(name)
    quantized = theirs(model, find_ranges(model), SETTINGS[3], tmp_path / "theirs.onnx", QuantFormat.QOperator)
    path = tmp_path / "theirs.onnx"
    sample = noise(quantized)
    expected = reference_runtimes.run(path, [sample], optimize=False)[0]
    found, _ = run(path, sample, tmp_path)
    for output, (apart, equal) in steps_apart(quantized, expected, found).items():
        # ONNX Runtime's linear Resize on bytes cuts off instead of rounding; its kernels round other products.
        assert apart < (2.1 if name.startswith(("Resize", "Softmax", "GlobalAverage")) else 1.1), f"{output}: {apart}"


# --- operators that ONNX Runtime leaves float, and what only other tools write --------------------------------------


@pytest.mark.parametrize("name", qdq_models.MODELS)
def test_what_other_tools_write_runs_on_integers(name, tmp_path):
    build, expected = qdq_models.MODELS[name]
    pairs = Pairs(seed=sum(name.encode()), opset=21 if "16" in name or "blocks" in name else 20)
    build(pairs)
    nodes = check(pairs.model(), tmp_path)
    assert {node["operator"] for node in floats(nodes)} == set(expected), floats(nodes)
    assert all(node["reason"] for node in nodes if node["region"] is None)


@pytest.mark.parametrize("name", data_movement_models.MODELS)
def test_pairs_that_change_nothing_may_be_left_out(name, tmp_path):
    nodes = check(data_movement_models.model(name), tmp_path)
    assert {node["operator"] for node in floats(nodes)} == set(data_movement_models.MODELS[name][1]), floats(nodes)
    written = [title for node in nodes for title in node["fused"] if "_as_moved" in title or "_before_rounding" in title]
    assert not written, "nodes that the file doesn't have are named"


@pytest.mark.parametrize("name", selection_models.MODELS)
def test_a_choice_among_quantized_values_runs_on_integers(name, tmp_path):
    build, expected = selection_models.MODELS[name]
    pairs = Pairs(seed=sum(name.encode()), opset=21)
    build(pairs)
    nodes = check(pairs.model(), tmp_path)
    assert {node["operator"] for node in floats(nodes)} == set(expected), floats(nodes)


@pytest.mark.parametrize("name", product_models.MODELS)
def test_a_product_of_values_or_with_a_vector_runs_on_integers_and_may_end_in_floats(name, tmp_path):
    build, expected = product_models.MODELS[name]
    pairs = Pairs(seed=sum(name.encode()), opset=21)
    build(pairs)
    model = pairs.model()
    nodes = check(model, tmp_path)
    assert {node["operator"] for node in floats(nodes)} == set(expected), floats(nodes)
    if name != "attention" and model.graph.node[-1].op_type in ("MatMul", "Identity"):
        # Sums are exact, so float results agree up to the last bits.
        sample = noise(model)
        (exact,) = reference_runtimes.run(tmp_path / "checked.onnx", [sample], optimize=False)
        found, _ = run(tmp_path / "checked.onnx", sample, tmp_path)
        assert np.abs(found["y"] - exact["y"]).max() < 1e-6 * max(np.abs(exact["y"]).max(), 1)


@pytest.mark.parametrize("form", ["of 4 bits", "clipped", "clipped to 7 bits"])
@pytest.mark.parametrize("name", low_bit_models.MODELS)
def test_integers_of_few_bits_run_as_eight(name, form, tmp_path):
    build, expected = low_bit_models.MODELS[name]
    pairs = low_bit_models.Few(sum(name.encode()), form == "of 4 bits", 7 if "7" in form else 4)
    build(pairs)
    nodes = check(pairs.model(), tmp_path)
    assert {node["operator"] for node in floats(nodes)} == set(expected), floats(nodes)
    # They run in float, as reported.
    path = tmp_path / "checked.onnx"
    sample = noise(pairs.model())
    found, _ = run(path, sample, tmp_path, "--float")
    for output, values in reference_runtimes.run(path, [sample], optimize=False)[0].items():
        assert np.abs(found[output] - values).max() < (0.09 if name == "network" else 1e-5)


@pytest.mark.parametrize("name", edge_case_models.MODELS)
def test_what_is_at_the_edge_of_an_operator_runs_as_it_does_there(name, tmp_path):
    build, expected = edge_case_models.MODELS[name]
    pairs = Pairs(seed=sum(name.encode()))
    build(pairs)
    nodes = check(pairs.model(), tmp_path)
    assert {node["operator"] for node in floats(nodes)} == set(expected), floats(nodes)


@pytest.mark.parametrize("name", edge_case_models.OLD)
def test_a_softmax_over_several_axes_runs_on_integers(name, tmp_path):
    pairs = Pairs(seed=sum(name.encode()), opset=12)
    edge_case_models.OLD[name](pairs)
    nodes = check(pairs.model(), tmp_path)
    assert not floats(nodes), floats(nodes)


def test_sums_beyond_32_bits_run_in_float(tmp_path):
    pairs = Pairs()
    edge_case_models.deep_product(pairs)
    nodes = check(pairs.model(), tmp_path, x=np.full([1, 4, 70_000], 3, np.float32))
    assert [(node["operator"], node["reason"]) for node in floats(nodes)] == [("MatMul", "its accumulators can exceed 32 bits")]


def test_a_table_takes_a_whole_chain(tmp_path):
    pairs = Pairs()
    qdq_models.silu(pairs)
    nodes = check(pairs.model(), tmp_path)
    assert [node["operation"] for node in nodes] == ["quantize", "table", "dequantize"], nodes


def test_a_float_operator_on_the_way_cuts_a_region_in_two(tmp_path):
    pairs = Pairs()
    qdq_models.there_and_back(pairs)
    nodes = check(pairs.model(), tmp_path)
    assert len({node["region"] for node in nodes if node["region"] is not None}) == 2


# --- hostile models --------------------------------------------------------------------------------------------------


def hostile(change):
    def build(p):
        x = p.pair(p.input("x", [1, 4, 6, 6]))
        p.pair(p.node("Conv", [x, p.weight([4, 4, 3, 3], [0.01] * 4, axis=0)], pads=[1, 1, 1, 1]), 0.05, output="y")
        p.output("y")
        change(p)

    return build


def replace(p, match, values):
    """Gives the constants that `match` picks other values."""
    for index, tensor in enumerate(p.constants):
        if match(numpy_helper.to_array(tensor)):
            p.constants[index] = numpy_helper.from_array(np.asarray(values), tensor.name)


def attribute(p, operator, **attributes):
    for node in p.nodes:
        if node.op_type == operator:
            kept = [a for a in node.attribute if a.name not in attributes]
            del node.attribute[:]
            node.attribute.extend(kept)
            node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())


HOSTILE = {
    "scale of zero": lambda p: replace(p, lambda v: v.shape == () and v.dtype == np.float32, np.float32(0)),
    "scale that is no number": lambda p: replace(p, lambda v: v.dtype == np.float32 and v.size == 1, np.float32("nan")),
    "negative scale": lambda p: replace(p, lambda v: v.dtype == np.float32 and v.size == 1, np.float32(-0.1)),
    "no scale at all": lambda p: replace(p, lambda v: v.dtype == np.float32 and v.size == 1, np.zeros(0, np.float32)),
    "too many zero points": lambda p: replace(p, lambda v: v.dtype == np.uint8, np.zeros(7, np.uint8)),
    "zero points of another type": lambda p: replace(p, lambda v: v.dtype == np.uint8, np.int32(3)),
    "fewer weight scales": lambda p: replace(p, lambda v: v.shape == (4,), np.ones(3, np.float32)),
    "weight of another rank": lambda p: replace(p, lambda v: v.ndim == 4, np.ones([4, 4, 3], np.int8)),
    "weight of other channels": lambda p: replace(p, lambda v: v.ndim == 4, np.ones([4, 5, 3, 3], np.int8)),
    "empty weight": lambda p: replace(p, lambda v: v.ndim == 4, np.ones([4, 0, 3, 3], np.int8)),
    "group of zero": lambda p: attribute(p, "Conv", group=0),
    "group too large": lambda p: attribute(p, "Conv", group=1 << 40),
    "stride of zero": lambda p: attribute(p, "Conv", strides=[0, 1]),
    "dilation without end": lambda p: attribute(p, "Conv", dilations=[1 << 40, 1]),
    "axis beyond all": lambda p: attribute(p, "DequantizeLinear", axis=9),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_is_an_error_or_runs_in_float_and_never_panics(name, tmp_path):
    pairs = Pairs()
    hostile(HOSTILE[name])(pairs)
    path = tmp_path / "hostile.onnx"
    onnx.save(pairs.model(), path)
    done, _ = attempt(path, {"x": np.ones([1, 4, 6, 6], np.float32)}, tmp_path)
    if done.returncode == 0:
        told = json.loads(done.stdout)["nodes"]
        assert any(node["reason"] for node in told) or name == "scale of zero", told
    else:
        assert len(done.stderr) > 30, done.stderr
