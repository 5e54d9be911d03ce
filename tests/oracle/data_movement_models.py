"""QDQ models without redundant pairs around data-movement operators, as many tools write them.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name, with the operators that stay float.
"""

import numpy as np
from onnx import TensorProto, helper
from qdq_models import Pairs


def model(name):
    pairs = Pairs(seed=sum(name.encode()), opset=21)
    MODELS[name][0](pairs)
    return pairs.model()


def ahead(operator, shape, weight, *constants, product="Conv", **attributes):
    """A pair, data movement, and a product."""

    def build(p):
        x = p.pair(p.input("x", shape))
        moved = p.node(operator, [x, *(p.constant(c) if c is not None else "" for c in constants)], **attributes)
        p.pair(p.node(product, [moved, p.weight(weight)]), 0.05, output="y")
        p.output("y")

    return build


def behind(*movers, act=(0.05, 120), shape=(1, 3, 4, 6)):
    """A product, data movement, and a pair."""

    def build(p):
        value = p.node("Conv", [p.pair(p.input("x", shape)), p.weight([6, 3, 1, 1])])
        for operator, constants, attributes in movers:
            value = p.node(operator, [value, *map(p.constant, constants)], **attributes)
        p.pair(value, *act, output="y")
        p.output("y")

    return build


def moved_weight(shape, axis, operator, *constants, rows=(2, 5, 8), **attributes):
    """A weight that is moved after dequantization, and a bias added after the product."""

    def build(p):
        scale = 0.01 if axis is None else 0.01 + 0.01 * p.random.random(shape[axis])
        axes = {} if axis is None else {"axis": axis}
        weight = p.node(operator, [p.weight(shape, scale, **axes), *map(p.constant, constants)], **attributes)
        product = p.node("MatMul", [p.pair(p.input("x", list(rows)), 0.02, 3, np.int8), weight])
        bias = p.constant(p.random.standard_normal(6).astype(np.float32))
        p.pair(p.node("Add", [bias, product]), 0.05, 100, output="y")
        p.output("y")

    return build


def bias_of_a_number(p):
    product = p.node("MatMul", [p.pair(p.input("x", [3, 8])), p.weight([8, 5])])
    p.pair(p.node("Relu", [p.node("Add", [product, p.constant(np.float32(0.7))])]), 0.02, 0, output="y")
    p.output("y")


def bias_of_rows(p):
    """As many rows as columns, and one number for each row."""
    product = p.node("MatMul", [p.pair(p.input("x", [5, 8])), p.weight([8, 5])])
    rows = p.constant(p.random.standard_normal([5, 1]).astype(np.float32))
    p.pair(p.node("Add", [product, rows]), 0.05, output="y")
    p.output("y")


def joined(p):
    """Heads of a detector: two products, transposed and concatenated, with one pair at the end."""
    x = p.pair(p.input("x", [1, 3, 4, 6]))
    heads = []
    for channels in (6, 9):
        product = p.node("Conv", [x, p.weight([channels, 3, 1, 1])])
        apart = p.node("Reshape", [product, p.constant(np.array([1, 3, -1, 24]))])
        heads.append(p.node("Transpose", [apart], perm=[0, 1, 3, 2]))
    p.pair(p.node("Concat", heads, axis=3), 0.06, 110, output="y")
    p.output("y")


def split(p):
    parts = ["a", "b"]
    p.node("Split", [p.pair(p.input("x", [1, 8, 5, 5])), p.constant(np.array([3, 5]))], parts, axis=1)
    for part, channels in zip(parts, (3, 5)):
        p.pair(p.node("Conv", [part, p.weight([4, channels, 1, 1])]), 0.05, output=f"{part}_out")
        p.output(f"{part}_out")


def scores(p):
    logits = p.pair(p.node("Conv", [p.pair(p.input("x", [2, 3, 1, 1])), p.weight([9, 3, 1, 1])]), 0.05)
    p.pair(p.node("Softmax", [p.node("Flatten", [logits])], axis=1), 1 / 255, 0, output="y")
    p.output("y")


def read_and_given_out(p):
    """The moved value is also a float output."""
    moved = p.node("Transpose", [p.pair(p.input("x", [2, 6, 4]))], "moved", perm=[0, 2, 1])
    p.output(moved)
    p.pair(p.node("MatMul", [moved, p.weight([6, 5])]), 0.05, output="y")
    p.output("y")


def given_out_before_rounding(p):
    """The moved value is also an output that must not be rounded."""
    product = p.node("Conv", [p.pair(p.input("x", [1, 3, 4, 6])), p.weight([6, 3, 1, 1])], "product")
    p.output(product)
    p.pair(p.node("Transpose", [product], perm=[0, 2, 3, 1]), 0.05, output="y")
    p.output("y")


def four_bits(kind, axis=None):
    def build(p):
        low, high = (-8, 8) if kind == TensorProto.INT4 else (0, 16)
        conv = p.node("Conv", [p.pair(p.input("x", [1, 4, 6, 6])), p.weight([8, 4, 3, 3])])
        mean = p.node("Flatten", [p.pair(p.node("GlobalAveragePool", [p.pair(conv, 0.05)]), 0.05)])
        values = p.random.integers(low, high, 40).tolist()
        p.constants.append(helper.make_tensor("w", kind, [8, 5], values))
        zeros = [0 if kind == TensorProto.INT4 else 7] * (1 if axis is None else 5)
        p.constants.append(helper.make_tensor("z", kind, [] if axis is None else [5], zeros))
        scale = np.float32(0.05) if axis is None else (0.02 + 0.05 * p.random.random(5)).astype(np.float32)
        weight = p.node("DequantizeLinear", ["w", p.constant(scale), "z"], **({} if axis is None else {"axis": axis}))
        p.pair(p.node("MatMul", [p.pair(mean, 0.05), weight]), 0.05, output="y")
        p.output("y")

    return build


def residual(p):
    """A residual block as TensorRT's tools write it: one pair behind the sum and the Relu."""
    x = p.pair(p.input("x", [1, 6, 5, 5]))
    branch = p.pair(p.node("Relu", [p.node("Conv", [x, p.weight([8, 6, 1, 1])])]), 0.03, 0)
    product = p.node("Conv", [branch, p.weight([6, 8, 3, 3])], pads=[1, 1, 1, 1])
    p.pair(p.node("Relu", [p.node("Add", [product, x])]), 0.05, 0, output="y")
    p.output("y")


def two_products(p):
    x = p.pair(p.input("x", [1, 6, 5, 5]))
    sides = [p.node("Conv", [x, p.weight([4, 6, 1, 1])]) for _ in range(2)]
    p.pair(p.node("Add", sides), 0.08, output="y")
    p.output("y")


TURNED = ("Transpose", [], {"perm": [0, 2, 3, 1]})

MODELS = {
    "MaxPool, Conv": (ahead("MaxPool", [1, 4, 6, 8], [5, 4, 1, 1], kernel_shape=[2, 2], strides=[2, 2], pads=[1, 0, 1, 0]), ()),
    "Flatten, Gemm": (ahead("Flatten", [2, 8, 1, 1], [8, 5], product="Gemm"), ()),
    "Reshape, MatMul": (ahead("Reshape", [2, 4, 6], [12, 5], np.array([2, -1, 12]), product="MatMul"), ()),
    "Transpose, MatMul": (ahead("Transpose", [2, 6, 4], [6, 5], product="MatMul", perm=[0, 2, 1]), ()),
    "Squeeze, MatMul": (ahead("Squeeze", [2, 1, 6], [6, 5], np.array([1]), product="MatMul"), ()),
    "Pad, Conv": (ahead("Pad", [1, 3, 5, 5], [4, 3, 3, 3], np.array([0, 0, 1, 1, 0, 0, 1, 1])), ()),
    "Pad with no zeros, Conv": (ahead("Pad", [1, 3, 5, 5], [4, 3, 3, 3], np.array([0, 0, 1, 1, 0, 0, 1, 1]), np.float32(0.013)), ("Pad", "Conv")),
    "Resize, Conv": (ahead("Resize", [1, 3, 5, 5], [4, 3, 3, 3], None, np.array([1, 1, 2, 2], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"), ()),
    "linear Resize, Conv": (ahead("Resize", [1, 3, 5, 5], [4, 3, 3, 3], None, np.array([1, 1, 2, 2], np.float32), mode="linear"), ("Resize", "Conv")),
    "Slice, Conv": (ahead("Slice", [1, 6, 5, 5], [4, 2, 3, 3], np.array([1]), np.array([5]), np.array([1]), np.array([2])), ()),
    "Relu, Conv": (ahead("Relu", [1, 3, 5, 5], [4, 3, 3, 3]), ()),
    "Gather, MatMul": (ahead("Gather", [2, 6, 4], [4, 5], np.array([3, 0]), product="MatMul", axis=1), ()),
    "Flatten, Softmax": (scores, ()),
    "Split, Conv": (split, ()),
    "Conv, Transpose": (behind(TURNED), ()),
    "Conv, Reshape, Transpose": (behind(("Reshape", [np.array([1, 2, 3, 4, 6])], {}), ("Transpose", [], {"perm": [0, 1, 3, 4, 2]})), ()),
    "Conv, MaxPool, Slice": (behind(("MaxPool", [], {"kernel_shape": [2, 2]}), ("Slice", [np.array([1]), np.array([4]), np.array([1])], {})), ()),
    "Conv, Pad": (behind(("Pad", [np.array([0, 1, 1, 0, 0, 0, 0, 2]), np.float32(0.3)], {})), ()),
    "Conv, DepthToSpace": (behind(("DepthToSpace", [], {"blocksize": 1}), TURNED), ()),
    "heads of a detector": (joined, ()),
    "Linear of PyTorch": (moved_weight([6, 8], 0, "Transpose", perm=[1, 0]), ()),
    "weight of one scale turned": (moved_weight([6, 8], None, "Transpose"), ()),
    "weight with scales along its depth": (moved_weight([8, 2, 3], 0, "Reshape", np.array([8, 6])), ("MatMul", "Add")),
    "weight with an axis more": (moved_weight([1, 8, 6], 2, "Squeeze", np.array([0])), ()),
    "weight with other axes": (moved_weight([2, 4, 6], -1, "Reshape", np.array([-1, 6])), ()),
    "residual block": (residual, ()),
    "sum of two products": (two_products, ()),
    "bias of one number": (bias_of_a_number, ()),
    "a number for each row": (bias_of_rows, ()),
    "read and given out": (read_and_given_out, ()),
    "given out before it is rounded": (given_out_before_rounding, ("Transpose",)),
    "int4": (four_bits(TensorProto.INT4), ()),
    "int4, a scale a column": (four_bits(TensorProto.INT4, 1), ()),
    "uint4": (four_bits(TensorProto.UINT4, 1), ()),
}  # fmt: skip
