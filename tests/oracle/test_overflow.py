"""Half precision of models whose activations exceed it, rebuilt small from the threads of the field:
the residual stream of Gemma, the decomposed norm of Whisper, scores of an attention before their
scaling, factors that cancel, and a convolution. Each node is computed in true halves by the reference
evaluator of ONNX, and by ONNX Runtime.
"""

import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
import reference_runtimes
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from reference_runtimes import sqnr
from schemes import build, node, run, weight

LARGEST = 65504


def scalar(name, value):
    return numpy_helper.from_array(np.array(value, np.float32), name)


def axes(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def rms_norm(x, y):
    """A decomposed RMS normalization."""
    return [
        node("Pow", [x, "two"], f"{y}_square"), node("ReduceMean", [f"{y}_square"], f"{y}_mean", axes=[-1]),
        node("Add", [f"{y}_mean", "epsilon"], f"{y}_safe"), node("Sqrt", [f"{y}_safe"], f"{y}_root"),
        node("Div", [x, f"{y}_root"], y),
    ]  # fmt: skip


def residual():
    """Each layer adds to a stream, in which one channel grows beyond half precision."""
    nodes, constants = [node("MatMul", ["x", "embed"], "h0")], [scalar("two", 2), scalar("epsilon", 1e-6)]
    constants.append(weight("embed", 32, 64))
    for layer in range(3):
        up, down = weight(f"up{layer}", 64, 96), numpy_helper.to_array(weight(f"down{layer}", 96, 64)).copy()
        down[:, 7] = 2500 * np.abs(down[:, 7]) / 0.2
        constants += [up, numpy_helper.from_array(down, f"down{layer}")]
        nodes += rms_norm(f"h{layer}", f"n{layer}")
        nodes += [node("MatMul", [f"n{layer}", f"up{layer}"], f"u{layer}"), node("Relu", [f"u{layer}"], f"r{layer}"),
                  node("MatMul", [f"r{layer}", f"down{layer}"], f"d{layer}"), node("Add", [f"h{layer}", f"d{layer}"], f"h{layer + 1}")]  # fmt: skip
    constants.append(weight("head", 64, 16))
    nodes += [*rms_norm("h3", "last"), node("MatMul", ["last", "head"], "y")]
    return build(nodes, constants, [("x", [2, 5, 32])], [("y", [2, 5, 16])])


def layer_norm():
    """A decomposed layer normalization of values around 800, whose squares are beyond half precision."""
    w = numpy_helper.to_array(weight("w", 32, 64)).copy()
    w[:, 3] *= 600
    nodes = [
        node("MatMul", ["x", "w"], "h"), node("ReduceMean", ["h"], "mean", axes=[-1]), node("Sub", ["h", "mean"], "apart"),
        node("Pow", ["apart", "two"], "square"), node("ReduceMean", ["square"], "variance", axes=[-1]),
        node("Add", ["variance", "epsilon"], "safe"), node("Sqrt", ["safe"], "root"), node("Div", ["apart", "root"], "normal"),
        node("Mul", ["normal", "gain"], "scaled"), node("Add", ["scaled", "shift"], "normed"), node("MatMul", ["normed", "head"], "y"),
    ]  # fmt: skip
    constants = [numpy_helper.from_array(w, "w"), scalar("two", 2), scalar("epsilon", 1e-5), weight("gain", 64, scale=1),
                 weight("shift", 64), weight("head", 64, 16)]  # fmt: skip
    return build(nodes, constants, [("x", [2, 5, 32])], [("y", [2, 5, 16])])


def scores():
    """Products of queries and keys that are scaled after the product."""
    nodes = [
        node("MatMul", ["x", "q"], "queries"), node("MatMul", ["x", "k"], "keys"), node("MatMul", ["x", "v"], "values"),
        node("Transpose", ["keys"], "turned", perm=[0, 2, 1]), node("MatMul", ["queries", "turned"], "products"),
        node("Div", ["products", "scale"], "scores"), node("Softmax", ["scores"], "shares", axis=-1), node("MatMul", ["shares", "values"], "y"),
    ]  # fmt: skip
    constants = [weight("q", 32, 64, scale=20), weight("k", 32, 64, scale=20), weight("v", 32, 16), scalar("scale", 50000)]
    return build(nodes, constants, [("x", [2, 5, 32])], [("y", [2, 5, 16])])


def factors():
    """Factors that cancel: 100, 10, and 999 below."""
    nodes = [node("MatMul", ["x", "w"], "m"), node("Mul", ["m", "hundred"], "large"), node("Mul", ["large", "ten"], "larger"),
             node("Reshape", ["larger", "shape"], "flat"), node("Div", ["flat", "below"], "y")]  # fmt: skip
    constants = [weight("w", 32, 16, scale=20), scalar("hundred", 100), scalar("ten", 10), scalar("below", 999), axes("shape", -1, 16)]
    return build(nodes, constants, [("x", [2, 5, 32])], [("y", [10, 16])])


def convolution():
    """A convolution whose large sums pass a Relu and a pooling to the next one."""
    nodes = [node("Conv", ["x", "w", "b"], "c", pads=[1, 1, 1, 1]), node("Relu", ["c"], "r"),
             node("MaxPool", ["r"], "p", kernel_shape=[2, 2], strides=[2, 2]), node("Conv", ["p", "v", "u"], "z"),
             node("GlobalAveragePool", ["z"], "y")]  # fmt: skip
    constants = [weight("w", 8, 3, 3, 3, scale=9000), weight("b", 8, scale=5000), weight("v", 4, 8, 1, 1, scale=1e-3), weight("u", 4)]
    return build(nodes, constants, [("x", [1, 3, 8, 8])], [("y", [1, 4, 1, 1])])


MODELS = {make.__name__: make() for make in (residual, layer_norm, scores, factors, convolution)}


def sample(model, seed):
    value = model.graph.input[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    return {value.name: np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


def halved(program, folder, model, overflow):
    """The model in half precision, by samples unless `overflow` is None, and the report."""
    folder.mkdir()
    onnx.save(model, folder / "source.onnx")
    config, given = "scheme: float16\n", []
    if overflow:
        config += f"overflow: {overflow}\n"
        given = ["--calib", reference_runtimes.save_samples(folder / "samples", [sample(model, seed) for seed in range(4)])]
    (folder / "config.yaml").write_text(config)
    out, report = folder / "out.onnx", folder / "report.yaml"
    command = [program, "quantize", folder / "source.onnx", *given, "--config", folder / "config.yaml", "--out", out, "--report", report]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = onnx.load(out)
    onnx.checker.check_model(made, full_check=True)
    return made, report.read_text()


def all_values(model, feed):
    """Every float value of a model, computed node by node in the precision that it names."""
    names = [name for item in model.graph.node for name in item.output if name]
    whole = onnx.ModelProto.FromString(model.SerializeToString())
    del whole.graph.output[:]
    whole.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in names)
    with np.errstate(over="ignore", invalid="ignore"):
        values = ReferenceEvaluator(whole).run(None, feed)
    return {name: value for name, value in zip(names, values) if value.dtype in (np.float16, np.float32)}


def by_runtime(model, feed):
    """The outputs by ONNX Runtime, with each value as an output, so that none is computed otherwise."""
    shaped = onnx.shape_inference.infer_shapes(model)
    known = {value.name for value in shaped.graph.output}
    shaped.graph.output.extend(value for value in shaped.graph.value_info if value.name not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(shaped.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = dict(zip([value.name for value in session.get_outputs()], session.run(None, feed)))
    return results


@pytest.mark.parametrize("name", MODELS)
def test_the_plain_conversion_fails(program, tmp_path, name):
    model = MODELS[name]
    feed = sample(model, 0)
    made, report = halved(program, tmp_path / "plain", model, None)
    assert "activations may exceed it, which samples would show" in report
    wanted = run(model, feed)
    values = all_values(made, feed)
    assert any(not np.isfinite(value).all() for value in values.values())
    result = [np.nan_to_num(values[value.name].astype(np.float64)) for value in model.graph.output]
    assert sqnr(wanted, result) < 40


@pytest.mark.parametrize("overflow", ["float32", "rescale", "clip"])
@pytest.mark.parametrize("name", MODELS)
def test_with_samples_nothing_is_infinite(program, tmp_path, name, overflow):
    model = MODELS[name]
    made, report = halved(program, tmp_path / "made", model, overflow)
    words = {"float32": "too large for float16 on the samples", "rescale": "are stored divided by", "clip": "are clipped to"}
    assert words[overflow] in report
    operators = [item.op_type for item in made.graph.node]
    casts = operators.count("Cast")
    if overflow != "float32":
        assert casts <= 2, "everything between input and output is half precision"
    for seed in range(4):
        feed = sample(model, seed)
        wanted = run(model, feed)
        values, runtime = all_values(made, feed), by_runtime(made, feed)
        # Sums inside of an operator may still exceed halves behind a Clip, so its test is the outputs.
        outputs = [value.name for value in model.graph.output]
        for results in (values, runtime) if overflow != "clip" else (runtime,):
            checked = outputs if overflow == "clip" else results
            assert not [name for name in checked if not np.isfinite(results[name]).all()]
            decibels = sqnr(wanted, [results[value.name].astype(np.float64) for value in model.graph.output])
            print(f"{name} {overflow}: {decibels:.1f} dB, {len(made.graph.node)} nodes, {casts} Casts")
            if overflow != "clip":
                assert decibels > 40
