"""The schemes that need no samples, held against ONNX Runtime's own tools and run in ONNX Runtime.

`cargo build --release --features cli --example scheme` makes the program that is tested.
"""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from judge import run_web
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state as kernels
from onnxruntime.quantization import QuantType, quantize_dynamic

RANDOM = np.random.default_rng(7)


def weight(name, *shape, scale=0.2):
    return numpy_helper.from_array((RANDOM.standard_normal(shape) * scale).astype(np.float32), name)


def build(nodes, constants, inputs, outputs, opset=17, check=True):
    """A model that is checked; `inputs` are (name, shape) or (name, shape, type)."""
    values = [helper.make_tensor_value_info(n, t[0] if t else TensorProto.FLOAT, s) for n, s, *t in inputs]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs]
    graph = helper.make_graph(nodes, "graph", values, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if check:
        onnx.checker.check_model(model, full_check=True)
    return model


def node(operator, inputs, output, name=None, **attributes):
    return helper.make_node(operator, inputs, [output], name=name or f"the_{output}", **attributes)


def quantized(program, folder, model, settings):
    """What Octet makes of a model, and what it says of it."""
    example = program.parent / "examples" / "scheme"
    assert example.exists(), f"{example} is missing: `cargo build --release --features cli --example scheme` makes it"
    source, chosen, target = folder / "float.onnx", folder / "settings.json", folder / "octet.onnx"
    onnx.save(model, source)
    chosen.write_text(json.dumps(settings))
    done = subprocess.run([example, source, chosen, target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return onnx.load(target), json.loads(done.stdout)


def refused(program, folder, model, settings):
    """The words in which Octet refuses a model or settings."""
    source, chosen = folder / "float.onnx", folder / "settings.json"
    onnx.save(model, source)
    chosen.write_text(json.dumps(settings))
    example = program.parent / "examples" / "scheme"
    done = subprocess.run([example, source, chosen, folder / "octet.onnx"], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def feeds(model, seed=3):
    random, made = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            made[value.name] = random.integers(0, 8, shape)
        else:
            made[value.name] = random.standard_normal(shape).astype(np.float32)
    return made


def run(model, inputs, optimized=False):
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def constants(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def near(ours, theirs, tolerance):
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        difference, size = np.abs(mine - other).max(), np.abs(other).max()
        assert difference <= tolerance * size, f"differs by {difference} where values reach {size}"


# Dynamic


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
    settings = {"weights": weights, "perChannel": per_channel, "reduceRange": reduce_range}
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
    mine, _ = quantized(program, tmp_path, model, {"dynamic": {"perChannel": False}})
    quantize_dynamic(model, tmp_path / "theirs.onnx", weight_type=QuantType.QInt8)
    theirs = onnx.load(tmp_path / "theirs.onnx")
    for tensor in "table_quantized", "table_scale", "table_zero_point":
        np.testing.assert_array_equal(constants(mine)[tensor], constants(theirs)[tensor])
    near(run(mine, feeds(model)), run(model, feeds(model)), 0.02)


# Weights in blocks


def blocks_model(opset=17):
    """Two products and a Gemm; one column is all zeros, no height is a multiple of a block."""
    w = numpy_helper.to_array(weight("w", 70, 33)).copy()
    w[:, 3] = 0
    return build(
        [node("MatMul", ["x", "w"], "a"), node("Relu", ["a"], "r"), node("MatMul", ["r", "v"], "c"),
         node("Gemm", ["c", "u", "b"], "y", transB=1)],
        [numpy_helper.from_array(w, "w"), weight("v", 33, 64), weight("u", 12, 64), weight("b", 12)],
        [("x", [4, 70])], [("y", [4, 12])], opset,
    )  # fmt: skip


def theirs_in_blocks(w, bits, block, symmetric):
    """What ONNX Runtime's MatMulNBitsQuantizer makes of a matrix, by the kernels it calls (itself it needs onnx_ir)."""
    (rows, columns), in_byte = w.shape, 8 // bits
    count = -(-rows // block)
    packed = np.zeros((columns, count, block // in_byte), np.uint8)
    scales, zeros = np.zeros((columns, count), np.float32), np.zeros((columns, -(-count // in_byte)), np.uint8)
    padded = np.pad(w, ((0, count * block - rows), (0, 0)))
    kernel = {2: kernels.quantize_matmul_2bits, 4: kernels.quantize_matmul_4bits, 8: kernels.quantize_matmul_8bits}[bits]
    kernel(packed, padded, scales, zeros, block, columns, rows, symmetric)
    return packed, scales, zeros


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_blocks_are_onnx_runtimes_byte_for_byte(program, tmp_path, bits, block, symmetric):
    model = blocks_model()
    settings = {"bits": bits, "blockSize": block, "symmetric": symmetric, "accuracyLevel": 4, "operators": ["MatMul"]}
    mine, told = quantized(program, tmp_path, model, {"blocks": settings})
    found, floats = constants(mine), constants(model)
    for name in "w", "v":
        packed, scales, zeros = theirs_in_blocks(floats[name], bits, block, symmetric)
        ours = found[f"{name}_Q{bits}"]
        assert ours.dtype == np.uint8 and ours.shape == packed.shape
        if bits < 8:
            # ONNX Runtime leaves what was in memory in the last byte of a column; only real rows count.
            mask, shifts, rows = (1 << bits) - 1, range(0, 8, bits), len(floats[name])
            ours, packed = (
                np.stack([a >> shift & mask for shift in shifts], -1).reshape(len(a), -1)[:, :rows]
                for a in (ours, packed)
            )
        np.testing.assert_array_equal(ours, packed)
        np.testing.assert_array_equal(found[f"{name}_scales"], scales)
        assert (f"{name}_zero_points" in found) != symmetric
        if not symmetric:
            np.testing.assert_array_equal(found[f"{name}_zero_points"], zeros)
        assert name not in found
    first = next(n for n in mine.graph.node if n.op_type == "MatMulNBits")
    told_by_node = {a.name: helper.get_attribute_value(a) for a in first.attribute}
    assert told_by_node == {"K": 70, "N": 33, "bits": bits, "block_size": block, "accuracy_level": 4}
    assert (first.name, first.domain) == (f"the_a_Q{bits}", "com.microsoft")
    assert [t["block"] for t in told["tensors"]] == [block, block]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block", [16, 32])
def test_opset_21_blocks_are_onnx_runtimes_byte_for_byte(program, tmp_path, block, symmetric):
    model = blocks_model(21)
    settings = {"form": "dequantize", "blockSize": block, "symmetric": symmetric, "operators": ["MatMul"]}
    mine, _ = quantized(program, tmp_path, model, {"blocks": settings})
    onnx.checker.check_model(mine, full_check=True)
    raw, floats = {t.name: t for t in mine.graph.initializer}, constants(model)
    for name in "w", "v":
        rows, columns = floats[name].shape
        count = -(-rows // block)
        packed, zeros = np.zeros((rows * columns + 1) // 2, np.uint8), np.zeros((count * columns + 1) // 2, np.uint8)
        scales = np.zeros((count, columns), np.float32)
        kernels.quantize_qdq_matmul_4bits(packed, floats[name], scales, zeros, block, columns, rows, symmetric)
        integers = raw[f"{name}_DQ_Q4"]
        assert integers.data_type == (TensorProto.INT4 if symmetric else TensorProto.UINT4)
        assert integers.raw_data == packed.tobytes()
        np.testing.assert_array_equal(constants(mine)[f"{name}_DQ_scales"], scales)
        assert symmetric or raw[f"{name}_DQ_zero_points"].raw_data == zeros.tobytes()


def floats_of(found, name, bits, rows):
    """The matrix that the constants of a MatMulNBits stand for."""
    packed, scales, zeros = found[f"{name}_Q{bits}"], found[f"{name}_scales"], found[f"{name}_zero_points"]
    mask, shifts = (1 << bits) - 1, range(0, 8, bits)
    integers = np.stack([packed >> shift & mask for shift in shifts], -1).reshape(*scales.shape, -1)
    if zeros.dtype == np.uint8:
        zeros = np.stack([zeros >> shift & mask for shift in shifts], -1).reshape(len(zeros), -1)[:, : scales.shape[1]]
    return ((integers - zeros[..., None].astype(np.float32)) * scales[..., None]).reshape(len(packed), -1)[:, :rows].T


@pytest.mark.parametrize(
    "form, method, bits, far",
    [("matmul_nbits", method, bits, far) for bits, far in ((2, None), (4, 0.25), (8, 0.01)) for method in ("rtn", "search")]
    + [("matmul_nbits", "hqq", 2, None), ("matmul_nbits", "hqq", 4, 0.25)]
    + [("dequantize", method, bits, far) for bits, far in ((4, 0.25), (8, 0.01)) for method in ("rtn", "search")],
)
def test_blocks_run_near_the_float_model(program, tmp_path, form, method, bits, far):
    model = blocks_model(13)
    settings = {"form": form, "bits": bits, "blockSize": 16, "symmetric": False, "method": method}
    mine, told = quantized(program, tmp_path, model, {"blocks": settings})
    assert all(n["quantized"] for n in told["nodes"] if n["operator"] != "Relu")
    inputs = feeds(model)
    plain = run(mine, inputs)
    if far:
        near(plain, run(model, inputs), far)
    if form == "matmul_nbits":
        w, v, u = (floats_of(constants(mine), name, bits, rows) for name, rows in (("w", 70), ("v", 33), ("u", 64)))
        near(plain, [np.maximum(inputs["x"] @ w, 0) @ v @ u + constants(model)["b"]], 1e-5)
    # Optimized, ONNX Runtime multiplies with activations of 8 bits.
    near(run(mine, inputs, optimized=True), plain, 0.03)
    near([run_web(tmp_path / "octet.onnx", inputs)["y"]], plain, 0.03)


def test_better_methods_are_nearer_than_rounding(program, tmp_path):
    model = build([node("MatMul", ["x", "w"], "y")], [weight("w", 256, 64)], [("x", [64, 256])], [("y", [64, 64])])
    exact, off = run(model, feeds(model))[0], {}
    for symmetric in True, False:
        for method in ("rtn", "search") if symmetric else ("rtn", "search", "hqq"):
            settings = {"bits": 4, "blockSize": 32, "symmetric": symmetric, "method": method}
            mine, _ = quantized(program, tmp_path, model, {"blocks": settings})
            off[method] = np.square(run(mine, feeds(model))[0] - exact).mean()
        assert off["search"] < 0.95 * off["rtn"]
    assert constants(mine)["w_zero_points"].dtype == np.float32
    assert off["hqq"] < off["rtn"]


def test_an_old_model_is_raised_to_opset_21(program, tmp_path):
    model = build(
        [node("MatMul", ["x", "w"], "a"), helper.make_node("Split", ["a"], ["l", "r"], axis=1),
         node("ReduceMean", ["l"], "m", axes=[1], keepdims=1), node("ReduceMax", ["r"], "n", axes=[1], keepdims=1),
         node("Sub", ["m", "n"], "d"), node("Softmax", ["a"], "s"), node("Mul", ["d", "s"], "y")],
        [weight("w", 64, 32)], [("x", [4, 64])], [("y", [4, 32])], 13,
    )  # fmt: skip
    mine, _ = quantized(program, tmp_path, model, {"blocks": {"form": "dequantize", "bits": 8}})
    onnx.checker.check_model(mine, full_check=True)
    assert mine.opset_import[0].version == 21 and mine.ir_version >= 10
    near(run(mine, feeds(model)), run(model, feeds(model)), 0.02)


def test_what_can_not_be_raised_names_the_other_form(program, tmp_path):
    model = build(
        [node("MatMul", ["x", "w"], "a"), node("Reshape", ["a", "to"], "b"),
         node("GroupNormalization", ["b", "one", "one"], "y", num_groups=2)],
        [weight("w", 64, 32), weight("one", 2), numpy_helper.from_array(np.array([4, 8, 4]), "to")],
        [("x", [4, 64])], [("y", [4, 8, 4])], 18, check=False,  # deprecated
    )  # fmt: skip
    said = refused(program, tmp_path, model, {"blocks": {"form": "dequantize"}})
    assert "the_y" in said and "matmul_nbits" in said
    quantized(program, tmp_path, model, {"blocks": {}})


# Weights of 8 bits


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
    mine, told = quantized(program, tmp_path, model, {"weights": {"perChannel": per_channel}})
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
    mine, _ = quantized(program, tmp_path, model, {"weights": {"perChannel": per_channel}})
    onnx.checker.check_model(mine, full_check=True)
    found = constants(mine)
    assert set(found) == {"table_quantized", "table_scale", "table_zero_point"}
    assert found["table_scale"].shape == ((32,) if per_channel else ())
    inputs = feeds(model)
    near(run(mine, inputs), run(model, inputs), 0.01)


# Half precision


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
    mine, told = quantized(program, tmp_path, model, {"float16": {"keepIo": keep_io}})
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
        # `prepare` does not follow random numbers and subgraphs; the session, which runs the model, does.
        unknown = n["reason"] == "the type of one of its values is not known" and n["node"] in (
            "the_noise", "the_g", "the_z") + ("the_y",) * (name == "subgraphs")  # fmt: skip
        stays = unknown or n["operator"] in ("Resize", "CumSum", "Celu", "Shape", "If")
        assert n["quantized"] != stays and (n["reason"] is None) != stays, n


def test_half_precision_says_which_numbers_do_not_fit(program, tmp_path):
    mask = np.array([0, -3.4e38, 1e-9, np.inf, -1e-12], np.float32)
    model = build([node("Add", ["x", "mask"], "y")], [numpy_helper.from_array(mask, "mask")], [("x", [5])], [("y", [5])])
    mine, told = quantized(program, tmp_path, model, {"float16": {}})
    found = constants(mine)["mask"]
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.array([0, -65504, 6e-8, np.inf, -6e-8], np.float16))
    assert len(told["notes"]) == 2 and all("mask" in note for note in told["notes"]), told["notes"]


def test_half_precision_leaves_named_layers_and_operators(program, tmp_path):
    model = build(
        [node("MatMul", ["x", "w"], "a"), node("Relu", ["a"], "r"), node("MatMul", ["r", "w"], "y")],
        [weight("w", 8, 8)], [("x", [2, 8])], [("y", [2, 8])],
    )  # fmt: skip
    mine, _ = quantized(program, tmp_path, model, {"float16": {"keepFloat": ["the_y"], "floatOperators": ["Relu"]}})
    # The weight is needed in both precisions.
    kinds = {t.name: t.data_type for t in mine.graph.initializer}
    assert kinds == {"w": TensorProto.FLOAT, "w_float16": TensorProto.FLOAT16}
    near(run(mine, feeds(model)), run(model, feeds(model)), 4e-3)
    assert "the_y" in refused(program, tmp_path, model, {"float16": {"keepFloat": ["y"]}})
