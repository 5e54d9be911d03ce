"""A builder of ONNX models from code: published architectures with seeded random weights.

    network = Network("tiny")
    x = network.input("pixel_values", [1, 3, 32, 32])
    with network.scope("stem"):
        x = network.node("Relu", [network.conv(x, 3, 16, 3)])
    network.output(x, "features", [1, 16, 32, 32])
    model = network.finish()

Values are referred to by name. A scope prefixes the names of nodes ("/stem/Conv") and of weights
("stem.conv.weight"). Weights depend on the network's name and on their own, so a network that
grows keeps the weights that it had.
"""

import math
from contextlib import contextmanager

import numpy as np
import onnx
from onnx import TensorProto, helper

from .random_weights import normal

OPSET, IR_VERSION = 17, 8
PRODUCER = "octet architectures"
# Attributes of a Resize to the nearest value, as exporters write it.
NEAREST = {
    "coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor",
}


class Network:
    """A graph under construction."""

    def __init__(self, name):
        self.name = name
        self._scopes = []
        self._nodes, self._inputs, self._outputs = [], [], []
        self._weights = {}
        self._used = {}
        self._renamed = {}

    @contextmanager
    def scope(self, name):
        """Prefixes the names of what is made inside; a dot in it names a part of a part."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    # --- the graph's ends ------------------------------------------------------------------------

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        """Declares an input; an entry of the shape may be the name of a dynamic dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, shape, dtype=TensorProto.FLOAT):
        """Declares that the value is an output; `finish` gives it the output's name."""
        self._renamed[value] = name
        self._outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    # --- nodes and tensors -----------------------------------------------------------------------

    def node(self, operator, inputs, attributes=None, outputs=1, name=None):
        """Adds a node; returns the name of its output, or a list of names if `outputs` is not 1."""
        path = self._unique("/" + "/".join([*self._scopes, name or operator]))
        made = [f"{path}_output_{index}" for index in range(outputs)]
        self._nodes.append(
            helper.make_node(operator, list(inputs), made, path, **(attributes or {}))
        )
        return made[0] if outputs == 1 else made

    def constant(self, values, dtype=np.int64):
        """Adds a Constant node with these values: a shape, indices, a bound, a factor."""
        tensor = onnx.numpy_helper.from_array(np.asarray(values, dtype))
        return self.node("Constant", [], {"value": tensor})

    def parameter(self, name, values):
        """Adds an initializer with these values, under the scope's name; returns its full name."""
        full = ".".join([*self._scopes, name])
        if full in self._weights:
            raise ValueError(f"{self.name} has two parameters called {full}")
        self._weights[full] = onnx.numpy_helper.from_array(np.ascontiguousarray(values), full)
        return full

    def weight(self, name, shape, std, mean=0.0):
        """Adds a float initializer of random values, seeded by the full names."""
        full = ".".join([*self._scopes, name])
        return self.parameter(name, normal(f"{self.name}/{full}", tuple(shape), std, mean))

    # --- layers ----------------------------------------------------------------------------------

    def conv(self, x, channels, filters, kernel, *, stride=1, padding=None, dilation=1, groups=1,
             bias=True, bias_std=0.1, bias_mean=0.0, gain=2.0, std=None, name="conv"):
        """A two-dimensional convolution of square kernels, by default padded to keep the size.

        Without `std`, weights have the variance `gain` / fan-in: 2 is He's rule, which keeps the
        variance of activations through ReLU.
        """
        shape = [filters, channels // groups, kernel, kernel]
        std = math.sqrt(gain / math.prod(shape[1:])) if std is None else std
        padding = dilation * (kernel - 1) // 2 if padding is None else padding
        inputs = [x, self.weight(f"{name}.weight", shape, std)]
        if bias:
            inputs.append(self.weight(f"{name}.bias", [filters], bias_std, bias_mean))
        attributes = {
            "dilations": [dilation] * 2,
            "group": groups,
            "kernel_shape": [kernel] * 2,
            "pads": [padding] * 4,
            "strides": [stride] * 2,
        }
        return self.node("Conv", inputs, attributes, name=f"{name}/Conv")

    def channel_affine(self, x, channels, *, name="bn"):
        """A frozen batch normalization: each channel of an image times a factor, plus a shift."""
        scale = self.weight(f"{name}.scale", [1, channels, 1, 1], 0.1, 1.0)
        shift = self.weight(f"{name}.shift", [1, channels, 1, 1], 0.1)
        product = self.node("Mul", [x, scale], name=f"{name}/Mul")
        return self.node("Add", [product, shift], name=f"{name}/Add")

    def gemm(self, x, features, outputs, *, std=None, bias_std=0.1, name="fc"):
        """A fully connected layer on a matrix, as Gemm; weights as in `linear`."""
        std = 1 / math.sqrt(features) if std is None else std
        weight = self.weight(f"{name}.weight", [outputs, features], std)
        bias = self.weight(f"{name}.bias", [outputs], bias_std)
        attributes = {"alpha": 1.0, "beta": 1.0, "transB": 1}
        return self.node("Gemm", [x, weight, bias], attributes, name=f"{name}/Gemm")

    def linear(self, x, features, outputs, *, bias=True, std=None, bias_std=0.02, name="linear"):
        """A fully connected layer on the last axis, as MatMul and Add.

        Without `std`, weights have the variance 1 / fan-in, which keeps that of the activations.
        """
        std = 1 / math.sqrt(features) if std is None else std
        weight = self.weight(f"{name}.weight", [features, outputs], std)
        product = self.node("MatMul", [x, weight], name=f"{name}/MatMul")
        if not bias:
            return product
        shift = self.weight(f"{name}.bias", [outputs], bias_std)
        return self.node("Add", [shift, product], name=f"{name}/Add")

    # --- the model -------------------------------------------------------------------------------

    def finish(self):
        """The checked model. Building it again gives the same bytes."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [self._renamed.get(name, name) for name in names]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name=PRODUCER,
        )
        # Large models: weights move one by one, and the checker, which copies, goes without them.
        for name in list(self._weights):
            model.graph.initializer.append(self._weights.pop(name))
        onnx.checker.check_model(weightless(model), full_check=True)
        return model

    def _unique(self, path):
        count = self._used[path] = self._used.get(path, 0) + 1
        return path if count == 1 else f"{path}_{count - 1}"


def weightless(model):
    """The model with its float initializers as inputs: their values have no part in a shape."""
    bare = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    bare.graph.name = model.graph.name
    bare.graph.node.extend(model.graph.node)
    bare.graph.input.extend(model.graph.input)
    bare.graph.output.extend(model.graph.output)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            bare.graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
        else:
            bare.graph.initializer.append(tensor)
    return bare


def save(model, path):
    """Writes the model; equal models give equal bytes."""
    path.write_bytes(model.SerializeToString(deterministic=True))
