"""QDQ models with 16-bit values, and of normalized images, each end of which may have 16 bits.

Each is a function that builds in a `Pairs` (qdq_models.py, whose `MODELS` they are among).
"""

import numpy as np


def bits(p):
    x = p.pair(p.input("x", [1, 4, 6, 6]), 0.001, 0, np.int16)
    y = p.pair(p.node("Conv", [x, p.weight([4, 4, 1, 1])]), 0.001, 0, np.int16)
    p.pair(p.node("Relu", [y]), 0.02, output="y")
    p.output("y")


def tables(p):
    """Chains of float operators from 16 bits to 16 and to 8, of signed integers and unsigned; two readers of one value."""
    x = p.pair(p.input("x", [1, 6, 9, 8]))
    y = p.pair(p.node("Conv", [x, p.weight([6, 6, 1, 1])]), 0.0004, -2000, np.int16)
    half, one = p.constant(np.float32(0.5)), p.constant(np.float32(1))
    gate = p.node("Add", [p.node("Erf", [p.node("Mul", [y, p.constant(np.float32(0.7))])]), one])
    gelu = p.pair(p.node("Mul", [p.node("Mul", [y, gate]), half]), 0.0002, 3000, np.uint16)
    swish = p.pair(p.node("Mul", [y, p.node("Sigmoid", [y])]), 0.0003, 900, np.uint16)
    p.pair(p.node("Tanh", [gelu]), 1 / 128, 128, output="y")
    p.pair(p.node("Relu", [p.node("Sub", [swish, half])]), 0.03, 20, output="z")
    p.output("y")
    p.output("z")


def between(p):
    """The first layers of SqueezeNet as our guard writes them: products of 8 bits into 16, a pool, and back."""
    x = p.pair(p.input("x", [2, 3, 13, 11]))
    y = p.node("Relu", [p.node("Conv", [x, p.weight([20, 3, 3, 3])], strides=[2, 2])])
    y = p.pair(y, 0.0004, 700, np.uint16)
    y = p.pair(p.node("MaxPool", [y], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 0]), 0.0004, 700, np.uint16)
    bias = p.constant(p.random.standard_normal(6).astype(np.float32))
    p.pair(p.node("Conv", [y, p.weight([6, 20, 3, 3]), bias], pads=[1, 1, 1, 1]), 0.1, 100, output="y")
    p.output("y")


def depthwise(p):
    """Padding counts as zero in both bytes; the result is read in float too."""
    x = p.pair(p.input("x", [1, 19, 9, 9]), 0.0002, -4321, np.int16)
    y = p.node("Conv", [x, p.weight([19, 1, 3, 3])], group=19, pads=[2, 2, 2, 2], dilations=[2, 2])
    y = p.pair(p.node("Clip", [y, p.constant(np.float32(-1)), p.constant(np.float32(1.5))]), 0.0003, 99, np.int16)
    p.node("CumSum", [y, p.constant(np.int64(2))], "z")
    p.output("z")
    p.pair(p.node("GlobalAveragePool", [y]), 0.02, output="y")
    p.output("y")


def hard_swish(p):
    """x · relu6(x + 3) / 6 with 16 bits in between is one table; then times a number and another value."""
    x = p.pair(p.input("x", [1, 6, 5, 5]))
    gate = p.pair(p.node("Clip", [p.node("Add", [x, p.constant(np.float32(3))]), p.constant(np.float32(0)), p.constant(np.float32(6))]), 6 / 255, 0)
    y = p.pair(p.node("Mul", [x, gate]), 0.0005, 3000, np.uint16)
    y = p.pair(p.node("Div", [y, p.constant(np.float32(6))]), 0.0001, 3000, np.uint16)
    y = p.pair(p.node("Mul", [y, p.constant(np.float32(1.3))]), 0.0001, 3000, np.uint16)
    other = p.pair(p.node("Conv", [x, p.weight([6, 6, 1, 1])]), 0.0004, 30000, np.uint16)
    p.pair(p.node("Add", [y, other]), 0.04, 100, output="y")
    p.output("y")


def transformer(p):
    """A residual of 16 bits, normalized, and a product of it."""
    x, w = p.pair(p.input("x", [2, 7, 24])), p.weight([24, 24], 0.01 + 0.01 * p.random.random(24), axis=1)
    y = p.pair(p.node("MatMul", [x, w]), 0.0003, 30000, np.uint16)
    y = p.pair(p.node("Add", [y, p.constant(p.random.standard_normal(24).astype(np.float32))]), 0.0003, 30000, np.uint16)
    y = p.pair(p.node("Add", [x, y]), 0.0003, 30000, np.uint16)
    scale, shift = (p.constant(p.random.standard_normal(24).astype(np.float32)) for _ in "ab")
    y = p.pair(p.node("LayerNormalization", [y, scale, shift]), 0.0003, 30000, np.uint16)
    p.pair(p.node("MatMul", [y, p.weight([24, 10])]), 0.1, output="y")
    p.output("y")


def moved(p):
    """Data movement of 16-bit values, from one convolution to another and to 8 bits."""
    wide = lambda value: p.pair(value, 0.0004, 30000, np.uint16)
    x = wide(p.node("Conv", [p.pair(p.input("x", [2, 3, 6, 6])), p.weight([8, 3, 3, 3])], pads=[1, 1, 1, 1]))
    x = wide(p.node("Resize", [x, "", p.constant(np.array([1, 1, 1.5, 2], np.float32))], coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
    a, b = p.node("Split", [x], ["a", "b"], axis=1, num_outputs=2)
    a = wide(p.node("Slice", [wide(a), *(p.constant(np.array(v)) for v in ([8], [0], [2], [-1]))]))
    b = wide(p.node("Gather", [wide(b), p.constant(np.array([7, 0, 3, 3, 1, 0, 2, 8]))], axis=2))
    b = wide(p.node("Transpose", [wide(p.node("Transpose", [b], perm=[0, 2, 3, 1]))], perm=[0, 3, 1, 2]))
    y = wide(p.node("Add", [a, b]))
    p.pair(p.node("Conv", [y, p.weight([5, 4, 1, 1])]), 0.05, 100, output="y")
    p.output("y")
    p.pair(p.node("Transpose", [y], perm=[1, 3, 0, 2]), 0.1, 90, output="z")
    p.output("z")


def image_norm(operator, numbers, wide=None, behind=None, **attributes):
    """Between convolutions, whose channels lie last; 16 bits before it, behind it or on both sides."""

    def build(p):
        ends = [(0.03, 120) if not wide or wide not in (side, "both") else (0.0003, 30000, np.uint16) for side in ("before", "behind")]
        x = p.pair(p.input("x", [2, 6, 5, 7]), *ends[0])
        scale = p.constant((0.5 + p.random.random(numbers)).astype(np.float32))
        shift = p.constant(p.random.standard_normal(numbers).astype(np.float32))
        y = p.node(operator, [x, scale, shift], **attributes)
        y = p.pair(p.node(behind, [y]) if behind else y, *ends[1])
        if wide:
            p.pair(y, 0.03, 110, output="y")
        else:
            p.pair(p.node("Conv", [y, p.weight([4, 6, 1, 1])]), 0.1, 110, output="y")
        p.output("y")

    return build


def joined(p):
    """Parts of 8 and of 16 bits and a constant, into 16 bits and, by a way that leads past a convolution, into 8."""
    wide = lambda value: p.pair(value, 0.0004, 30000, np.uint16)
    x = p.pair(p.input("x", [2, 3, 6, 6]))
    a = wide(p.node("Conv", [x, p.weight([4, 3, 1, 1])]))
    c = p.constant(p.random.standard_normal([2, 2, 6, 6]).astype(np.float32))
    y = wide(p.node("Concat", [x, a, c], axis=1))
    y = wide(p.node("Conv", [y, p.weight([5, 9, 3, 3])], pads=[1, 1, 1, 1]))
    p.pair(p.node("Concat", [a, y, x, c], axis=1), 0.05, 100, output="y")
    p.output("y")
    p.pair(p.node("Concat", [a, a], axis=3), 0.0009, 0, np.int16, output="z")
    p.output("z")


def softmax(axis=-1, given=True, made=True):
    """Of 16 bits, into 16 bits, or both."""

    def build(p):
        x = p.pair(p.input("x", [2, 6, 5, 7]), *((0.0004, 30000, np.uint16) if given else (0.1, 100)))
        y = p.node("Softmax", [x], axis=axis)
        p.pair(y, *((1 / 65535, 0, np.uint16) if made else (1 / 255, 0)), output="y")
        p.output("y")

    return build


def reduced(p):
    """The maximum of 16-bit values per channel, the minimum per column, and the sum of both."""
    wide = lambda value: p.pair(value, 0.0004, 30000, np.uint16)
    x = wide(p.node("Conv", [p.pair(p.input("x", [2, 3, 6, 5])), p.weight([8, 3, 3, 3])], pads=[1, 1, 1, 1]))
    greatest = wide(p.node("ReduceMax", [x, p.constant(np.array([2, 3]))], keepdims=1))
    least = wide(p.node("ReduceMin", [x, p.constant(np.array([-2]))], keepdims=1))
    y = wide(p.node("Add", [greatest, least]))
    p.pair(p.node("ReduceSum", [y, p.constant(np.array([2, 3]))], keepdims=0), 0.2, 100, output="y")
    p.output("y")
    p.pair(p.node("GlobalMaxPool", [x]), 0.02, 128, output="z")
    p.output("z")


MODELS = {
    "16 bits": (bits, ()),
    "16 bits tables": (tables, ()),
    "16 bits between": (between, ()),
    "16 bits depthwise": (depthwise, ("CumSum",)),
    "16 bits hard swish": (hard_swish, ()),
    "16 bits transformer": (transformer, ()),
    "16 bits moved": (moved, ()),
    "InstanceNormalization": (image_norm("InstanceNormalization", 6), ()),
    "InstanceNormalization, Relu": (image_norm("InstanceNormalization", 6, behind="Relu", epsilon=0.01), ()),
    "InstanceNormalization of 16 bits": (image_norm("InstanceNormalization", 6, "both"), ()),
    "GroupNormalization, a scale a group": (image_norm("GroupNormalization", 3, num_groups=3), ()),
    "GroupNormalization into 16 bits": (image_norm("GroupNormalization", 6, "behind", num_groups=2), ()),
    "GroupNormalization of 16 bits": (image_norm("GroupNormalization", 6, "before", num_groups=1), ()),
    "16 bits joined": (joined, ()),
    "16 bits Softmax": (softmax(), ()),
    "16 bits Softmax of channels into 8": (softmax(1, made=False), ()),
    "8 bits Softmax in the middle into 16": (softmax(2, given=False), ()),
    "16 bits reduced": (reduced, ()),
}  # fmt: skip
