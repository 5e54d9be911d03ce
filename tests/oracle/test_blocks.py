"""Block-wise weights: integers, scales and zero points equal ONNX Runtime's, and its runtimes run
them.
"""

import json
import subprocess

import numpy as np
import onnx
import pytest
from reference_runtimes import load_samples, run_web, save_samples, sqnr
from reference_runtimes import run as outputs_of
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state as kernels
from schemes import build, constants, feeds, near, node, quantized, refused, run, weight


def blocks_model(opset=17):
    """Two products and a Gemm; one column is all zeros, and no height is a multiple of a block."""
    w = numpy_helper.to_array(weight("w", 70, 33)).copy()
    w[:, 3] = 0
    return build(
        [node("MatMul", ["x", "w"], "a"), node("Relu", ["a"], "r"), node("MatMul", ["r", "v"], "c"),
         node("Gemm", ["c", "u", "b"], "y", transB=1)],
        [numpy_helper.from_array(w, "w"), weight("v", 33, 64), weight("u", 12, 64), weight("b", 12)],
        [("x", [4, 70])], [("y", [4, 12])], opset,
    )  # fmt: skip


def theirs_in_blocks(w, bits, block, symmetric):
    """The result of ONNX Runtime's MatMulNBitsQuantizer, from the kernels that it calls (the class
    itself needs onnx_ir).
    """
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
    settings = {"bits": bits, "size": block, "symmetric": symmetric, "accuracy_level": 4}
    mine, told = quantized(program, tmp_path, model, {"blocks": {"blocks": settings, "operators": ["MatMul"]}})
    found, floats = constants(mine), constants(model)
    for name in "w", "v":
        packed, scales, zeros = theirs_in_blocks(floats[name], bits, block, symmetric)
        ours = found[f"{name}_Q{bits}"]
        assert ours.dtype == np.uint8 and ours.shape == packed.shape
        if bits < 8:
            # ONNX Runtime leaves the last byte of a column uninitialized; only real rows are
            # compared.
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


@pytest.mark.parametrize("form", ["matmul_nbits", "dequantize"])
def test_a_layers_own_blocks_are_those_that_all_would_have(program, tmp_path, form):
    model = blocks_model(21)
    general, own = {"form": form, "size": 16}, {"bits": 8, "size": 32, "symmetric": False}
    mine, told = quantized(program, tmp_path, model, {"blocks": {"blocks": general, "by_operator": {"Gemm": {"blocks": own}}}})
    assert [(t["name"], t["block"]) for t in told["tensors"]] == [("w", 16), ("v", 16), ("u", 32)]
    found = constants(mine)
    for name, settings in ("w", general), ("v", general), ("u", {**general, **own}):
        alone = constants(quantized(program, tmp_path, model, {"blocks": {"blocks": settings}})[0])
        of_it = [key for key in alone if key.startswith(f"{name}_")]
        assert len(of_it) == (3 if name == "u" else 2)
        for key in of_it:
            np.testing.assert_array_equal(found[key], alone[key])
    inputs = feeds(model)
    near(run(mine, inputs), run(model, inputs), 0.25)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block", [16, 32])
def test_opset_21_blocks_are_onnx_runtimes_byte_for_byte(program, tmp_path, block, symmetric):
    model = blocks_model(21)
    settings = {"form": "dequantize", "size": block, "symmetric": symmetric}
    mine, _ = quantized(program, tmp_path, model, {"blocks": {"blocks": settings, "operators": ["MatMul"]}})
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
    """The matrix from the constants of a MatMulNBits."""
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
    settings = {"form": form, "bits": bits, "size": 16, "symmetric": False, "method": method}
    mine, told = quantized(program, tmp_path, model, {"blocks": {"blocks": settings}})
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
            settings = {"bits": 4, "size": 32, "symmetric": symmetric, "method": method}
            mine, _ = quantized(program, tmp_path, model, {"blocks": {"blocks": settings}})
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
    mine, _ = quantized(program, tmp_path, model, {"blocks": {"blocks": {"form": "dequantize", "bits": 8}}})
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
    said = refused(program, tmp_path, model, {"blocks": {"blocks": {"form": "dequantize"}}})
    assert "the_y" in said and "matmul_nbits" in said
    quantized(program, tmp_path, model, {"blocks": {}})


def test_each_layer_of_a_transformer_in_blocks_is_compared(program, corpus, tmp_path):
    source, target = corpus.model("minilm"), tmp_path / "blocks.onnx"
    subprocess.run([program, "quantize", source, "--out", target, "--scheme", "blocks"], check=True, capture_output=True)
    samples = load_samples(corpus.samples("minilm"))[:1]
    command = [program, "compare", source, target, "--data", save_samples(tmp_path / "samples", samples), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    layers = [layer["added"]["sqnr"] for layer in told["layers"] if layer["operator"].endswith("MatMulNBits")]
    assert len(layers) == 18 and all(10 < added < 40 for added in layers), layers
    ends = {output["name"]: output["apart"]["sqnr"] for output in told["outputs"]}
    mine, theirs = (outputs_of(path, samples)[0]["461"] for path in (target, source))
    assert abs(ends["461"] - float(sqnr([theirs], [mine]))) < 0.5
