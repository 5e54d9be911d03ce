"""EmbedLayerNormalization, ONNX Runtime's operator for embeddings: it runs, and it is quantized as
by ONNX Runtime in every scheme that supports it.
"""

import subprocess

import reference_runtimes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from run_model import run, run_all
from schemes import constants, quantized, weight
from test_same_as_onnxruntime import SETTINGS, check_same

MICROSOFT = "com.microsoft"
WORDS, LINES, LENGTH, WIDTH = 40, 3, 6, 32
# Optional inputs of a node beside the words and their tables.
ALL = {
    "words": (), "segments": ("segments",), "mask": ("mask",), "segments and mask": ("segments", "mask"),
    "places": ("places", "segments"), "sum": ("sum", "mask", "segments"),
}  # fmt: skip
# Nodes with an integer form.
BOTH = [name for name, parts in ALL.items() if not {"places", "sum"} & {*parts}]


def embedding(parts):
    """The node with these inputs, followed by a product."""
    tables = [weight(name, rows, WIDTH) for name, rows in (("word", WORDS), ("place", 9), ("segment", 2))]
    tables += [weight("gamma", WIDTH), weight("beta", WIDTH)]
    ports = {"words": "words", "segments": "segments", "mask": "mask", "places": "places"}
    given = {name: name if name == "words" or name in parts else "" for name in ports}
    names = ["word", "place", "segment" if "segments" in parts else "", "gamma", "beta"]
    inputs = [given["words"], given["segments"], *names, given["mask"], given["places"]]
    while not inputs[-1]:
        inputs.pop()
    outputs = ["embedded", "counts", *(["total"] if "sum" in parts else [])]
    nodes = [
        helper.make_node("EmbedLayerNormalization", inputs, outputs, "embed", domain=MICROSOFT, epsilon=1e-6),
        helper.make_node("MatMul", ["embedded", "w"], ["y"], "product"),
    ]
    shapes = {"y": [LINES, LENGTH, 8], "total": [LINES, LENGTH, WIDTH]}
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items() if n in ("y", *outputs)]
    results.append(helper.make_tensor_value_info("counts", TensorProto.INT32, [LINES]))
    values = [helper.make_tensor_value_info(n, TensorProto.INT32, [LINES, LENGTH]) for n in given.values() if n]
    used = [t for t in [*tables, weight("w", WIDTH, 8)] if t.name != "segment" or "segments" in parts]
    kept = [helper.make_tensor_value_info("embedded", TensorProto.FLOAT, [LINES, LENGTH, WIDTH])]
    graph = helper.make_graph(nodes, "embedding", values, results, used, value_info=kept)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def samples(parts, count=4):
    random = np.random.default_rng(5)
    below = {"words": WORDS, "segments": 2, "mask": 2, "places": 9}
    return [{name: random.integers(0, below[name], [LINES, LENGTH]).astype(np.int32)
             for name in below if name == "words" or name in parts} for _ in range(count)]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_it_runs_as_in_onnx_runtime(name, tmp_path):
    path = tmp_path / "float.onnx"
    onnx.save(embedding(ALL[name]), path)
    given = samples(ALL[name])
    wanted, (found, _) = reference_runtimes.run(path, given, optimize=False), run_all(path, given, tmp_path)
    for expected, results in zip(wanted, found):
        assert expected.keys() == results.keys()
        np.testing.assert_array_equal(results["counts"], expected["counts"])
        for output in expected.keys() - {"counts"}:
            np.testing.assert_allclose(results[output], expected[output], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", ALL)
def test_static_pairs_are_those_of_onnx_runtime(name, settings, tmp_path):
    check_same(embedding(ALL[name]), settings, tmp_path, samples=samples(ALL[name], 2))


@pytest.mark.parametrize("form, guard", [("qdq", []), ("qoperator", ["--no-guard"])], ids=["qdq", "qoperator"])
@pytest.mark.parametrize("name", ALL)
def test_it_is_calibrated_and_runs_quantized_in_every_engine(name, form, guard, program, tmp_path):
    source, target, given = tmp_path / "float.onnx", tmp_path / "octet.onnx", samples(ALL[name])
    onnx.save(embedding(ALL[name]), source)
    calibration = reference_runtimes.save_samples(tmp_path / "samples", given)
    command = [program, "quantize", source, "--calib", calibration, "--method", "minmax", "--out", target, "--format", form, *guard]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = onnx.load(target)
    onnx.checker.check_model(made)
    operators = [node.op_type for node in made.graph.node]
    on_integers = form == "qoperator" and name in BOTH
    assert ("QEmbedLayerNormalization" if on_integers else "EmbedLayerNormalization") in operators
    wanted, found = (reference_runtimes.run(path, given, optimize=False) for path in (source, target))
    assert min(reference_runtimes.sqnr(a["y"], b["y"]) for a, b in zip(wanted, found)) > 30
    ours, _ = run_all(target, given, tmp_path)
    web = reference_runtimes.run_web(target, given[0])
    for expected, results in zip(found, ours):
        np.testing.assert_array_equal(results["counts"], expected["counts"])
        assert reference_runtimes.sqnr(expected["y"], results["y"]) > 45
    assert reference_runtimes.sqnr(found[0]["y"], web["y"]) > 45


@pytest.mark.parametrize("name", ALL)
def test_dynamic_and_weights_have_its_tables_as_onnx_runtime(name, program, tmp_path):
    model, given = embedding(ALL[name]), samples(ALL[name])
    source = tmp_path / "float.onnx"
    for scheme in "dynamic", "weights":
        mine, told = quantized(program, tmp_path, model, {scheme: {"per_channel": False}})
        [embed] = [node for node in mine.graph.node if "EmbedLayerNormalization" in node.op_type]
        assert embed.op_type == ("QEmbedLayerNormalization" if name in BOTH else "EmbedLayerNormalization")
        [choice] = [choice for choice in told["nodes"] if choice["node"] == "embed"]
        assert choice["quantized"] == (name in BOTH)
        if name not in BOTH:
            assert "its integer operator has no" in choice["reason"]
        if scheme == "dynamic" and name in BOTH:
            quantize_dynamic(model, tmp_path / "theirs.onnx", weight_type=QuantType.QInt8)
            expected = constants(onnx.load(tmp_path / "theirs.onnx"))
            tables = {n: v for n, v in expected.items() if n.split("_")[0] in ("word", "place", "segment", "gamma", "beta")}
            assert len(tables) == 3 * (5 if "segments" in ALL[name] else 4)
            for tensor, values in tables.items():
                np.testing.assert_array_equal(constants(mine)[tensor], values, tensor)
        onnx.save(mine, tmp_path / f"{scheme}.onnx")
        wanted, found = (reference_runtimes.run(path, given, optimize=False) for path in (source, tmp_path / f"{scheme}.onnx"))
        assert min(reference_runtimes.sqnr(a["y"], b["y"]) for a, b in zip(wanted, found)) > 30
        results, _ = run(tmp_path / f"{scheme}.onnx", given[0], tmp_path)
        assert reference_runtimes.sqnr(found[0]["y"], results["y"]) > 45
