"""Parameters and multiplications of a model, to compare architectures by.

Parameters are the elements of all float constants but scalars, which are factors and bounds.
Multiplications are those of convolutions and matrix products.
"""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxruntime
from onnx import TensorProto, helper

from .network import weightless

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True)
class Counts:
    parameters: int
    macs: int


def count(model, sizes=None):
    """The counts of a model whose shapes follow from those of its inputs.

    `sizes` has a number for each dynamic dimension of the inputs, by name.
    """
    for value in model.graph.input:
        for one in value.type.tensor_type.shape.dim:
            if one.dim_param:
                one.dim_value = sizes[one.dim_param]
    graph, shapes = known_shapes(model)
    return Counts(parameters(model.graph), sum(products(node, shapes) for node in graph.node))


def parameters(graph):
    inline = [tensor for node in graph.node if (tensor := constant_of(node)) is not None]
    floats = [one for one in [*graph.initializer, *inline] if one.data_type == TensorProto.FLOAT]
    return sum(math.prod(tensor.dims) for tensor in floats if tensor.dims)


def products(node, shapes):
    if node.op_type not in PRODUCTS:
        return 0
    left, right, out = (shape_of(name, shapes) for name in [*node.input[:2], node.output[0]])
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.op_type == "Conv":
        return math.prod(out) * math.prod(right[1:])
    if node.op_type == "ConvTranspose":
        return math.prod(left) * math.prod(right[1:])
    return math.prod(out) * left[-2 if attributes.get("transA") else -1]


def known_shapes(model):
    """The graph with its arithmetic on shapes folded, and the shape of each value by name."""
    graph = onnx.shape_inference.infer_shapes(folded(weightless(model))).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.input, *graph.output, *graph.value_info]:
        sizes = value.type.tensor_type.shape.dim
        shapes[value.name] = [one.dim_value if one.HasField("dim_value") else None for one in sizes]
    return graph, shapes


def shape_of(name, shapes):
    shape = shapes.get(name)
    if shape is None or None in shape:
        raise ValueError(f"the shape of {name!r} does not follow from the graph")
    return shape


def constant_of(node):
    """The tensor of a Constant node; None of another one."""
    if node.op_type != "Constant":
        return None
    return next((one.t for one in node.attribute if one.name == "value"), None)


def folded(model):
    """The model after ONNX Runtime has computed what follows from constants and known shapes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "folded.onnx")
        given, providers = model.SerializeToString(), ["CPUExecutionProvider"]
        onnxruntime.InferenceSession(given, options, providers=providers)
        return onnx.load(options.optimized_model_filepath)
