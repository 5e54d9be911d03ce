"""ONNX Runtime with exact products on any processor.

On x86 without VNNI, ONNX Runtime multiplies u8 by i8 in pairs whose sum saturates at 16 bits: 255 ·
127 · 2 gives 32,767. This is not reported, and results can be far off, for its own models as well
as ours. u8 by u8 and i8 by i8 are exact. So i8 weights of u8 inputs become u8, 128 higher, and so
do their zero points: the reals are the same. (ONNX Runtime's own option for that,
session.x64quantprecision, fails if a weight is shared and if activations are i8.)
"""

import functools

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# Integer operator → position of its weight, of that weight's zero point, and of the other zero
# point if it can be signed.
WEIGHTS = {
    "MatMulInteger": [(1, 3, None)],
    "ConvInteger": [(1, 3, None)],
    "QLinearConv": [(3, 5, 2)],
    "QLinearMatMul": [(3, 5, 2)],
    "QGemm": [(3, 5, 2)],
    "DynamicQuantizeMatMul": [(1, 3, None)],
    "MatMulIntegerToFloat": [(1, 5, None)],
    "DynamicQuantizeLSTM": [(1, 9, None), (2, 11, None)],
}

# Operators that the optimizer turns into integer operators between Q/DQ pairs.
PRODUCTS = "Conv", "ConvTranspose", "Gemm", "MatMul"


@functools.cache
def saturates():
    """True if products of u8 and i8 saturate on this machine."""
    weight = numpy_helper.from_array(np.full((64, 8), 127, np.int8), "w")
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 64])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 8])
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["x", "w"], ["y"])], "graph", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (sums,) = session.run(None, {"x": np.full((1, 64), 255, np.uint8)})
    return bool((sums != 64 * 255 * 127).any())


def unsigned(model):
    """A model or a model file with such weights as u8, in the bodies of its nodes, too."""
    model = onnx.ModelProto.FromString(model.SerializeToString()) if isinstance(model, onnx.ModelProto) else onnx.load(model)
    _raise_weights(model.graph, {}, {})
    return model


def _raise_weights(graph, constants, pairs):
    """Raises the weights of a graph and of its bodies. Given are the constants of the graphs around
    it, each with its graph, and their nodes that dequantize, by output.
    """
    constants = constants | {tensor.name: (tensor, graph) for tensor in graph.initializer}
    pairs = pairs | {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear" and len(node.input) > 2}

    def is_type(name, kind):
        return name in constants and constants[name][0].data_type == kind

    def values_of(name):
        return numpy_helper.to_array(constants[name][0])

    def raised(name, values, owner):
        new = f"{name} as u8"
        if all(tensor.name != new for tensor in owner.initializer):
            owner.initializer.append(numpy_helper.from_array((values.astype(np.int16) + 128).astype(np.uint8), new))
        return new

    def raise_weight(node, weight, zero):
        name, zeros = node.input[weight], node.input[zero] if len(node.input) > zero else ""
        if not is_type(name, TensorProto.INT8) or zeros and zeros not in constants:
            return
        owner = constants[name][1]
        node.input.extend([""] * (zero + 1 - len(node.input)))
        node.input[weight] = raised(name, values_of(name), owner)
        if zeros:
            node.input[zero] = raised(zeros, values_of(zeros), constants[zeros][1])
        else:
            node.input[zero] = raised(f"zero of {name}", np.zeros((), np.int8), owner)

    for node in graph.node:
        for weight, zero, other in WEIGHTS.get(node.op_type, []):
            if other is None or is_type(node.input[other], TensorProto.UINT8):
                raise_weight(node, weight, zero)
        if node.op_type in PRODUCTS and all(name in pairs for name in node.input[:2]):
            activation, weight = (pairs[name] for name in node.input[:2])
            if is_type(activation.input[2], TensorProto.UINT8):
                raise_weight(weight, 0, 2)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _raise_weights(attribute.g, constants, pairs)
