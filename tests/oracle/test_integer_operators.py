"""Integer operators of ONNX Runtime's own that no float model of `operator_models` leads to: by hand, or as its optimizer writes them.

Its own kernels are the reference, whose last step of a product or a mean may be another.
"""

import reference_runtimes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from qdq_models import Pairs
from run_model import run

THEIRS = "com.microsoft"


def operator(name, image, more, kind=np.uint8, opset=17, **attributes):
    """One operator on an image of bytes; `more` are its other inputs."""
    pairs = Pairs(seed=sum(name.encode()), opset=opset)
    of = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    x = pairs.input("x", image, of)
    pairs.node(name, [x, *(pairs.constant(np.asarray(value)) for value in more)], "y", domain=THEIRS, **attributes)
    pairs.output("y", of)
    model = pairs.model()
    model.ir_version = 8
    model.opset_import.append(helper.make_opsetid(THEIRS, 1))
    return model


def bytes_for(model, seed=1):
    value = model.graph.input[0]
    kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    ends = np.iinfo(kind)
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    return {value.name: np.random.default_rng(seed).integers(ends.min, ends.max, shape, kind, endpoint=True)}


def check(model, folder, limit=1):
    """Every output equals ONNX Runtime's and is computed on integers."""
    path = folder / "checked.onnx"
    onnx.save(model, path)
    sample = bytes_for(model)
    expected = reference_runtimes.run(path, [sample], optimize=False)[0]
    found, told = run(path, sample, folder)
    for name, values in expected.items():
        assert found[name].shape == values.shape and found[name].dtype == values.dtype, name
        assert np.abs(found[name].astype(int) - values.astype(int)).max(initial=0) <= limit, name
    assert not [node for node in told["nodes"] if node["reason"]], told["nodes"]
    return found


f, u, i = np.float32, np.uint8, np.int8
QUANTIZED = [f(0.05), u(3), f(1 / 256), u(0)]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_a_softmax_of_an_old_operator_set_runs_over_all_axes_from_one_on(axis, tmp_path):
    model = operator("QLinearSoftmax", [3, 4, 5], QUANTIZED, opset=12, axis=axis)
    model.graph.node[0].attribute.append(helper.make_attribute("opset", 12))
    check(model, tmp_path)


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_a_classifier_of_any_operator_set_runs_as_it_was_quantized(opset, tmp_path):
    """The output of `quantize_static` for a model with a Softmax."""
    random = np.random.default_rng(3)
    weight = onnx.numpy_helper.from_array(random.standard_normal([8, 6]).astype(f), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["v"], "product"), helper.make_node("Softmax", ["v"], ["y"], "shares", axis=1)]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [5, 8]), ("y", [5, 6]))]
    model = helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:], [weight]), opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
    onnx.save(model, tmp_path / "float.onnx")
    samples = iter([{"x": random.standard_normal([5, 8]).astype(f)} for _ in range(3)])

    class Reader(CalibrationDataReader):
        def get_next(self):
            return next(samples, None)

    path = tmp_path / "quantized.onnx"
    quantize_static(tmp_path / "float.onnx", path, Reader(), quant_format=QuantFormat.QOperator)
    assert "QLinearSoftmax" in {node.op_type for node in onnx.load(path).graph.node}
    sample = {"x": random.standard_normal([5, 8]).astype(f)}
    expected = reference_runtimes.run(path, [sample], optimize=False)[0]["y"]
    found, _ = run(path, sample, tmp_path)
    assert np.abs(found["y"] - expected).max() < 2.1 / 256


@pytest.mark.parametrize("shape", [[3], [1, 3]])
@pytest.mark.parametrize("per_channel", [True, False])
def test_the_bias_of_a_product_may_be_a_row(shape, per_channel, tmp_path):
    random = np.random.default_rng(0)
    scale, zero = (f([0.1, 0.2, 0.3]), i([0, 0, 0])) if per_channel else (f(0.1), i(0))
    weight, bias = random.integers(-9, 9, [7, 3]).astype(i), np.reshape(np.int32([100, -200, 300]), shape)
    check(operator("QGemm", [2, 7], [f(0.05), u(3), weight, scale, zero, bias, f(0.1), u(120)]), tmp_path)


@pytest.mark.parametrize("kind", [u, i])
def test_an_average_with_channels_last_is_taken_of_pixels(kind, tmp_path):
    more = [f(0.05), kind(3), f(0.04), kind(7)]
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    check(operator("QLinearAveragePool", [2, 7, 6, 5], more, kind, channels_last=1, **window), tmp_path)


def test_a_mean_with_channels_last_is_taken_of_pixels(tmp_path):
    found = check(operator("QLinearGlobalAveragePool", [2, 7, 6, 5], [f(0.05), u(3), f(0.01), u(7)], channels_last=1), tmp_path)
    assert found["y"].shape == (2, 1, 1, 5)


def test_a_convolution_with_channels_last_runs_on_pixels(tmp_path):
    random = np.random.default_rng(0)
    weight, bias = random.integers(-99, 99, [4, 5, 3, 3]).astype(i), random.integers(-999, 999, [4]).astype(np.int32)
    more = [f(0.05), u(3), weight, f([0.01, 0.02, 0.03, 0.04]), i([0, 0, 0, 0]), f(1.5), u(128), bias]
    check(operator("QLinearConv", [2, 7, 6, 5], more, channels_last=1, pads=[1, 1, 1, 1], strides=[2, 1]), tmp_path)


def test_what_the_optimizer_makes_of_an_image_model_runs_on_integers(tmp_path):
    """A QOperator model that ONNX Runtime wrote after its own optimization: its channels lie last."""
    pairs = Pairs(seed=7, opset=17)
    x = pairs.pair(pairs.input("x", [1, 8, 12, 12]))
    y = pairs.pair(pairs.node("Conv", [x, pairs.weight([16, 8, 3, 3])], pads=[1, 1, 1, 1]), 0.05)
    y = pairs.pair(pairs.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2]), 0.05)
    y = pairs.pair(pairs.node("Conv", [y, pairs.weight([8, 16, 1, 1])]), 0.1)
    pairs.pair(pairs.node("GlobalAveragePool", [y]), 0.02, output="y")
    pairs.output("y")
    written, read = tmp_path / "written.onnx", tmp_path / "optimized.onnx"
    onnx.save(pairs.model(), written)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(read)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(written, options)
    operators = [(node.domain, node.op_type) for node in onnx.load(read).graph.node]
    assert (THEIRS, "NhwcMaxPool") in operators, operators
    sample = {"x": np.random.default_rng(2).standard_normal([1, 8, 12, 12]).astype(f)}
    expected = reference_runtimes.run(read, [sample], optimize=False)[0]["y"]
    found, told = run(read, sample, tmp_path)
    assert np.abs(found["y"] - expected).max() < 0.021
    assert not [node for node in told["nodes"] if node["reason"]], told["nodes"]
