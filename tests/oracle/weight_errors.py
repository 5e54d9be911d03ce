"""The output change of layers by rounded weights, computed by ONNX Runtime."""

import numpy as np
import onnx
from reference_runtimes import session
from onnx import TensorProto, helper, numpy_helper


def dequantized(found, node):
    """The values of a DequantizeLinear of constants, in f64."""
    integers, scale, zero_point = (found[name].astype(np.float64) for name in node.input)
    if scale.size > 1:
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        shape = [-1 if i == axis else 1 for i in range(integers.ndim)]
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    return (integers - zero_point) * scale


def errors_alone(prepared, errors):
    """A session of the layers with these weights ({name: errors}), each of its errors alone and without a bias, on the inputs it has in the
    model; the outputs have the names of the weights."""
    model = onnx.ModelProto.FromString(prepared.SerializeToString())
    del model.graph.output[:]
    for node in list(model.graph.node):
        name = node.input[1] if len(node.input) > 1 else None
        if name not in errors or node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            continue
        alone = onnx.NodeProto.FromString(node.SerializeToString())
        alone.name, alone.output[0] = f"{name}__alone", f"{name}__added"
        alone.input[1] = f"{name}__errors"
        del alone.input[2:]
        model.graph.initializer.append(numpy_helper.from_array(errors[name].astype(np.float32), alone.input[1]))
        model.graph.node.append(alone)
        model.graph.output.append(helper.make_tensor_value_info(alone.output[0], TensorProto.FLOAT, None))
    return session(model, optimize=False)


def added(prepared, errors, samples):
    """For each sample, the output change by the errors of these weights: {name: values}."""
    it = errors_alone(prepared, errors)
    names = [output.name for output in it.get_outputs()]
    for sample in samples:
        values = it.run(names, sample)
        yield {name.removesuffix("__added"): value for name, value in zip(names, values)}
