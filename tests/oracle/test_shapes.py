"""Data-dependent sizes, and sizes that don't fit: run like ONNX Runtime, or refused at once with a
name.
"""

import subprocess

import reference_runtimes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from run_model import run_all

SECONDS = 10


def constant(name, values, kind=np.int64):
    return numpy_helper.from_array(np.array(values, kind), name)


def model(nodes, constants, inputs, outputs, opset=17):
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    graph = helper.make_graph(nodes, "graph", ports, made, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def pictures(*shapes):
    generator = np.random.default_rng(5)
    return [{"x": generator.standard_normal(shape).astype(np.float32)} for shape in shapes]


def boxes():
    """Boxes that NonMaxSuppression selects, looked up; as many as a run finds."""
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Split", ["s", "parts"], ["sides", "scores"], axis=1),
        helper.make_node("Transpose", ["sides"], ["boxes"], perm=[0, 2, 1]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["selected"]),
        helper.make_node("Gather", ["selected", "third"], ["places"], axis=1),
        helper.make_node("Squeeze", ["boxes", "front"], ["one"]),
        helper.make_node("Gather", ["one", "places"], ["found"]),
        helper.make_node("MatMul", ["found", "w"], ["y"]),
    ]
    constants = [
        constant("parts", [4, 2]),
        constant("most", [5]),
        constant("overlap", [0.5], np.float32),
        constant("least", [0.4], np.float32),
        constant("third", 2),
        constant("front", [0]),
        constant("w", np.random.default_rng(1).standard_normal((4, 4)), np.float32),
    ]
    inputs = [("x", TensorProto.FLOAT, ["n", 6, "a"])]
    outputs = [("y", TensorProto.FLOAT), ("selected", TensorProto.INT64)]
    return model(nodes, constants, inputs, outputs), pictures((1, 6, 9), (1, 6, 30))


def counted():
    """Counts the positive values; the count determines a TopK, a Range, a Slice and pads."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["above"]),
        helper.make_node("NonZero", ["above"], ["places"]),
        helper.make_node("Transpose", ["places"], ["pairs"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "pairs"], ["values"]),
        helper.make_node("Shape", ["values"], ["count"]),
        helper.make_node("Min", ["count", "five"], ["k"]),
        helper.make_node("TopK", ["values", "k"], ["greatest", "where"]),
        helper.make_node("Squeeze", ["k", "front"], ["number"]),
        helper.make_node("Range", ["nothing", "number", "one"], ["steps"]),
        helper.make_node("Cast", ["steps"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["greatest", "real"], ["weighted"]),
        helper.make_node("Slice", ["x", "front", "k", "last"], ["some"]),
        helper.make_node("Concat", ["k", "k"], ["pads"], axis=0),
        helper.make_node("Pad", ["weighted", "pads"], ["wide"]),
        helper.make_node("ReduceSum", ["x", "last"], ["sums"]),
        helper.make_node("Concat", ["rows", "k"], ["tall"], axis=0),
        helper.make_node("Expand", ["sums", "tall"], ["spread"]),
    ]
    constants = [
        constant("zero", 0, np.float32),
        constant("five", [5]),
        constant("front", [0]),
        constant("nothing", 0),
        constant("one", 1),
        constant("last", [1]),
        constant("rows", [4]),
    ]
    outputs = [(name, TensorProto.FLOAT) for name in ("weighted", "some", "wide", "spread")]
    shapes = (4, 7), (4, 7), (4, 3)
    return model(nodes, constants, [("x", TensorProto.FLOAT, [4, "n"])], outputs), pictures(*shapes)


def told():
    """Sizes that are fed: a length, as long a Range, pictures resized to sizes that are an input."""
    nodes = [
        helper.make_node("Range", ["nothing", "length", "one"], ["steps"]),
        helper.make_node("Cast", ["steps"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["real", "half"], ["y"]),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["z"], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    ]
    constants = [constant("nothing", 0), constant("one", 1), constant("half", 0.5, np.float32)]
    inputs = [
        ("x", TensorProto.FLOAT, [1, 2, "h", "w"]),
        ("length", TensorProto.INT64, []),
        ("sizes", TensorProto.INT64, [4]),
    ]
    samples = [
        {**picture, "length": np.array(length, np.int64), "sizes": np.array([1, 2, height, 4], np.int64)}
        for picture, length, height in zip(pictures((1, 2, 4, 4), (1, 2, 6, 3)), (3, 8), (8, 5))
    ]
    outputs = [("y", TensorProto.FLOAT), ("z", TensorProto.FLOAT)]
    return model(nodes, constants, inputs, outputs), samples


MODELS = {made.__name__: made for made in (boxes, counted, told)}


@pytest.mark.parametrize("name", MODELS)
def test_sizes_that_follow_from_values_are_those_of_onnx_runtime(name, tmp_path):
    made, samples = MODELS[name]()
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    expected = reference_runtimes.run(path, samples, optimize=False)
    found, _ = run_all(path, samples, tmp_path)
    for one, other in zip(found, expected, strict=True):
        for output, values in other.items():
            assert one[output].shape == values.shape, output
            np.testing.assert_allclose(one[output], values, rtol=1e-4, atol=1e-5)


def late_clip(graph):
    [node for node in graph.node if node.op_type == "Clip"][-4].input[0] = "batch_norm_0.b_0"


def early_product(graph):
    [node for node in graph.node if node.op_type == "Mul"][0].input[1] = "batch_norm_1.w_0"


@pytest.mark.parametrize("way", ["run", "static", "weights", "inspect"])
@pytest.mark.parametrize("damage", [late_clip, early_product])
def test_a_constant_in_the_place_of_a_value_is_refused_by_name_at_once(damage, way, corpus, program, tmp_path):
    made = onnx.load(corpus.model("ppocr_cls"))
    damage(made.graph)
    path = tmp_path / "damaged.onnx"
    onnx.save(made, path)
    rest = {
        "run": ["run", path, "--demo"],
        "static": ["quantize", path, "--demo", "1", "--out", tmp_path / "out.onnx"],
        "weights": ["quantize", path, "--scheme", "weights", "--out", tmp_path / "out.onnx"],
        "inspect": ["inspect", path],
    }[way]
    done = subprocess.run([program, *rest], check=False, capture_output=True, text=True, timeout=SECONDS)
    # Without samples the sizes of the pictures are open: nothing contradicts itself yet.
    if way in ("run", "static"):
        assert done.returncode != 0
        for part in ("(node `p2o.Mul", "the shape of its inputs is", "must be", "correct the model"):
            assert part in done.stderr, done.stderr
    else:
        assert done.returncode == 0, done.stderr
