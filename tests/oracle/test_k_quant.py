"""The method k_quant: integers, scales and zero points equal those of ONNX Runtime's
`quant_tensor_k_quant_cpu`; and mixed bits by the roles of layers.
"""

import importlib
import json
import subprocess
import sys
from unittest import mock

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference_runtimes import session
from schemes import node
from test_streamed import ELEMENTS, convert, model_in, raw, rows_of

# The module imports onnx_ir for its graphs; the arithmetic needs none of it.
with mock.patch.dict(sys.modules, {"onnx_ir": mock.MagicMock()}):
    k_quant = importlib.import_module("onnxruntime.quantization.neural_compressor.weight_only").quant_tensor_k_quant_cpu


def theirs(w, bits, block):
    """Integers, scales and zero points [columns, blocks], and the blocks [columns, blocks, block]."""
    rows, columns = w.shape
    count = -(-rows // block)
    padded = np.ascontiguousarray(np.pad(w, ((0, count * block - rows), (0, 0))).T)
    with np.errstate(all="ignore"):
        integers, scales, zeros = k_quant(padded, bits, block)
    shape = columns, count
    blocks = padded.astype(np.float32).reshape(*shape, block)
    return integers.astype(np.uint8).reshape(*shape, block), scales.astype(w.dtype).reshape(shape), zeros.reshape(shape), blocks


def ours(path, name, bits, block, columns, count):
    found = raw(path)
    bytes_of = lambda key, kind: np.frombuffer(found[f"{name}_{key}"][2], kind)  # noqa: E731
    integers = rows_of(bytes_of(f"Q{bits}", np.uint8).reshape(columns, -1), bits, count * block)
    zeros = rows_of(bytes_of("zero_points", np.uint8).reshape(columns, -1), bits, count)
    scales = bytes_of("scales", helper.tensor_dtype_to_np_dtype(found[f"{name}_scales"][0]))
    return integers.reshape(columns, count, block), scales.reshape(columns, count), zeros


def both_signs(blocks):
    """Blocks with numbers of both signs, or zero among them. ONNX Runtime clips the zero points of others."""
    return (blocks.min(-1) <= 0) & (blocks.max(-1) >= 0) & (blocks.min(-1) != blocks.max(-1))


@pytest.mark.parametrize("bits,block", [(2, 16), (2, 32), (4, 16), (4, 32), (4, 128), (4, 256), (8, 32), (8, 128)])
@pytest.mark.parametrize("element", ["float32", "float16"])
def test_k_quant_is_onnx_runtimes(program, tmp_path, element, bits, block):
    source, floats = model_in(tmp_path, element)
    out = tmp_path / "q.onnx"
    done = convert(program, source, out, {"method": "k_quant", "bits": bits, "size": block})
    assert done.returncode == 0, done.stderr
    for name, w in ("w", floats["w"]), ("v", floats["v"].T):
        integers, scales, zeros, blocks = theirs(w, bits, block)
        same = both_signs(blocks)
        found = ours(out, name, bits, block, *same.shape)
        real = np.arange(same.shape[1] * block).reshape(1, -1, block) < len(w)
        compared = np.broadcast_to(real & same[..., None], integers.shape)
        np.testing.assert_array_equal(found[0][compared], integers[compared])
        np.testing.assert_array_equal(found[1][same], scales[same])
        np.testing.assert_array_equal(found[2][same], zeros[same])
        assert same.mean() > 0.9


def matrix_model(folder, w):
    rows, columns = w.shape
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, rows])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, columns])
    graph = helper.make_graph([node("MatMul", ["x", "w"], "y")], "g", [x], [y], [numpy_helper.from_array(w, "w")])
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def in_memory(program, source, out, settings):
    chosen = json.dumps({"scheme": "blocks", "blocks": settings})
    return subprocess.run([program, "quantize", source, "--config", chosen, "--out", out], capture_output=True, text=True)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_heavy_tails_and_large_matrices_are_onnx_runtimes(program, tmp_path, bits):
    random = np.random.default_rng(bits)
    w = (random.standard_t(6, (1024, 300)) * np.exp(0.3 * random.standard_normal((1024, 1))) / 32).astype(np.float32)
    source, out, whole = matrix_model(tmp_path, w), tmp_path / "q.onnx", tmp_path / "whole.onnx"
    settings = {"method": "k_quant", "bits": bits, "size": 32}
    done = convert(program, source, out, settings)
    assert done.returncode == 0, done.stderr
    integers, scales, zeros, blocks = theirs(w, bits, 32)
    assert both_signs(blocks).all()
    found = ours(out, "w", bits, 32, *scales.shape)
    for one, other in zip(found, (integers, scales, zeros), strict=True):
        np.testing.assert_array_equal(one, other)
    assert in_memory(program, source, whole, settings).returncode == 0
    assert {name: data for name, (*_, data) in raw(whole).items()} == {name: data for name, (*_, data) in raw(out).items()}
    x = random.standard_normal((1, 1024)).astype(np.float32)
    y = session(out).run(None, {"x": x})[0]
    wide = (integers.astype(np.float32) - zeros[..., None]) * scales[..., None]
    exact = x @ wide.reshape(300, 1024).T
    np.testing.assert_allclose(y, exact, atol=np.abs(exact).max() * 1e-5)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_blocks_of_one_sign_come_back_where_onnx_runtimes_do_not(program, tmp_path, bits):
    random = np.random.default_rng(5)
    w = (np.abs(random.standard_normal((64, 40))) + 3).astype(np.float32)
    w[:, ::2] *= -1
    out = tmp_path / "q.onnx"
    assert convert(program, matrix_model(tmp_path, w), out, {"method": "k_quant", "bits": bits, "size": 32}).returncode == 0

    def error(integers, scales, zeros):
        wide = (integers.astype(np.float32) - zeros[..., None]) * scales[..., None]
        return np.sqrt(np.square(wide.reshape(40, 64).T - w).mean() / np.square(w).mean())

    mine = error(*ours(out, "w", bits, 32, 40, 2))
    assert mine < 0.5 / (2**bits - 1) and error(*theirs(w, bits, 32)[:3]) > 0.3, mine


def test_it_is_never_symmetric(program, tmp_path):
    source, _ = model_in(tmp_path, "float32")
    done = convert(program, source, tmp_path / "q.onnx", {"method": "k_quant", "symmetric": True})
    assert done.returncode != 0 and "never symmetric" in done.stderr, done.stderr


def decoder(folder, layers, element):
    """A decoder of GroupQueryAttention and gated feed-forward parts; its head reads the embeddings."""
    kind, width, inner, heads = ELEMENTS[element][1], 64, 128, 4
    random = np.random.default_rng(3)
    constants, nodes = [], []

    def constant(shape, scale=0.1):
        values = (random.standard_normal(shape) * scale).astype(ELEMENTS[element][0])
        constants.append(numpy_helper.from_array(values, f"c{len(constants)}"))
        return constants[-1].name

    def add(operator, inputs, **attributes):
        nodes.append(node(operator, inputs, f"t{len(nodes)}", name=f"n{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    table = constant((96, width))
    x = add("Gather", [table, "ids"])
    scale = constant((width,), 1)
    for _ in range(layers):
        normed = add("SimplifiedLayerNormalization", [x, scale], axis=-1, epsilon=1e-5)
        q, k, v = (add("MatMul", [normed, constant((width, size))]) for size in (width, width // 2, width // 2))
        attention = add("GroupQueryAttention", [q, k, v, "", "", "lengths", "total"], num_heads=heads, kv_num_heads=2, domain="com.microsoft")
        x = add("Add", [x, add("MatMul", [attention, constant((width, width))])])
        normed = add("SimplifiedLayerNormalization", [x, scale], axis=-1, epsilon=1e-5)
        gate, up = (add("MatMul", [normed, constant((width, inner))]) for _ in range(2))
        swish = add("Mul", [gate, add("Sigmoid", [gate])])
        x = add("Add", [x, add("MatMul", [add("Mul", [swish, up]), constant((inner, width))])])
    last = add("SimplifiedLayerNormalization", [x, scale], axis=-1, epsilon=1e-5)
    nodes.append(node("MatMul", [last, add("Transpose", [table], perm=[1, 0])], "logits", name="last"))
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 5]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, [1]),
        helper.make_tensor_value_info("total", TensorProto.INT32, [1]),
    ]
    logits = helper.make_tensor_value_info("logits", kind, [1, 5, 96])
    graph = helper.make_graph(nodes, "g", inputs, [logits], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "decoder.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path, save_as_external_data=True, size_threshold=0, location="d.data")
    return path


def bits_of(path):
    """Bits by [rows, columns] of the products in order, and of the table."""
    nodes = [n for n in onnx.load(path, load_external_data=False).graph.node if n.op_type in ("MatMulNBits", "GatherBlockQuantized")]
    values = [{a.name: a.i for a in n.attribute} for n in nodes]
    return [(one.get("K", 0), one.get("N", 0), one["bits"]) for one in values]


def logits_of(path):
    feeds = {"ids": np.array([[1, 5, 9, 2, 70]]), "lengths": np.array([4], np.int32), "total": np.array(5, np.int32).reshape(1)}
    return session(path).run(None, feeds)[0].astype(np.float32)


@pytest.mark.parametrize("method", ["rtn", "k_quant", "search"])
def test_mixed_bits_follow_the_roles_and_lower_the_error(program, tmp_path, method):
    source, plain, mixed = decoder(tmp_path, 9, "float32"), tmp_path / "p.onnx", tmp_path / "m.onnx"
    settings = {"method": method, "embeddings": True}
    assert convert(program, source, plain, settings).returncode == 0
    done = convert(program, source, mixed, {**settings, "mixed": "k_quant_mixed"})
    assert done.returncode == 0, done.stderr
    layers = [i for i in range(9) if i < 9 / 8 or i >= 7 * 9 / 8 or (i - round(9 / 8)) % 3 == 2]
    wanted = [(0, 0, 8)]
    for layer in range(9):
        many = 8 if layer in layers else 4
        wanted += [(64, 64, 4), (64, 32, 4), (64, 32, many), (64, 64, 4), (64, 128, 4), (64, 128, 4), (128, 64, many)]
    assert bits_of(mixed) == [*wanted, (64, 96, 8)]
    assert f"the head, {len(layers)} value projections" in done.stdout + done.stderr
    floats = logits_of(source)
    errors = [np.square(logits_of(path) - floats).sum() for path in (plain, mixed)]
    assert errors[1] < 0.8 * errors[0], errors


def test_a_budget_of_bytes_holds(program, tmp_path):
    source = decoder(tmp_path, 4, "float16")

    def stored(settings):
        out = tmp_path / "b.onnx"
        done = convert(program, source, out, {"embeddings": True, **settings})
        assert done.returncode == 0, done.stderr
        # Views share the bytes of the table.
        return sum({t[2]: len(t[2]) for t in raw(out).values()}.values()), bits_of(out), done.stdout + done.stderr

    least, most = stored({})[0], stored({"bits": 8})[0]
    counts = []
    for part in (0, 0.1, 0.5, 1):
        budget = int(least + (most - least) * part)
        size, bits, text = stored({"mixed": {"bytes": budget}})
        assert size <= budget and f"of {budget} bytes" in text, (size, budget, text)
        counts.append(sum(many == 8 for *_, many in bits))
    assert counts[0] == 0 and counts[1] > 0 and counts == sorted(counts) and counts[-1] == len(bits)
