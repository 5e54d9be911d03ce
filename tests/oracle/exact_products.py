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
    """A model or a model file with such weights as u8."""
    model = onnx.ModelProto.FromString(model.SerializeToString()) if isinstance(model, onnx.ModelProto) else onnx.load(model)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    pairs = {node.output[0]: node for node in model.graph.node if node.op_type == "DequantizeLinear" and len(node.input) > 2}
    made = {}

    def is_type(name, kind):
        return name in constants and constants[name].data_type == kind

    def raised(name, values):
        if name not in made:
            made[name] = numpy_helper.from_array((values.astype(np.int16) + 128).astype(np.uint8), f"{name} as u8")
        return made[name].name

    def raise_weight(node, weight, zero):
        name, zeros = node.input[weight], node.input[zero] if len(node.input) > zero else ""
        if not is_type(name, TensorProto.INT8) or zeros and zeros not in constants:
            return
        node.input.extend([""] * (zero + 1 - len(node.input)))
        node.input[weight] = raised(name, numpy_helper.to_array(constants[name]))
        none = np.zeros((), np.int8)
        node.input[zero] = raised(zeros or f"zero of {name}", numpy_helper.to_array(constants[zeros]) if zeros else none)

    for node in model.graph.node:
        for weight, zero, other in WEIGHTS.get(node.op_type, []):
            if other is None or is_type(node.input[other], TensorProto.UINT8):
                raise_weight(node, weight, zero)
        if node.op_type in PRODUCTS and all(name in pairs for name in node.input[:2]):
            activation, weight = (pairs[name] for name in node.input[:2])
            if is_type(activation.input[2], TensorProto.UINT8):
                raise_weight(weight, 0, 2)
    model.graph.initializer.extend(made.values())
    return model
