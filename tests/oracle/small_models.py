"""Small models that together cover every rule of the quantizer, in graph shapes found in practice.

Each is a function of a random generator; `MODELS` lists them by name. All have opset 17 and nothing
that `prepare` changes, so both quantizers see the same graph.
"""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference

OPSET = 17


class Builder:
    """Collects nodes and constants of one graph."""

    def __init__(self, random):
        self.random, self.nodes, self.constants, self.inputs, self.outputs = random, [], [], [], []

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def output(self, name, kind=TensorProto.FLOAT, shape=None):
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def weight(self, name, shape, scale=1.0, shift=0.0):
        values = (self.random.standard_normal(shape) * scale + shift).astype(np.float32)
        return self.constant(name, values)

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, operator, inputs, output=None, **attributes):
        outputs = output if isinstance(output, list) else [output or f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, f"{operator}_{len(self.nodes)}", **attributes))
        return outputs[0]

    def model(self, opset=OPSET):
        graph = helper.make_graph(self.nodes, "generated", self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        model = shape_inference.infer_shapes(model, strict_mode=True)
        checker.check_model(model, full_check=True)
        return model


def conv_net(b):
    x = b.input("x", [1, 3, 16, 16])
    x = b.node("Conv", [x, b.weight("w0", [8, 3, 3, 3]), b.weight("b0", [8])], pads=[1, 1, 1, 1])
    x = b.node("Relu", [x])
    x = b.node("Conv", [x, b.weight("w1", [8, 1, 3, 3], 0.1), b.weight("b1", [8])], group=8, pads=[1, 1, 1, 1])
    six = [b.constant("low", np.float32(0)), b.constant("high", np.float32(6))]
    y = b.node("Clip", [x, *six])
    x = b.node("Conv", [y, b.weight("w2", [8, 8, 1, 1])])
    x = b.node("Add", [x, y])
    x = b.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = b.node("GlobalAveragePool", [x])
    x = b.node("Flatten", [x])
    x = b.node("Gemm", [x, b.weight("w3", [10, 8]), b.weight("b3", [10])], transB=1)
    b.node("Softmax", [x], "probabilities", axis=1)
    b.output("probabilities")


def gemm_ways(b):
    x = b.input("x", [4, 6])
    x = b.node("Gemm", [x, b.weight("w0", [6, 5]), b.weight("b0", [5])])
    x = b.node("Gemm", [x, b.weight("w1", [7, 5])], transB=1)
    x = b.node("Gemm", [x, b.weight("w2", [7, 3]), b.weight("b2", [3])], alpha=0.5, beta=1.0)
    b.node("Sigmoid", [x], "y")
    b.output("y")


def matmul_ways(b):
    x, z = b.input("x", [2, 5, 8]), b.input("z", [2, 8, 5])
    y = b.node("MatMul", [x, z])
    y = b.node("MatMul", [y, b.weight("w0", [5, 6])])
    y = b.node("MatMul", [y, b.weight("w1", [2, 6, 4])])
    y = b.node("MatMul", [b.weight("w2", [3, 5]), y])
    y = b.node("MatMul", [y, b.weight("w3", [4])])
    b.node("Add", [y, b.weight("c", [3])], "y")
    b.output("y")


def transposed_convolutions(b):
    x = b.input("x", [1, 4, 6, 6])
    x = b.node("ConvTranspose", [x, b.weight("w0", [4, 6, 2, 2]), b.weight("b0", [6])], strides=[2, 2])
    x = b.node("LeakyRelu", [x], alpha=0.1)
    x = b.node("ConvTranspose", [x, b.weight("w1", [6, 3, 3, 3])])
    b.node("Relu", [x], "y")
    b.output("y")


def elementwise(b):
    x, z = b.input("x", [1, 4, 5, 5]), b.input("z", [1, 4, 5, 5])
    y = b.node("Mul", [x, b.weight("scale", [4, 1, 1], 0.2, 1.0)])
    y = b.node("Add", [y, b.weight("shift", [4, 1, 1], 0.2, -3.0)])
    y = b.node("Mul", [y, z])
    y = b.node("Add", [y, b.constant("three", np.float32(3))])
    y = b.node("Mul", [y, b.constant("zeros", np.zeros(1, np.float32))])
    y = b.node("Concat", [y, x, b.weight("constant_part", [1, 2, 5, 5])], axis=1)
    b.node("Sigmoid", [y], "y")
    b.output("y")


def shape_changes(b):
    x = b.input("x", [1, 4, 6, 6])
    lone = b.node("Transpose", [x], perm=[0, 2, 3, 1])
    y = b.node("Conv", [x, b.weight("w0", [4, 4, 1, 1])])
    y = b.node("Reshape", [y, b.constant("shape", np.array([1, 4, 36], np.int64))])
    y = b.node("Transpose", [y], perm=[0, 2, 1])
    y = b.node("Unsqueeze", [y, b.constant("axes", np.array([0], np.int64))])
    y = b.node("Squeeze", [y, b.constant("axes2", np.array([0], np.int64))])
    y = b.node("Reshape", [y, b.constant("shape2", np.array([1, 6, 6, 4], np.int64))])
    y = b.node("Add", [y, lone])
    y = b.node("Transpose", [y], perm=[0, 3, 1, 2])
    y = b.node("Resize", [y, "", b.constant("scales", np.array([1, 1, 2, 2], np.float32))], mode="nearest")
    y = b.node("AveragePool", [y], kernel_shape=[2, 2], strides=[2, 2])
    starts = [b.constant(n, np.array(v, np.int64)) for n, v in [("s", [0]), ("e", [3]), ("a", [2])]]
    y = b.node("Slice", [y, *starts])
    b.node("Flatten", [y], "y")
    b.output("y")


def shape_changes_before_anything(b):
    """Shape operators are quantized or not depending on the order in the file."""
    x = b.input("x", [1, 4, 6, 6])
    early = b.node("Transpose", [x], perm=[0, 1, 3, 2])
    y = b.node("Conv", [early, b.weight("w0", [4, 4, 1, 1])])
    late = b.node("MaxPool", [x], kernel_shape=[1, 1])
    y = b.node("Add", [y, late])
    b.node("MaxPool", [y], "y", kernel_shape=[2, 2])
    b.output("y")


def clamps(b):
    """Relu and Clip after quantized and float values, shared, chained, after a graph output."""
    x = b.input("x", [1, 4, 6, 6])
    free = b.node("Relu", [x])
    y = b.node("Conv", [free, b.weight("w0", [4, 4, 1, 1]), b.weight("b0", [4])])
    y = b.node("Relu", [y])
    y = b.node("Clip", [y, "", b.constant("two", np.float32(2))])
    z = b.node("Conv", [y, b.weight("w1", [4, 4, 1, 1])], "seen")
    kept = b.node("Relu", [z])
    y = b.node("Add", [kept, y])
    b.output("seen")
    z = b.node("Conv", [y, b.weight("w2", [4, 4, 1, 1])])
    b.node("Add", [b.node("Relu", [z]), z], "y")
    b.output("y")
    w = b.node("MaxPool", [y], kernel_shape=[2, 2])
    b.node("Relu", [w], "pooled")
    b.output("pooled")


def shared_constants(b):
    x = b.input("x", [1, 4, 6, 6])
    w, bias = b.weight("w", [4, 4, 1, 1]), b.weight("bias", [4])
    y = b.node("Conv", [x, w, bias])
    y = b.node("Conv", [y, w, bias])
    y = b.node("Conv", [y, w, bias])
    c = b.weight("c", [4, 1, 1])
    b.node("Mul", [b.node("Add", [y, c]), c], "y")
    b.output("y")


def bias_beyond_int32(b):
    """A bias that is too large for its scale, so the weight's scale has to grow."""
    x = b.input("x", [1, 4, 4, 4])
    bias = b.constant("bias", np.array([9e3, -2e4, 1e-3, 0], np.float32))
    y = b.node("Conv", [x, b.weight("w", [4, 4, 1, 1], 1e-7), bias])
    b.node("Conv", [y, b.weight("w1", [4, 4, 1, 1]), b.weight("b1", [4])], "y")
    b.output("y")


def extremes(b):
    """All-zero channels and tensors, one channel, tiny and huge weights."""
    x = b.input("x", [1, 4, 4, 4])
    w = b.random.standard_normal((4, 4, 1, 1)).astype(np.float32)
    w[1], w[2], w[3] = 0, 1e-41, 3e37
    y = b.node("Conv", [x, b.constant("w", w), b.weight("bias", [4], 0.0)])
    y = b.node("Mul", [y, b.constant("small", np.float32(1e-37))])
    y = b.node("Conv", [y, b.weight("one", [1, 4, 1, 1]), b.weight("bias_one", [1])])
    y = b.node("Add", [y, b.constant("nothing", np.zeros([1, 1, 4, 4], np.float32))])
    b.node("Softmax", [y], "y", axis=-1)
    b.output("y")


def picking(b):
    x = b.input("x", [1, 3, 4])
    rows = b.node("ArgMax", [x], axis=-1, keepdims=0)
    picked = b.node("Gather", [b.weight("table", [9, 4]), rows])
    y = b.node("Add", [x, picked])
    y = b.node("Gather", [y, b.constant("one", np.array([0, 2], np.int64))], axis=1)
    condition = b.constant("mask", np.array([True, False, True, True]))
    y = b.node("Where", [condition, y, b.node("Mul", [y, y])])
    y = b.node("Where", [condition, y, b.weight("other", [4])])
    b.node("Sigmoid", [y], "y")
    b.output("y")


def splits_and_pads(b):
    x = b.input("x", [1, 4, 6, 6])
    left, right = "left", "right"
    b.node("Split", [x, b.constant("sizes", np.array([2, 2], np.int64))], [left, right], axis=1)
    pads = b.constant("pads", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    y = b.node("Pad", [left, pads])
    z = b.node("Pad", [right, pads], mode="reflect")
    y = b.node("Add", [y, z])
    y = b.node("Pad", [y, pads, b.constant("fill", np.float32(1.5))])
    b.node("TopK", [y, b.constant("k", np.array([3], np.int64))], ["y", "places"])
    b.output("y")
    b.output("places", TensorProto.INT64)
    b.node("ArgMax", [y], "best", axis=1)
    b.output("best", TensorProto.INT64)


def normalizations(b):
    x = b.input("x", [1, 4, 6, 6])
    y = b.node("InstanceNormalization", [x, b.weight("s0", [4]), b.weight("b0", [4])])
    y = b.node("LayerNormalization", [y, b.weight("s1", [6]), b.weight("b1", [6])])
    y = b.node("LayerNormalization", [y, b.weight("s2", [6])])
    b.node("Relu", [y], "y")
    b.output("y")


def left_in_float(b):
    """Operators without a quantized form between quantizable ones; integers that look like data."""
    x = b.input("x", ["n", 4, 4, 4])
    y = b.node("Conv", [x, b.weight("w", [4, 4, 1, 1])])
    y = b.node("Exp", [b.node("Tanh", [y])])
    y = b.node("Sub", [y, b.weight("w_sub", [4, 1, 1])])
    size = b.node("Gather", [b.node("Shape", [y]), b.constant("first", np.array([0], np.int64))])
    size = b.node("Concat", [size, b.constant("rest", np.array([-1], np.int64))], axis=0)
    y = b.node("Reshape", [y, size])
    y = b.node("Relu", [y])
    b.node("MatMul", [y, b.weight("w1", [64, 3])], "y")
    b.output("y")


def dynamic_weights(b):
    x, k = b.input("x", [1, 4, 4, 4]), b.input("kernel", [4, 4, 1, 1])
    y = b.node("Conv", [x, k, b.weight("bias", [4])])
    b.node("Conv", [y, k], "y")
    b.output("y")


def outputs_inside(b):
    """Values that are outputs and used further on."""
    x = b.input("x", [1, 4, 4, 4])
    first = b.node("Conv", [x, b.weight("w0", [4, 4, 1, 1]), b.weight("b0", [4])], "first")
    second = b.node("MaxPool", [first], "second", kernel_shape=[1, 1])
    b.node("Add", [first, second], "third")
    for name in ("first", "second", "third"):
        b.output(name)


MODELS = {
    builder.__name__: builder
    for builder in (
        conv_net, gemm_ways, matmul_ways, transposed_convolutions, elementwise, shape_changes,
        shape_changes_before_anything, clamps, shared_constants, bias_beyond_int32, extremes, picking,
        splits_and_pads, normalizations, left_in_float, dynamic_weights, outputs_inside,
    )
}  # fmt: skip


def build(name):
    """The model of that name; equal for each call."""
    seed = sum(name.encode())
    builder = Builder(np.random.default_rng(seed))
    MODELS[name](builder)
    return builder.model()


def random_network(seed):
    """A random chain of quantizable operators with branches, for breadth."""
    random = np.random.default_rng(seed)
    b = Builder(random)
    x = b.input("x", [1, 4, 8, 8])
    live = [x]

    def pick():
        return live[random.integers(len(live))]

    for i in range(int(random.integers(6, 16))):
        kind = random.integers(9)
        if kind <= 2:
            inputs = [pick(), b.weight(f"w{i}", [4, 4, 3, 3], 10 ** random.uniform(-3, 1))]
            if random.random() < 0.7:
                inputs.append(b.weight(f"b{i}", [4], 10 ** random.uniform(-4, 2)))
            out = b.node("Conv", inputs, pads=[1, 1, 1, 1])
        elif kind == 3:
            out = b.node("Relu", [pick()])
        elif kind == 4:
            out = b.node(["Add", "Mul"][random.integers(2)], [pick(), pick()])
        elif kind == 5:
            out = b.node("Add", [pick(), b.weight(f"c{i}", [4, 1, 1])])
        elif kind == 6:
            out = b.node("MaxPool", [pick()], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        elif kind == 7:
            out = b.node(["Sigmoid", "Tanh", "LeakyRelu"][random.integers(3)], [pick()])
        else:
            out = b.node("Transpose", [pick()], perm=[0, 1, 3, 2])
        live.append(out)
    used = {name for node in b.nodes for name in node.input}
    for name in [n for n in live if n not in used]:
        b.output(name)
    return b.model()
