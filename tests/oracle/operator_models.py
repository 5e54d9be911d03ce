"""Models of one operator: at least one for each that ONNX Runtime's `quantize_static` quantizes by
default.

Operators that are quantized only after a quantized value (Relu, Reshape, Where …) follow an Add.
The names in `MODELS` are the operator, and after a colon the special feature.
"""

import numpy as np
from onnx import TensorProto
from small_models import Builder

IMAGE = [1, 4, 6, 6]


def ints(b, name, *values):
    return b.constant(name, np.array(values, np.int64))


def quantized(b, shape=IMAGE):
    """A value that is quantized in any case: the sum of two inputs."""
    return b.node("Add", [b.input("x", shape), b.input("z", shape)])


def plain(operator, shape=IMAGE, **attributes):
    """One input, one output."""
    return lambda b: b.node(operator, [b.input("x", shape)], "y", **attributes)


def behind(operator, shape=IMAGE, more=(), **attributes):
    """After a quantized value, with integer constants as further inputs."""

    def build(b):
        constants = [ints(b, f"c{i}", *values) if values else "" for i, values in enumerate(more)]
        b.node(operator, [quantized(b, shape), *constants], "y", **attributes)

    return build


def weighted(operator, weight, bias=None, shape=IMAGE, **attributes):
    """An input, a constant weight, a constant bias."""

    def build(b):
        inputs = [b.input("x", shape), b.weight("w", weight)]
        if bias is not None:
            inputs.append(b.weight("b", bias))
        b.node(operator, inputs, "y", **attributes)

    return build


def of_two(operator, left=IMAGE, right=IMAGE, **attributes):
    """Two inputs."""
    return lambda b: b.node(operator, [b.input("x", left), b.input("z", right)], "y", **attributes)


def with_constant(operator, shape, first=False, **attributes):
    """An input and a constant, which comes first if asked."""

    def build(b):
        inputs = [b.input("x", IMAGE), b.weight("c", shape)]
        b.node(operator, inputs[::-1] if first else inputs, "y", **attributes)

    return build


def with_scalar(operator):
    return lambda b: b.node(operator, [b.input("x", IMAGE), b.constant("c", np.float32(0.7))], "y")


def clip(b):
    bounds = [b.constant("low", np.float32(-0.5)), b.constant("high", np.float32(1))]
    b.node("Clip", [quantized(b), *bounds], "y")


def gather_table(b):
    b.node("Gather", [b.weight("table", [9, 4]), ints(b, "places", 3, 0, 8)], "y")


def gather_elements(b):
    places = b.constant("places", np.zeros(IMAGE, np.int64))
    b.node("GatherElements", [quantized(b), places], "y", axis=1)


def gather_elements_table(b):
    b.node("GatherElements", [b.weight("table", [9, 4]), b.constant("places", np.full([2, 4], 3, np.int64))], "y")


def pad(mode, fill=None):
    def build(b):
        inputs = [b.input("x", IMAGE), ints(b, "pads", 0, 0, 1, 1, 0, 0, 2, 1)]
        if fill is not None:
            inputs.append(b.constant("fill", np.float32(fill)))
        b.node("Pad", inputs, "y", mode=mode)

    return build


def resize(mode, **attributes):
    def build(b):
        scales = b.constant("scales", np.array([1, 1, 2, 1.5], np.float32))
        b.node("Resize", [quantized(b), "", scales], "y", mode=mode, **attributes)

    return build


def split(b):
    b.node("Split", [b.input("x", IMAGE), ints(b, "sizes", 1, 3)], ["y", "y2"], axis=1)
    b.output("y2")


def top_k(b):
    b.node("TopK", [quantized(b), ints(b, "k", 3)], ["y", "places"])
    b.output("places", TensorProto.INT64)


def where(constant):
    def build(b):
        mask = b.constant("mask", np.arange(36).reshape(6, 6) % 3 == 0)
        other = b.weight("c", [6]) if constant else b.node("Mul", [b.input("v", IMAGE), "x"])
        b.node("Where", [mask, quantized(b), other], "y")

    return build


def cumulative_sum(b):
    b.node("CumSum", [b.input("x", IMAGE), b.constant("axis", np.int64(1))], "y")


def divided(b):
    """With divisors away from zero."""
    b.node("Div", [b.input("x", IMAGE), b.node("Sigmoid", [b.input("z", IMAGE)])], "y")


def normalization(operator, parts, size=4, **attributes):
    def build(b):
        inputs = [b.input("x", IMAGE)]
        for name in parts:
            spread = 0.2 if name in ("scale", "variance") else 1.0
            values = np.abs(b.random.standard_normal(size)) * spread + (0.5 if spread == 0.2 else 0)
            inputs.append(b.constant(name, values.astype(np.float32)))
        b.node(operator, inputs, "y", **attributes)

    return build


MODELS = {
    "Add": of_two("Add"),
    "Add:constant": with_constant("Add", [4, 1, 1]),
    "Add:constant first": with_constant("Add", [4, 1, 1], first=True),
    "Add:scalar": with_scalar("Add"),
    "ArgMax": plain("ArgMax", axis=1),
    "ArgMax:behind": behind("ArgMax", axis=-1, keepdims=0, select_last_index=1),
    "AveragePool": behind("AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    "AveragePool:padded": behind("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    "AveragePool:hanging over": behind(
        "AveragePool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1),
    "BatchNormalization": normalization("BatchNormalization", ("scale", "shift", "mean", "variance")),
    "Clip": clip,
    "Concat": of_two("Concat", axis=1),
    "Concat:constant": with_constant("Concat", [1, 2, 6, 6], axis=1),
    "Conv": weighted("Conv", [5, 4, 3, 3], [5]),
    "Conv:no bias": weighted("Conv", [5, 4, 3, 3], pads=[1, 1, 1, 1]),
    "Conv:groups": weighted("Conv", [4, 1, 3, 3], [4], group=4),
    "Conv:one channel": weighted("Conv", [1, 4, 1, 1], [1]),
    "Conv:1-D": weighted("Conv", [5, 4, 3], [5], [1, 4, 9], dilations=[2]),
    "Conv:3-D": weighted("Conv", [3, 2, 2, 2, 2], [3], [1, 2, 4, 4, 4]),
    "Conv:weight as input": of_two("Conv", right=[5, 4, 3, 3]),
    "ConvTranspose": weighted("ConvTranspose", [4, 5, 2, 2], [5], strides=[2, 2]),
    "ConvTranspose:no bias": weighted("ConvTranspose", [4, 5, 2, 2]),
    "CumSum": cumulative_sum,
    "Flatten": behind("Flatten"),
    "Gather": behind("Gather", more=[(0, 2)], axis=1),
    "Gather:table": gather_table,
    "GatherElements": gather_elements,
    "GatherElements:table": gather_elements_table,
    "Gemm": weighted("Gemm", [6, 5], [5], [3, 6]),
    "Gemm:transposed": weighted("Gemm", [5, 6], [5], [3, 6], transB=1),
    "Gemm:both transposed": weighted("Gemm", [5, 6], [5], [6, 3], transA=1, transB=1),
    "Gemm:no bias": weighted("Gemm", [6, 5], None, [3, 6]),
    "Gemm:alpha": weighted("Gemm", [6, 5], [5], [3, 6], alpha=0.3),
    "GlobalAveragePool": plain("GlobalAveragePool"),
    "InstanceNormalization": normalization("InstanceNormalization", ("scale", "shift")),
    "LayerNormalization": normalization("LayerNormalization", ("scale", "shift"), 6),
    "LayerNormalization:no shift": normalization("LayerNormalization", ("scale",), 6),
    "LeakyRelu": plain("LeakyRelu", alpha=0.2),
    "MatMul": weighted("MatMul", [6, 5]),
    "MatMul:two inputs": of_two("MatMul", [2, 3, 6], [2, 6, 5]),
    "MatMul:constant first": with_constant("MatMul", [5, 6], first=True),
    "MatMul:stacked weight": weighted("MatMul", [4, 6, 5]),
    "MatMul:vector": weighted("MatMul", [6]),
    "MaxPool": behind("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "Mul": of_two("Mul"),
    "Mul:constant": with_constant("Mul", [4, 1, 1]),
    "Mul:scalar": with_scalar("Mul"),
    "Mul:square": lambda b: b.node("Mul", [b.input("x", IMAGE), "x"], "y"),
    "Pad": pad("constant"),
    "Pad:zero": pad("constant", 0.0),
    "Pad:filled": pad("constant", 1.25),
    "Pad:reflect": pad("reflect"),
    "Pad:edge": pad("edge"),
    "Relu": behind("Relu"),
    "Reshape": behind("Reshape", more=[(4, -1)]),
    "Resize": resize("nearest"),
    "Resize:linear": resize("linear"),
    "Resize:cubic": resize("cubic"),
    "Sigmoid": plain("Sigmoid"),
    "Slice": behind("Slice", more=[(1,), (5,), (2,)]),
    "Softmax": plain("Softmax", axis=1),
    "Softmax:last": plain("Softmax"),
    "Split": split,
    "Squeeze": behind("Squeeze", [1, 4, 6], more=[(0,)]),
    "TopK": top_k,
    "Transpose": behind("Transpose", perm=[0, 2, 3, 1]),
    "Unsqueeze": behind("Unsqueeze", more=[(0, 3)]),
    "Where": where(False),
    "Where:constant": where(True),
}  # fmt: skip


# Quantized only after a quantized value: alone, nothing is left to do.
ALONE = {
    "AveragePool": plain("AveragePool", kernel_shape=[2, 2]),
    "Clip": plain("Clip"),
    "Flatten": plain("Flatten"),
    "MaxPool": plain("MaxPool", kernel_shape=[2, 2]),
    "Relu": plain("Relu"),
    "Transpose": plain("Transpose"),
}


# Operators that ONNX Runtime leaves in float by default.
OURS = {
    "DepthToSpace": behind("DepthToSpace", blocksize=2),
    "Div": with_constant("Div", [4, 1, 1]),
    "Div:two inputs": divided,
    "Elu": plain("Elu", alpha=0.7),
    "Erf": plain("Erf"),
    "Gelu": plain("Gelu"),
    "Gelu:tanh": plain("Gelu", approximate="tanh"),
    "GlobalMaxPool": behind("GlobalMaxPool"),
    "GroupNormalization": normalization("GroupNormalization", ("scale", "shift"), num_groups=2),
    "HardSigmoid": plain("HardSigmoid", alpha=0.3),
    "HardSwish": plain("HardSwish"),
    "Max": of_two("Max"),
    "Min": of_two("Min"),
    "PRelu": with_constant("PRelu", [4, 1, 1]),
    "ReduceMax": behind("ReduceMax", more=[(2, 3)], keepdims=1),
    "ReduceMin": behind("ReduceMin", more=[(1,)], keepdims=0),
    "ReduceMean": behind("ReduceMean", more=[(2, 3)], keepdims=1),
    "ReduceSum": behind("ReduceSum", more=[(1,)], keepdims=0),
    "SpaceToDepth": behind("SpaceToDepth", blocksize=2),
    "Sub": of_two("Sub"),
    "Sub:constant": with_constant("Sub", [4, 1, 1]),
    "Tanh": plain("Tanh"),
}  # fmt: skip


def build(name, models=MODELS, **options):
    """The model of that name; equal for each call."""
    builder = Builder(np.random.default_rng(sum(name.encode())))
    models[name](builder)
    if name.startswith("ArgMax"):
        builder.output("y", TensorProto.INT64)
    elif name.startswith("GroupNormalization"):
        builder.output("y", shape=IMAGE)  # which onnx doesn't infer
    else:
        builder.output("y")
    return builder.model(**options)
