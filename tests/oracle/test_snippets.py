"""Snippets of `octet inspect --snippet` run as they are: the script writes samples that ONNX Runtime
and Octet take, and the quantized model runs in ONNX Runtime, onnxruntime-web and transformers.js.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from schemes import node

CHECKOUT = Path(__file__).resolve().parents[2]
COUNT = 32


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)


def weight(name, *shape):
    random = np.random.default_rng(len(name))
    return numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)


def saved(path, nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def classifier(path):
    """A picture of any size."""
    nodes = [node("Conv", ["picture", "w"], "c"), node("GlobalAveragePool", ["c"], "p"), node("Flatten", ["p"], "scores")]
    shape = ["batch", 3, "height", None]
    saved(path, nodes, [value("picture", "FLOAT", shape)], [value("scores", "FLOAT", ["batch", 4])], [weight("w", 4, 3, 3, 3)])


def language_model(path):
    """Tokens of a small vocabulary, a mask as long as cache and text, and a cache."""
    nodes = [
        node("Gather", ["words", "input_ids"], "x"), node("MatMul", ["x", "w"], "k"),
        node("Concat", ["past_key_values.0.key", "k"], "present.0.key", axis=1),
        node("Cast", ["attention_mask"], "real", to=TensorProto.FLOAT), node("Unsqueeze", ["real", "last"], "column"),
        node("Mul", ["present.0.key", "column"], "seen"), node("MatMul", ["seen", "head"], "logits"),
    ]  # fmt: skip
    ids, all_of_them = ["batch", "length"], ["batch", "past + length"]
    inputs = [value("input_ids", "INT64", ids), value("attention_mask", "INT64", all_of_them)]
    inputs.append(value("past_key_values.0.key", "FLOAT", ["batch", "past", 8]))
    outputs = [value("logits", "FLOAT", [*all_of_them, 20]), value("present.0.key", "FLOAT", [*all_of_them, 8])]
    last = numpy_helper.from_array(np.array([2]), "last")
    saved(path, nodes, inputs, outputs, [weight("words", 20, 8), weight("w", 8, 8), weight("head", 8, 20), last])


def awkward(path):
    """Names that mean something else to Python, numpy, zip, JavaScript; all element types."""
    kinds = ["DOUBLE", "FLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL"]
    names = ["file", "a/b", "it's \"q\"", "C:\\new", "lambda", "__proto", "x.npy", "ünï", "{x}", "// */", "mask"]
    shape = ["class", "2 x", None]
    inputs = [value(name, kind, shape) for name, kind in zip(names, kinds)] + [value("np", "FLOAT", [*shape[:2], 5])]
    nodes = [node("Cast", [name], f"f{place}", to=TensorProto.FLOAT) for place, name in enumerate(names)]
    nodes.append(node("Sum", [f"f{place}" for place in range(len(names))], "sum"))
    nodes += [node("ReduceMean", ["sum"], "mean", axes=[2], keepdims=1), node("Add", ["np", "mean"], "moved"), node("MatMul", ["moved", "w"], "y")]
    saved(path, nodes, inputs, [value("y", "FLOAT", [*shape[:2], 6])], [weight("w", 5, 6)])


MODELS = {"classifier": classifier, "language_model": language_model, "awkward": awkward}


def called(*command, cwd):
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", params=MODELS)
def folder(request, program, tmp_path_factory):
    """A folder with a model, the samples of its script, and the quantized model."""
    folder = tmp_path_factory.mktemp(request.param)
    MODELS[request.param](folder / "it's m.onnx")
    (folder / "script.py").write_text(called(program, "inspect", "it's m.onnx", "--snippet", cwd=folder), encoding="utf-8")
    assert called(sys.executable, "script.py", cwd=folder) == f"{COUNT} samples are in samples\n"
    called(program, "quantize", "it's m.onnx", "--samples", "samples", "--bad-samples", "stop", cwd=folder)
    (folder / "node_modules").symlink_to(CHECKOUT / "node_modules")
    return folder


def test_the_samples_of_the_script_are_those_of_the_model(folder):
    files = sorted((folder / "samples").glob("*.npz"))
    assert len(files) == COUNT
    session = onnxruntime.InferenceSession(folder / "it's m.onnx")
    arrays = [dict(np.load(file)) for file in (files[0], files[-1])]
    for given in arrays:
        assert list(given) == [one.name for one in session.get_inputs()]
        assert all(np.isfinite(out).all() for out in session.run(None, given))
    if "picture" in arrays[0]:
        # Normalized pixels, of another picture each.
        assert arrays[0]["picture"].shape == (1, 3, 224, 224)
        assert -2.2 < arrays[0]["picture"].min() < -2 and 2.5 < arrays[0]["picture"].max() < 2.7
        assert (arrays[0]["picture"] != arrays[1]["picture"]).any()
    if "input_ids" in arrays[0]:
        assert arrays[0]["past_key_values.0.key"].shape == (1, 0, 8)
        assert arrays[0]["input_ids"].max() == 19  # the last word of the table


def outputs_of(folder):
    """The lines that a snippet prints: the name, type and shape of each output of a placeholder run."""
    session = onnxruntime.InferenceSession(folder / "it's m_int8.onnx")
    given = dict(np.load(folder / "samples" / "000.npz"))
    return [(one.name, values.shape) for one, values in zip(session.get_outputs(), session.run(None, given))]


def test_the_quantized_model_runs_in_onnx_runtime(folder, program):
    (folder / "run.py").write_text(called(program, "inspect", "it's m_int8.onnx", "--snippet", "onnxruntime", cwd=folder), encoding="utf-8")
    printed = called(sys.executable, "run.py", cwd=folder)
    assert printed == "".join(f"{name} float32 {shape}\n" for name, shape in outputs_of(folder))


def javascript_printed(folder, program, kind):
    path = folder / "run.mjs"
    path.write_text(called(program, "inspect", "it's m_int8.onnx", "--snippet", kind, cwd=folder), encoding="utf-8")
    printed = called("node", path, cwd=folder)
    return {" ".join(line.split()) for line in printed.replace("\n    ", " ").splitlines() if "float32" in line}


@pytest.mark.parametrize("kind", ["onnxruntime-web", "transformers.js"])
def test_the_quantized_model_runs_in_javascript(folder, program, kind):
    mine = folder / "my-model"
    (mine / "onnx").mkdir(parents=True, exist_ok=True)
    (mine / "config.json").write_text(json.dumps({"model_type": "mine"}), encoding="utf-8")
    (mine / "onnx" / "it's m_int8.onnx").write_bytes((folder / "it's m_int8.onnx").read_bytes())
    wanted = {f"{name} float32 [ {', '.join(map(str, shape))} ]" for name, shape in outputs_of(folder)}
    assert javascript_printed(folder, program, kind) == wanted


def test_a_name_that_transformers_js_does_not_find_is_refused(program, tmp_path):
    classifier(tmp_path / "m.bin")
    done = subprocess.run([program, "inspect", "m.bin", "--snippet", "transformers.js"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "_quantized" in done.stderr and "m.bin" in done.stderr, done.stderr
