"""QDQ models of operators that ONNX Runtime leaves in float, and of patterns that only other tools
write.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name.
"""

import numpy as np
import int16_models
from onnx import TensorProto, helper, numpy_helper


class Pairs:
    """Builder of models with QuantizeLinear/DequantizeLinear pairs."""

    def __init__(self, seed=0, opset=20):
        self.random, self.opset = np.random.default_rng(seed), opset
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, values, name=None):
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, operator, inputs, outputs=None, **attributes):
        output = outputs or f"v{len(self.nodes)}"
        names = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(operator, inputs, names, f"{operator}_{len(self.nodes)}", **attributes))
        return output

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, kind=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def q(self, value, scale=0.02, zero=128, kind=np.uint8):
        zero_point = self.constant(np.array(zero, kind))
        return self.node("QuantizeLinear", [value, self.constant(np.float32(scale)), zero_point])

    def dq(self, value, scale=0.02, zero=128, kind=np.uint8, output=None, **attributes):
        zero_point = self.constant(np.array(zero, kind))
        scale = self.constant(np.asarray(scale, np.float32))
        return self.node("DequantizeLinear", [value, scale, zero_point], output, **attributes)

    def pair(self, value, scale=0.02, zero=128, kind=np.uint8, output=None):
        return self.dq(self.q(value, scale, zero, kind), scale, zero, kind, output)

    def weight(self, shape, scale=0.01, low=-127, high=128, kind=np.int8, zero=0, **attributes):
        values = self.random.integers(low, high, shape).astype(kind)
        zeros = np.full(np.shape(scale), zero, kind)
        return self.dq(self.constant(values), scale, zeros, kind, **attributes)

    def model(self):
        graph = helper.make_graph(self.nodes, "pairs", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def chain(*operators, low=0.02):
    """A function of one quantized value, its operators in a row."""

    def build(p):
        value = p.pair(p.input("x", [1, 3, 5, 7]))
        for operator, *rest in operators:
            attributes = rest[-1] if rest and isinstance(rest[-1], dict) else {}
            more = [p.constant(np.float32(v)) for v in rest if not isinstance(v, dict)]
            value = p.node(operator, [value, *more], **attributes)
        p.pair(value, low, 100, output="y")
        p.output("y")

    return build


def silu(p):
    x = p.pair(p.input("x", [2, 3, 4, 4]))
    p.pair(p.node("Mul", [x, p.pair(p.node("Sigmoid", [x]), 1 / 255, 0)]), output="y")
    p.output("y")


def gelu(p):
    x = p.pair(p.input("x", [2, 30]))
    erf = p.node("Erf", [p.node("Div", [x, p.constant(np.float32(1.41421356))])])
    half = p.node("Mul", [x, p.constant(np.float32(0.5))])
    p.pair(p.node("Mul", [half, p.node("Add", [erf, p.constant(np.float32(1))])]), output="y")
    p.output("y")


def of_two(operator, left, right, **attributes):
    def build(p):
        a, b = p.pair(p.input("a", left), 0.02, 120), p.pair(p.input("b", right), 0.03, 140)
        p.pair(p.node(operator, [a, b], **attributes), 0.05, 127, output="y")
        p.output("y")

    return build


def of_one(operator, shape, more=(), into=(0.02, 128), **attributes):
    def build(p):
        x = p.pair(p.input("x", shape))
        constants = [p.constant(np.asarray(v)) if v is not None else "" for v in more]
        p.pair(p.node(operator, [x, *constants], **attributes), *into, output="y")
        p.output("y")

    return build


def convolution(shape, weight, per_channel=True, transposed=False, kind=np.int8, zero=0, act=np.uint8, **attributes):
    """With a Relu behind it."""

    def build(p):
        middle = 128 if act == np.uint8 else 3
        x = p.pair(p.input("x", shape), 0.02, middle, act)
        channels = weight[1] if transposed else weight[0]
        scale = 0.002 + 0.01 * p.random.random(channels) if per_channel else 0.01
        spread = (0, 256) if kind == np.uint8 else (-127, 128)
        axis = {"axis": int(transposed)} if per_channel else {}
        w = p.weight(weight, scale, *spread, kind=kind, zero=zero, **axis)
        bias = p.constant(p.random.standard_normal(channels * attributes.get("group", 1) if transposed else channels)
                          .astype(np.float32))
        y = p.node("ConvTranspose" if transposed else "Conv", [x, w, bias], **attributes)
        p.pair(p.node("Relu", [y]), 0.05, middle - 20, act, output="y")
        p.output("y")

    return build


def ends_in_float(p):
    x = p.pair(p.input("x", [2, 6, 5, 5]))
    y = p.node("Conv", [x, p.weight([8, 6, 3, 3])], pads=[1, 1, 1, 1])
    p.node("Softplus", [y], "y")
    p.output("y")


def read_twice(p):
    """Integers read by a float and an integer operator, and also an output."""
    q = p.q(p.input("x", [1, 4, 6, 6]))
    x = p.dq(q)
    p.output(q, TensorProto.UINT8)
    p.node("Cos", [p.node("CumSum", [x, p.constant(np.int64(1))])], "y")
    p.output("y")
    p.pair(p.node("Conv", [x, p.weight([4, 4, 1, 1])]), 0.05, output="z")
    p.output("z")


def there_and_back(p):
    """A float operator between two integer ones that are also connected directly: two regions, no
    cycle.
    """
    x = p.pair(p.input("x", [1, 4, 6, 6]))
    y = p.pair(p.node("Conv", [x, p.weight([4, 4, 1, 1])]), 0.05)
    away = p.pair(p.node("CumSum", [y, p.constant(np.int64(2))]), 0.1)
    p.pair(p.node("Add", [y, away]), 0.1, output="y")
    p.output("y")


def bytes_in_and_out(p):
    x = p.dq(p.input("x", [1, 3, 4, 4], TensorProto.INT8), 0.02, 5, np.int8)
    q = p.q(p.node("Conv", [x, p.weight([6, 3, 3, 3])], pads=[1, 1, 1, 1]), 0.05, -3, np.int8)
    p.output(q, TensorProto.INT8)


def two_scales(p):
    """Integers that are read with two scales."""
    q = p.q(p.input("x", [1, 4, 6, 6]))
    p.pair(p.node("Add", [p.dq(q, 0.02, 128), p.dq(q, 0.03, 100)]), 0.05, output="y")
    p.output("y")


def squeeze_excite(p):
    x = p.pair(p.input("x", [2, 8, 6, 6]))
    s = p.pair(p.node("GlobalAveragePool", [x]))
    s = p.pair(p.node("Conv", [s, p.weight([8, 8, 1, 1])]), 0.02)
    s = p.pair(p.node("HardSigmoid", [s], alpha=0.2), 1 / 255, 0)
    p.pair(p.node("Mul", [x, s]), output="y")
    p.output("y")


def attention(p):
    a, b = p.pair(p.input("a", [2, 5, 3, 8])), p.pair(p.input("b", [2, 5, 3, 8]), 0.03, 120)
    q = p.pair(p.node("Transpose", [a], perm=[0, 2, 1, 3]))
    k = p.pair(p.node("Transpose", [b], perm=[0, 2, 3, 1]), 0.03, 120)
    scores = p.pair(p.node("MatMul", [q, k]), 0.1)
    weights = p.pair(p.node("Softmax", [scores], axis=-1), 1 / 255, 0)
    v = p.pair(p.node("Transpose", [b], perm=[0, 2, 1, 3]), 0.03, 120)
    p.pair(p.node("MatMul", [weights, v]), output="y")
    p.output("y")


def shared_squeeze(p):
    """Inception-like: two branches of one value, joined along the channels with other scales."""
    x = p.pair(p.input("x", [1, 6, 7, 7]))
    a = p.pair(p.node("Conv", [x, p.weight([5, 6, 1, 1])]), 0.03)
    b = p.pair(p.node("Conv", [x, p.weight([7, 6, 3, 3])], pads=[1, 1, 1, 1]), 0.04, 110)
    p.pair(p.node("Concat", [a, b, x], axis=1), 0.04, output="y")
    p.output("y")


def blocks_of_weights(p):
    x = p.pair(p.input("x", [2, 64]))
    w = p.constant(p.random.integers(-8, 8, [64, 5]).astype(np.int8))
    scale = p.constant((0.01 + 0.01 * p.random.random([2, 5])).astype(np.float32))
    w = p.node("DequantizeLinear", [w, scale], axis=0, block_size=32)
    p.pair(p.node("MatMul", [x, w]), 0.05, output="y")
    p.output("y")


# Name: (model, the operators that run in float).
MODELS = {
    "Sub": (of_two("Sub", [1, 3, 4, 4], [1, 3, 4, 4]), ()),
    "Sub spread": (of_two("Sub", [2, 3, 4, 4], [3, 1, 1]), ()),
    "Mul of pixels": (of_two("Mul", [2, 3, 4, 4], [2, 1, 4, 4]), ()),
    "Mul of channels of each image": (of_two("Mul", [2, 3, 4, 4], [2, 3, 1, 1]), ()),
    "Add of fewer axes": (of_two("Add", [3, 5], [2, 4, 3, 5]), ()),
    "Add both ways": (of_two("Add", [2, 1, 4, 1], [2, 3, 1, 5]), ()),
    "Div": (of_two("Div", [2, 3], [2, 3]), ()),
    "Div by constant": (chain(("Div", 1.7)), ()),
    "Div of constant": (chain(("Add", 4.0), ("Reciprocal",)), ()),
    "Tanh": (chain(("Tanh",)), ()),
    "HardSwish": (chain(("HardSwish",)), ()),
    "HardSigmoid": (chain(("HardSigmoid", {"alpha": 0.1666})), ()),
    "Elu": (chain(("Elu", {"alpha": 0.7})), ()),
    "Gelu": (chain(("Gelu",)), ()),
    "Softplus": (chain(("Softplus",)), ()),
    "Exp, Neg, Sqrt": (chain(("Neg",), ("Exp",), ("Sqrt",)), ()),
    "Clip, Pow": (chain(("Clip", -0.5, 1.5), ("Pow", 2.0)), ()),
    "PRelu": (chain(("PRelu", 0.3)), ()),
    "SiLU": (silu, ()),
    "Gelu written out": (gelu, ()),
    "squeeze-excite": (squeeze_excite, ()),
    "attention": (attention, ()),
    "branches": (shared_squeeze, ()),
    "ReduceMean": (of_one("ReduceMean", [2, 3, 4, 5], [np.array([2, 3])], keepdims=1), ()),
    "ReduceMean flat": (of_one("ReduceMean", [2, 3, 4, 5], [np.array([-1])], keepdims=0), ()),
    "ReduceMean of channels": (of_one("ReduceMean", [2, 3, 4, 5], [np.array([1])], keepdims=1), ()),
    "ReduceSum": (of_one("ReduceSum", [2, 3, 4, 5], [np.array([2, 3])], into=(0.3, 90), keepdims=1), ()),
    "ReduceSum flat": (of_one("ReduceSum", [2, 3, 4, 5], [np.array([-1])], into=(0.1, 90), keepdims=0), ()),
    "ReduceMax": (of_one("ReduceMax", [2, 3, 4, 5], [np.array([2, 3])], keepdims=0), ()),
    "ReduceMax of channels": (of_one("ReduceMax", [2, 3, 4, 5], [np.array([1])], into=(0.03, 90), keepdims=1), ()),
    "ReduceMin flat": (of_one("ReduceMin", [2, 3, 4, 5], [np.array([-1])], keepdims=0), ()),
    "GlobalMaxPool": (of_one("GlobalMaxPool", [2, 3, 4, 5]), ()),
    "ReduceMean apart": (of_one("ReduceMean", [2, 3, 4, 5], [np.array([1, 3])]), ("ReduceMean",)),
    "Softmax of channels": (of_one("Softmax", [2, 5, 3, 3], into=(1 / 255, 0), axis=1), ()),
    "Softmax in the middle": (of_one("Softmax", [2, 5, 6, 3], into=(1 / 255, 0), axis=2), ()),
    "DepthToSpace": (of_one("DepthToSpace", [2, 8, 3, 4], blocksize=2), ()),
    "DepthToSpace CRD": (of_one("DepthToSpace", [2, 8, 3, 4], blocksize=2, mode="CRD"), ()),
    "SpaceToDepth": (of_one("SpaceToDepth", [2, 3, 4, 6], blocksize=2), ()),
    "Gather": (of_one("Gather", [2, 5, 3, 4], [np.array([4, 0, -2])], axis=1), ()),
    "Gather of one": (of_one("Gather", [2, 5, 3, 4], [np.array(-1)], axis=2), ()),
    "Gather of many": (of_one("Gather", [2, 5, 3], [np.array([[0, 2], [1, 1]])], into=(0.03, 100), axis=2), ()),
    "Gather of none": (of_one("Gather", [2, 5, 3], [np.array([], np.int64)], axis=1), ()),
    "Slice backwards": (of_one("Slice", [1, 4, 6, 6], [np.array([5, 3]), np.array([-9, 0]), np.array([2, 1]), np.array([-2, -1])]), ()),
    "Pad negative": (of_one("Pad", [1, 2, 5, 5], [np.array([0, 0, -1, 2, 0, 1, 0, -2])]), ()),
    "Pad edge": (of_one("Pad", [1, 2, 5, 5], [np.array([0, 0, 1, 2, 0, 0, 2, 1])], mode="edge"), ()),
    "MaxPool to another scale": (of_one("MaxPool", [1, 3, 8, 8], into=(0.03, 90), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), ()),
    "MaxPool dilated": (of_one("MaxPool", [1, 3, 9, 9], kernel_shape=[3, 2], dilations=[2, 3], pads=[1, 0, 1, 1]), ()),
    "AveragePool same": (of_one("AveragePool", [1, 3, 7, 7], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"), ()),
    "Resize align corners": (of_one("Resize", [1, 3, 4, 5], [None, None, np.array([1, 3, 7, 9])], mode="linear", coordinate_transformation_mode="align_corners"), ()),
    "Resize nearest": (of_one("Resize", [1, 3, 4, 5], [None, np.array([1, 1, 1.5, 2], np.float32)], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"), ()),
    "Resize to another scale": (of_one("Resize", [1, 3, 4, 5], [None, np.array([1, 1, 2, 2], np.float32)], into=(0.03, 100), mode="linear"), ()),
    "Conv strided": (convolution([2, 5, 11, 9], [7, 5, 3, 2], strides=[2, 3], pads=[1, 0, 2, 1]), ()),
    "Conv dilated": (convolution([1, 6, 12, 12], [8, 6, 3, 3], dilations=[2, 3], pads=[2, 3, 2, 3]), ()),
    "Conv grouped": (convolution([1, 6, 8, 8], [9, 2, 3, 3], group=3), ()),
    "Conv depthwise": (convolution([2, 19, 9, 9], [19, 1, 5, 5], group=19, dilations=[2, 2], pads=[4, 4, 4, 4]), ()),
    "Conv depthwise doubled": (convolution([1, 4, 9, 9], [8, 1, 3, 3], group=4), ()),
    "Conv SAME_LOWER": (convolution([1, 3, 8, 7], [4, 3, 4, 3], strides=[3, 2], auto_pad="SAME_LOWER"), ()),
    "Conv one scale": (convolution([1, 3, 8, 8], [4, 3, 3, 3], per_channel=False), ()),
    "Conv u8 weights": (convolution([1, 3, 8, 8], [4, 3, 3, 3], per_channel=False, kind=np.uint8, zero=117), ()),
    "Conv i8": (convolution([1, 3, 8, 8], [4, 3, 3, 3], act=np.int8), ()),
    "Conv 1-D": (convolution([2, 3, 17], [4, 3, 5], strides=[2], pads=[2, 1]), ()),
    "ConvTranspose": (convolution([2, 4, 5, 6], [4, 3, 3, 4], transposed=True, strides=[2, 3], pads=[1, 0, 1, 2], output_padding=[1, 1]), ()),
    "ConvTranspose blocks": (convolution([2, 5, 6, 7], [5, 3, 2, 2], transposed=True, strides=[2, 2]), ()),
    "ConvTranspose blocks of one channel": (convolution([1, 6, 5, 4], [6, 1, 3, 3], per_channel=False, transposed=True, strides=[3, 3]), ()),
    "ConvTranspose blocks and more": (convolution([1, 4, 5, 4], [4, 2, 2, 2], transposed=True, strides=[2, 2], output_padding=[1, 0]), ()),
    "ConvTranspose grouped": (convolution([1, 4, 5, 5], [4, 3, 3, 3], per_channel=False, transposed=True, group=2, strides=[2, 2]), ()),
    "ConvTranspose 1-D": (convolution([1, 4, 6], [4, 3, 4], transposed=True, strides=[2], pads=[1, 1]), ()),
    "ends in float": (ends_in_float, ("Softplus",)),
    "read twice": (read_twice, ("CumSum", "Cos")),
    "there and back": (there_and_back, ("CumSum",)),
    "bytes in and out": (bytes_in_and_out, ()),
    "two scales": (two_scales, ()),
    "weights in blocks": (blocks_of_weights, ("MatMul",)),
} | int16_models.MODELS  # fmt: skip
