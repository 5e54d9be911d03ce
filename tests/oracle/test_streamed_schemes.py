"""Every scheme without samples, piece by piece, in ONNX Runtime: half precision, blocks between
halves, 8-bit weights, dynamic products and 4-bit floats. And the run itself: reports, forecasts,
signals, a disk that fills up.
"""

import json
import resource
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
import yaml
from llama_graph import Shape, write_llama
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state as kernels
from reference_runtimes import session, sqnr
from schemes import node

SMALL = Shape(layers=2, width=128, heads=4, kv_heads=2, inner=256, vocabulary=500)
IDS = {"input_ids": np.arange(24).reshape(2, 12) * 17 % 500}


def llama(path, shape=SMALL):
    random = np.random.default_rng(7)

    def weight(name, dims):
        yield (random.standard_normal(dims) / np.sqrt(dims[0]) if "norm" not in name else np.ones(dims)).astype(np.float32)

    write_llama(path, shape, weight)
    return path


def convert(program, source, out, settings, *options):
    command = [program, "quantize", source, "--stream", "--config", json.dumps(settings), "--out", out, *options]
    return subprocess.run(command, capture_output=True, text=True)


def converted(program, source, out, settings, *options, check=True):
    done = convert(program, source, out, settings, *options)
    assert done.returncode == 0, done.stderr
    if check:
        onnx.checker.check_model(out)
    return onnx.load(out)


def logits(path, feeds=IDS):
    return session(path).run(None, feeds)[0].astype(np.float64)


def constants(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


BLOCKS = {"scheme": "blocks", "blocks": {"size": 32}}
HALF_BLOCKS = {"scheme": "blocks", "blocks": {"size": 32, "activations": "float16"}}


@pytest.mark.parametrize(
    "settings,least,share",
    [
        ({"scheme": "float16"}, 45, 0.51),
        ({"scheme": "weights"}, 25, 0.45),
        ({"scheme": "dynamic"}, 20, 0.45),
        ({"scheme": "dynamic", "weights": {"type": "u8", "per_channel": False}}, 18, 0.45),
        (HALF_BLOCKS, 10, 0.3),
        ({"scheme": "blocks", "blocks": {"form": "matmul_bnb4", "size": 64}}, 10, 0.4),
        ({"scheme": "blocks", "blocks": {"form": "matmul_bnb4", "size": 64, "float_type": "fp4"}}, 8, 0.4),
    ],
)
def test_each_scheme_loads_and_is_near_the_float_model(program, tmp_path, settings, least, share):
    source = llama(tmp_path / "m.onnx")
    converted(program, source, tmp_path / "q.onnx", settings)
    found = sqnr([logits(source)], [logits(tmp_path / "q.onnx")])
    before, after = ((tmp_path / f"{name}.onnx_data").stat().st_size for name in "mq")
    print(settings, f"{found:.1f} dB, {after / before:.2f}")
    assert found > least and after < share * before


def test_blocks_between_halves_have_the_integers_of_blocks_and_nearly_their_outputs(program, tmp_path):
    source = llama(tmp_path / "m.onnx")
    wide = constants(converted(program, source, tmp_path / "q4.onnx", BLOCKS))
    model = converted(program, source, tmp_path / "q4f16.onnx", HALF_BLOCKS)
    half = constants(model)
    names = [name for name in wide if name.endswith("_Q4")]
    assert len(names) == 15
    for name in names:
        np.testing.assert_array_equal(wide[name], half[name])
        scales = name.replace("_Q4", "_scales")
        assert half[scales].dtype == np.float16
        np.testing.assert_array_equal(half[scales], wide[scales].astype(np.float16))
    assert {half[n].dtype for n in half} <= {np.dtype(t) for t in (np.float16, np.uint8, np.int64)} | {np.dtype(np.float32)}
    exact = logits(source)
    near, apart = sqnr([logits(tmp_path / "q4.onnx")], [logits(tmp_path / "q4f16.onnx")]), sqnr([exact], [logits(tmp_path / "q4.onnx")])
    print(f"q4f16 {near:.1f} dB from q4, which is {apart:.1f} dB from the float model")
    assert near > apart + 15


def decoder(path):
    """A decoder as onnxruntime-genai writes it: ONNX Runtime's own operators and caches."""
    random = np.random.default_rng(3)
    width, heads, head, kv = 64, 4, 16, 32

    def weight(name, *shape, scale=0.1):
        return numpy_helper.from_array((random.standard_normal(shape) * scale).astype(np.float32), name)

    angles = np.arange(32)[:, None] * 100.0 ** -(np.arange(head // 2) / (head // 2))
    weights = [
        weight("table", 300, width, scale=1), weight("one", width), weight("two", width), weight("q", width, width),
        weight("k", width, kv), weight("v", width, kv), weight("o", width, width), weight("up", width, 256), weight("head", 256, 300),
        numpy_helper.from_array(np.cos(angles).astype(np.float32), "cos"), numpy_helper.from_array(np.sin(angles).astype(np.float32), "sin"),
    ]  # fmt: skip
    ms = {"domain": "com.microsoft"}
    nodes = [
        node("Gather", ["table", "input_ids"], "x"),
        node("SimplifiedLayerNormalization", ["x", "one"], "n", epsilon=1e-5, axis=-1),
        node("MatMul", ["n", "q"], "wide_q"), node("MatMul", ["n", "k"], "wide_k"), node("MatMul", ["n", "v"], "wide_v"),
        node("RotaryEmbedding", ["wide_q", "position_ids", "cos", "sin"], "turned", num_heads=heads, rotary_embedding_dim=head, **ms),
        helper.make_node(
            "GroupQueryAttention",
            ["turned", "wide_k", "wide_v", "past_key_values.0.key", "past_key_values.0.value", "last", "total"],
            ["mixed", "present.0.key", "present.0.value"], "attention", num_heads=heads, kv_num_heads=2, scale=0.25, **ms),
        node("MatMul", ["mixed", "o"], "change"),
        helper.make_node("SkipSimplifiedLayerNormalization", ["x", "change", "two"], ["m", "", "", "sum"], "skip", epsilon=1e-5, **ms),
        node("MatMul", ["m", "up"], "u"), node("Sigmoid", ["u"], "s"), node("Mul", ["u", "s"], "g"), node("MatMul", ["g", "head"], "logits"),
    ]  # fmt: skip
    value, real = helper.make_tensor_value_info, TensorProto.FLOAT
    cache = [["batch", 2, length, head] for length in ("past", "all")]
    inputs = [
        value("input_ids", TensorProto.INT64, ["batch", "length"]), value("position_ids", TensorProto.INT64, ["batch", "length"]),
        value("last", TensorProto.INT32, ["batch"]), value("total", TensorProto.INT32, []),
        *(value(f"past_key_values.0.{part}", real, cache[0]) for part in ("key", "value")),
    ]  # fmt: skip
    outputs = [value("logits", real, ["batch", "length", 300]), *(value(f"present.0.{part}", real, cache[1]) for part in ("key", "value"))]
    inner = {"turned": width, "mixed": width, "m": width, "sum": width, "n": width}
    declared = [value(name, real, ["batch", "length", size]) for name, size in inner.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights, value_info=declared)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path, save_as_external_data=True, size_threshold=0, location="d.data")
    return path


def steps(kind):
    empty = np.zeros((1, 2, 0, 16), kind)
    return {
        "input_ids": np.array([[5, 9, 250, 3]]), "position_ids": np.arange(4)[None], "last": np.array([3], np.int32), "total": np.array(4, np.int32),
        "past_key_values.0.key": empty, "past_key_values.0.value": empty,
    }  # fmt: skip


@pytest.mark.parametrize("settings,least", [({"scheme": "float16"}, 45), ({**HALF_BLOCKS, "blocks": {"activations": "float16", "embeddings": True}}, 8)])
def test_operators_of_decoders_run_in_half_without_casts_between_them(program, tmp_path, settings, least):
    source = decoder(tmp_path / "d.onnx")
    kept = {**settings, "keep_io": ["logits"]}
    # The checker does not know SimplifiedLayerNormalization, which ONNX Runtime has in ONNX's domain.
    model = converted(program, source, tmp_path / "h.onnx", kept, check=False)
    casts = [n for n in model.graph.node if n.op_type == "Cast"]
    assert [n.output[0] for n in casts] == ["logits"]
    kinds = {v.name: v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]}
    assert kinds["past_key_values.0.key"] == kinds["present.0.value"] == TensorProto.FLOAT16 and kinds["logits"] == TensorProto.FLOAT
    found, wanted = logits(tmp_path / "h.onnx", steps(np.float16)), logits(source, steps(np.float32))
    apart = sqnr([wanted], [found])
    print(f"{apart:.1f} dB")
    assert apart > least


def product(folder, rows, columns, kind, transposed):
    random = np.random.default_rng(rows)
    w = random.standard_normal((rows, columns)).astype(kind)
    element = helper.np_dtype_to_tensor_dtype(w.dtype)
    nodes = [node("Gemm", ["x", "w"], "y", transB=1)] if transposed else [node("MatMul", ["x", "w"], "y")]
    stored = numpy_helper.from_array(np.ascontiguousarray(w.T if transposed else w), "w")
    x, y = (helper.make_tensor_value_info(n, element, [3, size]) for n, size in (("x", rows), ("y", columns)))
    made = helper.make_model(helper.make_graph(nodes, "g", [x], [y], [stored]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "m.onnx")
    return w


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows,columns,block", [(256, 300, 64), (100, 333, 16), (65, 1001, 64), (512, 96, 128)])
@pytest.mark.parametrize("float_type", ["fp4", "nf4"])
def test_4_bit_floats_are_onnx_runtimes_byte_for_byte(program, tmp_path, float_type, rows, columns, block, transposed, kind):
    w = product(tmp_path, rows, columns, kind, transposed)
    settings = {"scheme": "blocks", "blocks": {"form": "matmul_bnb4", "size": block, "float_type": float_type}}
    for options in ["--stream"], []:
        if kind == np.float16 and not options:
            continue  # In memory the weights become float32 first.
        out = tmp_path / f"q{len(options)}.onnx"
        command = [program, "quantize", tmp_path / "m.onnx", "--config", json.dumps(settings), "--out", out, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        model = onnx.load(out)
        found, kind_id = constants(model), ["fp4", "nf4"].index(float_type)
        packed, most = np.zeros((w.size + 1) // 2, np.uint8), np.zeros(-(-w.size // block), kind)
        kernels.quantize_matmul_bnb4(packed, w.T.copy(), most, block, kind_id, columns, rows)
        np.testing.assert_array_equal(found["w_absmax"], most)
        np.testing.assert_array_equal(found["w_Bnb4"], packed)
        attributes = {a.name: a.i for a in model.graph.node[0].attribute}
        assert attributes == {"K": rows, "N": columns, "block_size": block, "quant_type": kind_id}
        if kind == np.float32:
            x = np.random.default_rng(1).standard_normal((3, rows)).astype(np.float32)
            y = session(out).run(None, {"x": x})[0]
            assert sqnr([(x @ w).astype(np.float64)], [y.astype(np.float64)]) > 12


def test_the_report_and_the_json_tell_of_the_run(program, tmp_path):
    source = llama(tmp_path / "m.onnx")
    report, out = tmp_path / "r.yaml", tmp_path / "q.onnx"
    done = convert(program, source, out, BLOCKS, "--report", report, "--json")
    assert done.returncode == 0, done.stderr
    told, written = json.loads(done.stdout), yaml.safe_load(report.read_text())
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("q.onnx*")}
    assert {f["name"]: f["bytes"] for f in told["files"]} == sizes == {f["name"]: f["bytes"] for f in written["conversion"]["files"]}
    assert told["summary"]["bytesAfter"] == sum(sizes.values()) == written["quantization"]["quantized_bytes"]
    assert len(told["summary"]["tensors"]) == len(written["quantization"]["tensors"]) == 15
    # The head is the table, which is read once. Constants below 64 KiB are read before the plan.
    tensors = onnx.load(source, load_external_data=False).graph.initializer
    places = [{entry.key: int(entry.value) for entry in t.external_data if entry.key != "location"} for t in tensors]
    stretches = {(place["offset"], place["length"]) for place in places if place}
    assert written["conversion"]["bytes_read"] == sum(length for _, length in stretches if length >= 1 << 16)
    named = [record["step"] for record in written["detailed_steps"]] if "detailed_steps" in written else report.read_text()
    assert any("Quantization (Weights)" in str(step) for step in ([named] if isinstance(named, str) else named))


def test_the_forecast_has_the_files_that_the_run_writes(program, tmp_path):
    source = llama(tmp_path / "m.onnx")
    out = tmp_path / "q.onnx"
    before = {path.name for path in tmp_path.iterdir()}
    done = convert(program, source, out, HALF_BLOCKS, "--data-size", "1", "--forecast", "--json")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before
    expected = json.loads(done.stdout)
    converted(program, source, out, HALF_BLOCKS, "--data-size", "1")
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("q.onnx*")}
    assert {f["name"]: f["bytes"] for f in expected["files"]} == sizes
    assert expected["outputBytes"] == sum(sizes.values()) and expected["peakBytes"] > 0 and expected["ms"] > 0


LARGER = Shape(layers=6, width=512, heads=8, kv_heads=4, inner=1024, vocabulary=8000, tied=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_goes_on_later_and_leaves_the_same_bytes(program, tmp_path, number):
    source = llama(tmp_path / "m.onnx", LARGER)
    # A slow method, so that the run can be interrupted.
    settings = {"scheme": "blocks", "blocks": {"method": "hqq"}}
    whole, out = tmp_path / "whole.onnx", tmp_path / "q.onnx"
    converted(program, source, whole, settings)
    command = [program, "quantize", source, "--stream", "--config", json.dumps(settings), "--out", out, "--threads", "1"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    part = tmp_path / ".q.onnx_data.part"
    deadline = time.monotonic() + 60
    # The table of embeddings is copied first; then its blocks are allocated.
    table = 4 * LARGER.vocabulary * LARGER.width
    while run.poll() is None and time.monotonic() < deadline and (not part.exists() or part.stat().st_blocks * 512 <= table):
        time.sleep(0.01)
    run.send_signal(number)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 1 and "run the same command again" in said, said
    assert not out.exists() and part.exists() and (tmp_path / ".q.onnx.journal.json").exists()
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0 and "goes on" in again.stderr, again.stderr
    assert (tmp_path / "q.onnx_data").read_bytes() == (tmp_path / "whole.onnx_data").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["m.onnx", "m.onnx_data", "q.onnx", "q.onnx_data", "whole.onnx", "whole.onnx_data"])


def test_parts_of_another_conversion_are_discarded(program, tmp_path):
    source = llama(tmp_path / "m.onnx")
    out = tmp_path / "q.onnx"
    (tmp_path / ".q.onnx_data.part").write_bytes(b"something else")
    (tmp_path / ".q.onnx.journal.json").write_text("{}")
    converted(program, source, out, BLOCKS)
    converted(program, source, tmp_path / "other.onnx", BLOCKS)
    assert (tmp_path / "q.onnx_data").read_bytes() == (tmp_path / "other.onnx_data").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_a_disk_that_fills_up_leaves_nothing_half_done(program, tmp_path):
    source = llama(tmp_path / "m.onnx")
    out = tmp_path / "q.onnx"
    out.write_text("what was there before")
    before = {path.name for path in tmp_path.iterdir()}

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    command = [program, "quantize", source, "--stream", "--scheme", "float16", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 1 and "q.onnx_data" in done.stderr and "free some space" in done.stderr, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before and out.read_text() == "what was there before"


def test_the_static_scheme_is_refused_with_the_reason(program, tmp_path):
    source = llama(tmp_path / "m.onnx")
    done = subprocess.run(
        [program, "quantize", source, "--stream", "--demo", "1", "--out", tmp_path / "q.onnx"], capture_output=True, text=True)
    assert done.returncode in (2, 3) and "piece by piece" in done.stderr, done.stderr
