"""Models that are converted piece by piece: integers and scales equal ONNX Runtime's, for float32 and
16-bit sources, in one data file or several, and both checkers accept the result.
"""

import json
import subprocess

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state as kernels
from reference_runtimes import session
from schemes import node

ELEMENTS = {
    "float32": (np.float32, TensorProto.FLOAT),
    "float16": (np.float16, TensorProto.FLOAT16),
    "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16),
}


def matrix(name, rows, columns, element):
    random = np.random.default_rng(rows * columns)
    values = random.standard_normal((rows, columns)) * 0.05
    values[:, 3] = 0
    return numpy_helper.from_array(values.astype(ELEMENTS[element][0]), name)


def model_in(folder, element, columns=96):
    """Two products with one weight, a Gemm with a transposed one, and a table that stays; saved with
    external data.
    """
    kind = ELEMENTS[element][1]
    constants = [
        matrix("w", 300, columns, element),
        matrix("v", 64, columns, element),
        matrix("table", 500, 300, element),
        numpy_helper.from_array(np.zeros(64, ELEMENTS[element][0]), "b"),
    ]
    nodes = [
        node("Gather", ["table", "ids"], "x"),
        node("MatMul", ["x", "w"], "m"),
        node("MatMul", ["x", "w"], "n"),
        node("Add", ["m", "n"], "a"),
        node("Gemm", ["a", "v", "b"], "y", transB=1),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [7])
    result = helper.make_tensor_value_info("y", kind, [7, 64])
    graph = helper.make_graph(nodes, "g", [ids], [result], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, location="m.data")
    return path, {t.name: numpy_helper.to_array(t) for t in constants}


def convert(program, source, out, settings, *options):
    chosen = json.dumps({"scheme": "blocks", "blocks": settings})
    command = [program, "quantize", source, "--stream", "--config", chosen, "--out", out, *options]
    return subprocess.run(command, capture_output=True, text=True)


def raw(path):
    """Type, shape and bytes of each constant."""
    tensors = onnx.load(path).graph.initializer
    return {t.name: (t.data_type, tuple(t.dims), t.raw_data) for t in tensors}


def theirs(w, bits, block, symmetric):
    """Integers, scales and zero points of ONNX Runtime's kernels."""
    (rows, columns), in_byte = w.shape, 8 // bits
    count = -(-rows // block)
    # bfloat16 is computed in float32; its scales are rounded at the end.
    wide = w.astype(np.float32) if w.dtype == ml_dtypes.bfloat16 else w
    packed = np.zeros((columns, count, block // in_byte), np.uint8)
    scales, zeros = np.zeros((columns, count), wide.dtype), np.zeros((columns, -(-count // in_byte)), np.uint8)
    padded = np.pad(wide, ((0, count * block - rows), (0, 0)))
    kernel = {2: kernels.quantize_matmul_2bits, 4: kernels.quantize_matmul_4bits, 8: kernels.quantize_matmul_8bits}[bits]
    kernel(packed, padded, scales, zeros, block, columns, rows, symmetric)
    return packed, scales.astype(w.dtype), zeros


def rows_of(packed, bits, rows):
    """The integers of the real rows: ONNX Runtime leaves those behind them undefined."""
    shifts = range(0, 8, bits)
    return np.stack([packed >> shift & (1 << bits) - 1 for shift in shifts], -1).reshape(len(packed), -1)[:, :rows]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits,block", [(2, 16), (4, 16), (4, 32), (4, 256), (8, 64)])
@pytest.mark.parametrize("element", ELEMENTS)
def test_streamed_blocks_are_onnx_runtimes(program, tmp_path, element, bits, block, symmetric):
    source, floats = model_in(tmp_path, element)
    out = tmp_path / "q.onnx"
    done = convert(program, source, out, {"bits": bits, "size": block, "symmetric": symmetric})
    assert done.returncode == 0, done.stderr
    found = raw(out)
    for name, w in ("w", floats["w"]), ("v", floats["v"].T):
        packed, scales, zeros = theirs(np.ascontiguousarray(w), bits, block, symmetric)
        kind, shape, ours = found[f"{name}_Q{bits}"]
        assert (kind, shape) == (TensorProto.UINT8, packed.shape)
        ours = np.frombuffer(ours, np.uint8).reshape(shape)
        np.testing.assert_array_equal(rows_of(ours, bits, len(w)), rows_of(packed, bits, len(w)))
        kind, shape, ours = found[f"{name}_scales"]
        assert (kind, shape) == (ELEMENTS[element][1], scales.shape)
        assert ours == scales.tobytes()
        if not symmetric:
            assert found[f"{name}_zero_points"] == (TensorProto.UINT8, zeros.shape, zeros.tobytes())
        assert name not in found
    before = raw(source)
    assert found["table"] == before["table"] and found["b"] == before["b"]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("stream,activations", [(True, "float16"), (False, "float16"), (False, "source")])
@pytest.mark.parametrize("element", ["float16", "bfloat16"])
def test_integers_from_16_bits_are_onnx_runtimes_in_memory_too(program, tmp_path, element, stream, activations, symmetric):
    source, floats = model_in(tmp_path, element)
    out = tmp_path / "q.onnx"
    chosen = json.dumps({"scheme": "blocks", "blocks": {"symmetric": symmetric, "activations": activations}})
    command = [program, "quantize", source, "--config", chosen, "--out", out, *["--stream"] * stream]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = raw(out)
    for name, w in ("w", floats["w"]), ("v", floats["v"].T):
        packed, scales, zeros = theirs(np.ascontiguousarray(w), 4, 32, symmetric)
        kind, shape, ours = found[f"{name}_Q4"]
        ours = np.frombuffer(ours, np.uint8).reshape(shape)
        np.testing.assert_array_equal(rows_of(ours, 4, len(w)), rows_of(packed, 4, len(w)))
        kind, shape, ours = found[f"{name}_scales"]
        assert kind == (TensorProto.FLOAT16 if activations == "float16" else TensorProto.FLOAT)
        ours = np.frombuffer(ours, np.float16 if activations == "float16" else np.float32).reshape(shape)
        # Exact where both have one type; otherwise up to the rounding of one of them.
        np.testing.assert_allclose(ours.astype(np.float32), scales.astype(np.float32), rtol=2**-8 if element == "bfloat16" else 0)
        if not symmetric:
            assert found[f"{name}_zero_points"][2] == zeros.tobytes()


@pytest.mark.parametrize("element", ["float32", "float16"])
def test_a_result_in_several_files_loads_and_computes_the_same(program, tmp_path, element):
    source, floats = model_in(tmp_path, element, columns=8192)
    one, several = tmp_path / "one.onnx", tmp_path / "several.onnx"
    for out, options in (one, []), (several, ["--data-size", "1"]):
        done = convert(program, source, out, {"bits": 4, "size": 32}, *options)
        assert done.returncode == 0, done.stderr
        onnx.checker.check_model(out, full_check=True)
    data = sorted(path.name for path in tmp_path.glob("several.onnx_data*"))
    assert len(data) > 1 and data[:2] == ["several.onnx_data", "several.onnx_data_1"]
    assert raw(one) == raw(several)
    entries = [t for t in onnx.load(several, load_external_data=False).graph.initializer if t.external_data]
    offsets = [int(e.value) for t in entries for e in t.external_data if e.key == "offset"]
    assert all(offset % 4096 == 0 for offset in offsets)
    ids = {"ids": np.arange(7, dtype=np.int64) * 3}
    outputs = [session(path).run(None, ids)[0] for path in (one, several)]
    np.testing.assert_array_equal(*outputs)
    wide = {name: value.astype(np.float32) for name, value in floats.items()}
    exact = wide["table"][ids["ids"]] @ wide["w"] * 2 @ wide["v"].T
    error = np.square(outputs[0].astype(np.float32) - exact).sum() / np.square(exact).sum()
    assert error < 0.02, error


def test_bad_data_files_are_named_and_nothing_is_left_behind(program, tmp_path):
    source, _ = model_in(tmp_path, "float32")
    data = tmp_path / "m.data"
    whole = data.read_bytes()
    before = {path.name for path in tmp_path.iterdir()}
    for damage, word in [
        (lambda: data.write_bytes(whole[:-10]), "cut short"),
        (data.unlink, "missing"),
    ]:
        damage()
        done = convert(program, source, tmp_path / "q.onnx", {})
        assert done.returncode == 3 and word in done.stderr and "m.data" in done.stderr, done.stderr
        data.write_bytes(whole)
        assert {path.name for path in tmp_path.iterdir()} == before
    damaged = bytearray(whole)
    damaged[0:4] = np.float32(np.nan).tobytes()
    data.write_bytes(damaged)
    floats = raw(source)
    done = convert(program, source, tmp_path / "q.onnx", {}, "--report", tmp_path / "report.yaml")
    assert done.returncode == 0, done.stderr
    found = raw(tmp_path / "q.onnx")
    assert found["w"] == floats["w"] and "v_Q4" in found and "v" not in found
    assert "infinite or NaN" in (tmp_path / "report.yaml").read_text()


def tied_model(folder, element, turned):
    """An embedding table that is also the head, through a Transpose or as a Gemm's transposed weight."""
    kind = ELEMENTS[element][1]
    table = matrix("table", 400, 96, element)
    head = (
        [node("Transpose", ["table"], "t", perm=[1, 0]), node("MatMul", ["x", "t"], "y")]
        if turned
        else [node("Gemm", ["x", "table"], "y", transB=1)]
    )
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [5])
    result = [helper.make_tensor_value_info(n, kind, [5, s]) for n, s in (("y", 400), ("x", 96))]
    graph = helper.make_graph([node("Gather", ["table", "ids"], "x"), *head], "g", [ids], result, [table])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, location="m.data")
    return path, numpy_helper.to_array(table)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("element", ["float32", "float16"])
def test_a_tied_head_and_its_embeddings_are_stored_once(program, tmp_path, element, turned, bits, symmetric):
    source, table = tied_model(tmp_path, element, turned)
    out = tmp_path / "q.onnx"
    settings = {"bits": bits, "size": 32, "symmetric": symmetric, "embeddings": True}
    done = convert(program, source, out, settings)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(out)
    graph = onnx.load(out, load_external_data=False).graph
    assert [n.op_type for n in graph.node] == ["GatherBlockQuantized", "MatMulNBits"]
    places = {t.name: {e.key: e.value for e in t.external_data} for t in graph.initializer}
    gather, product = graph.node
    assert places[gather.input[0]] == places[product.input[1]] and gather.input[0] != product.input[1]
    assert list(gather.input[2:]) == list(product.input[2:])
    stored = (tmp_path / "q.onnx_data").stat().st_size
    assert stored < table.size * bits / 8 + table.size / 32 * 6 + 3 * 4096
    packed, scales, zeros = theirs(np.ascontiguousarray(table.T), bits, 32, symmetric)
    integers = rows_of(packed, bits, 96).astype(np.float32)
    middle = rows_of(zeros, bits, 3).astype(np.float32) if not symmetric else np.full((400, 3), float(1 << bits - 1))
    wide = (integers - np.repeat(middle, 32, 1)) * np.repeat(scales.astype(np.float32), 32, 1)
    ids = np.array([0, 3, 399, 7, 7])
    y, x = session(out).run(None, {"ids": ids})
    np.testing.assert_array_equal(x, wide[ids].astype(x.dtype))
    exact = wide[ids] @ wide.T
    np.testing.assert_allclose(y.astype(np.float32), exact, atol=np.abs(exact).max() * (2e-3 if element == "float16" else 1e-5))


def test_without_the_setting_embeddings_stay_as_they_are(program, tmp_path):
    source, table = tied_model(tmp_path, "float32", True)
    out = tmp_path / "q.onnx"
    assert convert(program, source, out, {}).returncode == 0
    assert [n.op_type for n in onnx.load(out).graph.node] == ["Gather", "MatMulNBits"]
    assert raw(out)["table"][2] == table.tobytes()


def test_a_result_never_replaces_the_weights_of_its_model(program, tmp_path):
    source, _ = model_in(tmp_path, "float32")
    before = (tmp_path / "m.data").read_bytes()
    done = convert(program, source, tmp_path / "m.data", {})
    assert done.returncode == 2 and "holds the model's weights" in done.stderr, done.stderr
    assert (tmp_path / "m.data").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.data", "m.onnx"]


def test_a_large_model_is_recognised_by_the_files_that_it_names(program, tmp_path):
    """A gigabyte of zeros that takes no disk; `--save-prepared` is refused before anything is read."""
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[16384, 16400], data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value="weights")
    (tmp_path / "weights").touch()
    with (tmp_path / "weights").open("r+b") as file:
        file.truncate(4 * 16384 * 16400)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, size]) for n, size in (("x", 16384), ("y", 16400)))
    graph = helper.make_graph([node("MatMul", ["x", "w"], "y")], "g", [x], [y], [w])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    command = [program, "quantize", tmp_path / "m.onnx", "--scheme", "blocks", "--save-prepared", tmp_path / "p.onnx"]
    done = subprocess.run([*command, "--out", tmp_path / "q.onnx"], capture_output=True, text=True)
    assert done.returncode == 2 and "piece by piece" in done.stderr, done.stderr
