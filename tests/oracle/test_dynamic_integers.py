"""DynamicQuantizeLinear, MatMulInteger and ConvInteger run on our integer kernels, for models of
any tool.

Of single operators and their chains every value is ONNX Runtime's, integers and floats alike: the sums are the same integers,
and behind them stand the same operations in the same order. In whole models float operators stand in between, whose sums are the
processor's: there each integer is ONNX Runtime's given the reals before it.
"""

import json
import subprocess

import dynamic_models
import exact_products
import reference_runtimes
import numpy as np
import onnx
import onnxruntime
import pytest
from dynamic_models import measured, scaled
from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic
from qdq_models import Pairs
from run_model import attempt, run
from schemes import quantized as ours
from test_integers import floats
from integer_checks import hold_measured


def feed(model, seed):
    random, made = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if kind == np.float32:
            # Around zero, above it, below it, all zero: each range has another zero point.
            made[value.name] = (random.standard_normal(shape) * [1, 1, 1, 0][seed] + [0.3, 9, -9, 0][seed]).astype(kind)
        else:
            ends = np.iinfo(kind)
            # Pairs of products of unsigned and signed bytes must fit 16 bits, as ONNX Runtime holds
            # them so: 2 · 127 · 128 does.
            most = 127 if exact_products.saturates() and signed(model) else ends.max
            made[value.name] = random.integers(ends.min, most + 1, shape).astype(kind)
    return made


def signed(model):
    """True if signed bytes are an input."""
    return any(value.type.tensor_type.elem_type == TensorProto.INT8 for value in model.graph.input)


@pytest.mark.parametrize("name", dynamic_models.MODELS)
def test_every_value_is_onnx_runtimes(name, tmp_path):
    build, expected = dynamic_models.MODELS[name]
    pairs = Pairs(seed=sum(name.encode()))
    build(pairs)
    model, path = pairs.model(), tmp_path / "model.onnx"
    onnx.save(model, path)
    measures = "quantizer" in name or any(node.op_type == "DynamicQuantizeLinear" for node in model.graph.node)
    for seed in range(4 if measures else 1):
        sample = feed(model, seed)
        wanted = reference_runtimes.run(path, [sample], optimize=False)[0]
        # On integers, on two threads, and in float.
        for options in [(), ("--threads", "2"), ("--float",)]:
            found, told = run(path, sample, tmp_path, *options)
            for output, values in wanted.items():
                assert found[output].dtype == values.dtype, output
                assert np.array_equal(found[output], values), (output, options, seed)
            mine = {"DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"}
            left = {node["operator"] for node in floats(told["nodes"])}
            assert (left == set(expected) if options != ("--float",) else not left & mine - set(expected)), told["nodes"]


@pytest.mark.parametrize("name", ["chain", "chain of u8", "shared"])
def test_what_onnx_runtimes_optimizer_makes_of_a_chain_is_taken_apart(name, tmp_path):
    pairs = Pairs(seed=sum(name.encode()))
    dynamic_models.MODELS[name][0](pairs)
    path, optimized = tmp_path / "model.onnx", tmp_path / "optimized.onnx"
    onnx.save(pairs.model(), path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(optimized)
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    fused = {node.op_type for node in onnx.load(optimized).graph.node}
    assert fused & {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}, fused
    sample = feed(pairs.model(), 0)
    wanted = reference_runtimes.run(path, [sample], optimize=False)[0]
    for options in [(), ("--float",)]:
        found, told = run(optimized, sample, tmp_path, *options)
        assert all(np.array_equal(found[output], values) for output, values in wanted.items())
        products = [node for node in told["nodes"] if node["operator"] == "MatMulInteger"]
        assert products and all(node["output"] == "float32" and node["region"] is not None for node in products), told


# --- hostile models --------------------------------------------------------------------------------------------------


def broken(p, zero=np.uint8(3), weight=(12, 8), weight_zero=np.int8(0), operator="MatMulInteger", shape=(3, 12), **attributes):
    q, scale, _ = measured(p, p.input("x", list(shape)))
    w = p.constant(np.ones(weight, np.int8))
    sums = p.node(operator, [q, w, p.constant(zero), p.constant(weight_zero)], **attributes)
    scaled(p, sums, (scale, p.constant(np.float32(0.01))), "y")
    p.output("y")


HOSTILE = {
    "empty zero point": dict(zero=np.zeros(0, np.uint8)),
    "many zero points": dict(zero=np.zeros(5, np.uint8)),
    "zero point of another type": dict(zero=np.int32(3)),
    "zero points of no columns": dict(weight_zero=np.zeros(3, np.int8)),
    "factors that don't fit": dict(weight=(11, 8)),
    "weights without columns": dict(weight=(12, 0)),
    "weights without depth": dict(weight=(0, 8)),
    "a vector that doesn't fit": dict(weight=(11,)),
    "a number": dict(weight=()),
    "group of zero": dict(operator="ConvInteger", shape=(1, 4, 6, 6), weight=(4, 4, 3, 3), group=0),
    "stride of zero": dict(operator="ConvInteger", shape=(1, 4, 6, 6), weight=(4, 4, 3, 3), strides=[0, 1]),
    "other channels": dict(operator="ConvInteger", shape=(1, 4, 6, 6), weight=(4, 5, 3, 3)),
    "endless dilation": dict(operator="ConvInteger", shape=(1, 4, 6, 6), weight=(4, 4, 3, 3), dilations=[1 << 40, 1]),
}  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--float",)], ids=["integers", "float"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_is_an_error_or_a_reason_and_never_a_panic(name, options, tmp_path):
    pairs = Pairs()
    broken(pairs, **HOSTILE[name])
    path = tmp_path / "hostile.onnx"
    onnx.save(pairs.model(), path)
    done, _ = attempt(path, {"x": np.ones(HOSTILE[name].get("shape", (3, 12)), np.float32)}, tmp_path, *options)
    if done.returncode:
        assert len(done.stderr) > 30, done.stderr
    else:
        empty = name == "weights without columns"
        assert empty or any(node["reason"] for node in json.loads(done.stdout)["nodes"]), done.stdout


def test_ranges_without_end_are_no_numbers_and_no_error(tmp_path):
    """Results at or near infinity: e^100 is no float, e^88 is nearly the largest."""
    pairs = Pairs()
    x = pairs.node("Exp", [pairs.input("x", [3, 12])])
    q, scale, point = measured(pairs, x)
    sums = pairs.node("MatMulInteger", [q, pairs.constant(np.ones([12, 8], np.int8)), point])
    scaled(pairs, sums, (scale, pairs.constant(np.float32(1))), "y")
    pairs.output("y")
    path = tmp_path / "model.onnx"
    onnx.save(pairs.model(), path)
    for greatest, finite in (100, False), (88, False), (80, True):
        given = np.array([greatest, -1, 3] * 12, np.float32).reshape(3, 12)
        found, _ = run(path, {"x": given}, tmp_path)
        assert np.isfinite(found["y"]).all() == finite, greatest


# --- LSTM ------------------------------------------------------------------------------------------------------------


def lstm(directions, hidden=6, inputs=5):
    """A float model of one LSTM with biases."""
    random = np.random.default_rng(directions)

    def weight(name, *shape):
        return onnx.numpy_helper.from_array(random.uniform(-0.6, 0.6, shape).astype(np.float32), name)

    node = onnx.helper.make_node(
        "LSTM", ["x", "w", "r", "b"], ["y"], name="the_y", hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward",
    )  # fmt: skip
    ports = [onnx.helper.make_tensor_value_info(*port) for port in [("x", TensorProto.FLOAT, [7, 2, inputs]), ("y", TensorProto.FLOAT, None)]]
    constants = [weight("w", directions, 4 * hidden, inputs), weight("r", directions, 4 * hidden, hidden), weight("b", directions, 8 * hidden)]
    graph = onnx.helper.make_graph([node], "lstm", ports[:1], ports[1:], constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("whose", ["octet", "theirs"])
def test_a_quantized_lstm_runs_with_its_weights_as_floats(whose, directions, per_channel, program, tmp_path):
    """The output equals that of an LSTM with these weights as floats; ONNX Runtime adds
    quantization noise at each step.
    """
    path, model = tmp_path / "lstm.onnx", lstm(directions)
    if whose == "octet":
        made, _ = ours(program, tmp_path, model, {"dynamic": {"per_channel": per_channel}})
        onnx.save(made, path)
    else:
        quantize_dynamic(model, path, weight_type=QuantType.QInt8, per_channel=per_channel, op_types_to_quantize=["LSTM"])
    made = onnx.load(path)
    (node,) = [node for node in made.graph.node if node.op_type == "DynamicQuantizeLSTM"]
    # The weights as floats, by ONNX's definition.
    known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    for tensor, slot in zip(list(model.graph.initializer)[:2], (8, 10)):
        integers, scale, zero = known[node.input[1 if slot == 8 else 2]], known[node.input[slot]], known[node.input[slot + 1]]
        scale, zero = (part.reshape(directions, 1, -1) if part.size > 1 else part for part in (scale, zero))
        reals = ((integers.astype(np.int32) - zero) * scale).astype(np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(reals.transpose(0, 2, 1)), tensor.name))
    onnx.save(model, tmp_path / "floats.onnx")
    sample = {"x": np.random.default_rng(5).standard_normal((7, 2, 5)).astype(np.float32)}
    (expected,), (exact,) = reference_runtimes.run(path, [sample]), reference_runtimes.run(tmp_path / "floats.onnx", [sample])
    for options in ((), ("--float",)):
        found, _ = run(path, sample, tmp_path, *options)
        assert np.allclose(found["y"], exact["y"], atol=1e-5)
        assert reference_runtimes.sqnr([expected["y"]], [found["y"]]) > 25
    done = subprocess.run([program, "run", path, "--demo", "--profile", "--runs", "1"], capture_output=True, text=True)
    assert done.returncode == 0 and "DynamicQuantizeLSTM" in done.stdout, done.stderr


# --- real models -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("whose", ["octet", "theirs"])
@pytest.mark.parametrize("name", ["minilm", "squeezenet"])
def test_a_dynamic_model_runs_on_our_kernels(name, whose, corpus, program, tmp_path):
    path = tmp_path / "dynamic.onnx"
    if whose == "octet":
        model, _ = ours(program, tmp_path, onnx.load(corpus.model(name)), {"dynamic": {}})
    else:
        quantize_dynamic(corpus.model(name), path, weight_type=QuantType.QInt8, op_types_to_quantize=["Conv", "MatMul"])
        model = onnx.load(path)
    for sample in reference_runtimes.load_samples(corpus.samples(name))[:2]:
        held = hold_measured(model, sample, tmp_path)
        print(f"{name} {whose}: {held.tensors} ranges, {held.integers} integers")
        assert not held.wrong, held.wrong
        defined = [node for node in held.nodes if node["operator"] in ("DynamicQuantizeLinear", "MatMulInteger", "ConvInteger")]
        assert defined and all(node["region"] is not None for node in defined)
        assert all(node["output"] == "float32" for node in defined if node["kernel"]), "the scales belong to the product"


def test_one_wrong_weight_of_a_dynamic_model_is_found(corpus, program, tmp_path):
    model, _ = ours(program, tmp_path, onnx.load(corpus.model("squeezenet")), {"dynamic": {}})
    other = onnx.ModelProto.FromString(model.SerializeToString())
    weight = [node for node in other.graph.node if node.op_type == "ConvInteger"][9].input[1]
    (tensor,) = [tensor for tensor in other.graph.initializer if tensor.name == weight]
    values = onnx.numpy_helper.to_array(tensor).copy()
    values[0] += np.ones_like(values[0])
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, weight))
    held = hold_measured(model, reference_runtimes.load_samples(corpus.samples("squeezenet"))[0], tmp_path, peer=other)
    assert len(held.wrong) == 1, held.wrong
