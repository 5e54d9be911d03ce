"""Models of dynamic quantization: DynamicQuantizeLinear, MatMulInteger, ConvInteger and the nodes
around them.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name.
"""

import numpy as np
from onnx import TensorProto

U8, I8, FLOAT, INT32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.FLOAT, TensorProto.INT32


def bytes_of(p, kind, shape):
    """Bytes of a type, including its minimum and maximum."""
    ends = np.iinfo(kind)
    values = p.random.integers(ends.min, ends.max + 1, shape).astype(kind)
    values.flat[: 2] = [ends.min, ends.max][: values.size]
    return values


def product(rows, weight, left=np.uint8, right=np.int8, zero=None, weight_zero=None):
    """MatMulInteger alone. A zero point is a number, or "fed" as an input of the model."""

    def build(p):
        x = p.input("x", rows, U8 if left == np.uint8 else I8)
        w = p.constant(bytes_of(p, right, weight))
        inputs = [x, w]
        if zero is not None or weight_zero is not None:
            fed = zero == "fed"
            inputs.append(p.input("zero", [], U8 if left == np.uint8 else I8) if fed else p.constant(np.array(zero or 0, left)))
        if weight_zero is not None:
            inputs.append(p.constant(np.asarray(weight_zero, right)))
        p.node("MatMulInteger", inputs, "y")
        p.output("y", INT32)

    return build


def convolution(image, weight, right=np.int8, zero=None, weight_zero=None, **attributes):
    """ConvInteger alone."""

    def build(p):
        inputs = [p.input("x", image, U8), p.constant(bytes_of(p, right, weight))]
        if zero is not None or weight_zero is not None:
            inputs.append(p.input("zero", [], U8) if zero == "fed" else p.constant(np.uint8(zero or 0)))
        if weight_zero is not None:
            inputs.append(p.constant(right(weight_zero)))
        p.node("ConvInteger", inputs, "y", **attributes)
        p.output("y", INT32)

    return build


def measured(p, x):
    """DynamicQuantizeLinear: integers, scale and zero point."""
    names = [f"{x}_q", f"{x}_scale", f"{x}_zero"]
    p.node("DynamicQuantizeLinear", [x], names)
    return names


def scaled(p, sums, scales, output=None, swapped=False):
    """The accumulators times both scales."""
    cast = p.node("Cast", [sums], to=FLOAT)
    factor = p.node("Mul", list(scales))
    return p.node("Mul", [factor, cast] if swapped else [cast, factor], output)


def quantizer(p):
    names = measured(p, p.input("x", [3, 50]))
    for name, kind in zip(names, (U8, FLOAT, U8)):
        p.output(name, kind)


def chain(bias=True, per_column=True, zero=0, swapped=False, kind=np.int8, rows=(2, 7, 50)):
    """The output of ONNX Runtime's quantize_dynamic for a MatMul followed by an Add."""

    def build(p):
        q, scale, point = measured(p, p.input("x", list(rows)))
        w = p.constant(bytes_of(p, kind, [50, 21]))
        own = 0.001 + 0.01 * p.random.random(21 if per_column else 1)
        zeros = p.constant(np.full(21 if per_column else [], zero, kind))
        sums = p.node("MatMulInteger", [q, w, point, zeros])
        y = scaled(p, sums, (scale, p.constant(own.astype(np.float32))), None if bias else "y", swapped)
        if bias:
            p.node("Add", [p.constant(p.random.standard_normal(21).astype(np.float32)), y], "y")
        p.output("y")

    return build


def images(weight, image=(2, 6, 11, 9), bias=True, per_channel=False, **attributes):
    """The output of quantize_dynamic for a Conv."""

    def build(p):
        q, scale, point = measured(p, p.input("x", list(image)))
        beside = [1, weight[0]] + [1] * (len(image) - 2)
        own = 0.001 + 0.01 * p.random.random(beside if per_channel else [1])
        w = p.constant(bytes_of(p, np.int8, list(weight)))
        sums = p.node("ConvInteger", [q, w, point, p.constant(np.int8(0))], **attributes)
        y = scaled(p, sums, (scale, p.constant(own.astype(np.float32))), None if bias else "y")
        if bias:
            p.node("Add", [y, p.constant(p.random.standard_normal(beside).astype(np.float32))], "y")
        p.output("y")

    return build


def shared(p):
    """Two products of one value, like queries and keys, and a product of both results."""
    x = p.input("x", [4, 16])
    q, scale, point = measured(p, x)
    made = []
    for _ in range(2):
        w, own = p.constant(bytes_of(p, np.int8, [16, 16])), p.constant(np.float32(0.003))
        made.append(scaled(p, p.node("MatMulInteger", [q, w, point]), (own, scale)))
    added = p.node("Relu", [p.node("Add", made)])
    q, scale, point = measured(p, added)
    sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.uint8, [16, 5])), point, p.constant(np.uint8(119))])
    scaled(p, sums, (scale, p.constant(np.float32(0.002))), "y")
    p.output("y")


def convolutions(p):
    """Consecutive products without a float operator between; the first is also read in float."""
    x = p.input("x", [2, 6, 11, 9])
    for name, shape, group, clamp in ("a", [20, 6, 3, 3], 1, "Relu"), ("b", [20, 1, 3, 3], 20, "Clip"), ("c", [5, 20, 1, 1], 1, "Relu"):
        q, scale, point = measured(p, x)
        sums = p.node("ConvInteger", [q, p.constant(bytes_of(p, np.int8, shape)), point], pads=[shape[2] // 2] * 4, group=group)
        made = scaled(p, sums, (scale, p.constant((0.001 + 0.01 * p.random.random([1, shape[0], 1, 1])).astype(np.float32))))
        made = p.node("Add", [made, p.constant(p.random.standard_normal([1, shape[0], 1, 1]).astype(np.float32))])
        bounds = [p.constant(np.float32(-0.5)), p.constant(np.float32(6))] if clamp == "Clip" else []
        x = p.node(clamp, [made, *bounds], name)
    p.output("a")
    p.output("c")


def sums_seen(p):
    """Accumulators that are also outputs, so they must exist."""
    q, scale, point = measured(p, p.input("x", [3, 12]))
    p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point], "sums")
    p.output("sums", INT32)
    scaled(p, "sums", (scale, p.constant(np.float32(0.01))), "y")
    p.output("y")


def scale_seen(p):
    """Scale and zero point as outputs, and a factor that two products read."""
    q, scale, point = measured(p, p.input("x", [3, 12]))
    p.output(scale)
    p.output(point, U8)
    factor = p.node("Mul", [scale, p.constant(np.float32(0.01))])
    for name in "yz":
        sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point])
        p.node("Mul", [p.node("Cast", [sums], to=FLOAT), factor], name)
        p.output(name)


def odd_scales(p):
    """Factors that are not scalars: only the accumulators are integers."""
    q, scale, point = measured(p, p.input("x", [3, 12]))
    sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point])
    rows = p.constant(p.random.random([3, 1]).astype(np.float32))
    scaled(p, sums, (scale, rows), "y")
    p.output("y")


def static(p):
    """Bytes of a QuantizeLinear, all numbers known."""
    q = p.q(p.input("x", [2, 9, 33]), 0.02, 119)
    sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [33, 10])), p.constant(np.uint8(119))])
    p.node("Mul", [p.node("Cast", [sums], to=FLOAT), p.constant(np.float32(0.0004))], "y")
    p.output("y")


def no_reals(p):
    """Accumulators cast to 64 bits, which is not supported in a region."""
    q, _, point = measured(p, p.input("x", [3, 12]))
    sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point])
    p.node("Cast", [sums], "y", to=TensorProto.INT64)
    p.output("y", TensorProto.INT64)


def of_two(left, right, known=False):
    """A product of two dynamically quantized values, or of bytes."""

    def build(p):
        if known:
            a, b = (p.input(name, shape, kind) for name, shape, kind in [("a", left, U8), ("b", right, I8)])
            p.node("MatMulInteger", [a, b, p.constant(np.uint8(77)), p.constant(np.int8(-9))], "y")
            return p.output("y", INT32)
        a, b = measured(p, p.input("a", left)), measured(p, p.input("b", right))
        scaled(p, p.node("MatMulInteger", [a[0], b[0], a[2], b[2]]), (a[1], b[1]), "y")
        p.output("y")

    return build


def by_columns(left, right):
    """Non-constant bytes with a zero point per column."""

    def build(p):
        a, b = (p.input(name, shape, kind) for name, shape, kind in [("a", left, U8), ("b", right, I8)])
        zeros = np.arange(right[-1]).astype(np.int8)
        # As many axes as the bytes, where these are a stack.
        zeros = p.constant(np.tile(zeros, [*right[:-2], 1, 1]) if len(right) > 2 else zeros)
        p.node("MatMulInteger", [a, b, p.constant(np.uint8(77)), zeros], "y")
        p.output("y", INT32)

    return build


def by_measured(p):
    """One operand has a constant zero point, the other a dynamic one; one scale is left out."""
    a, b = p.input("a", [4, 9], I8), measured(p, p.input("b", [9, 5]))
    sums = p.node("MatMulInteger", [a, b[0], p.constant(np.int8(5)), b[2]])
    p.node("Mul", [b[1], p.node("Cast", [sums], to=FLOAT)], "y")
    p.output("y")


def attention(p):
    """Both products of an attention, dynamically quantized."""
    q, k, v = (measured(p, p.input(name, shape)) for name, shape in [("q", [2, 3, 5, 8]), ("k", [2, 3, 8, 5]), ("v", [2, 3, 5, 8])])
    scores = scaled(p, p.node("MatMulInteger", [q[0], k[0], q[2], k[2]]), (q[1], k[1]))
    weights = measured(p, p.node("Relu", [scores]))
    scaled(p, p.node("MatMulInteger", [weights[0], v[0], weights[2], v[2]]), (weights[1], v[1]), "y")
    p.output("y")


def constant(right, zero=0):
    """A stack of weights, or a vector."""

    def build(p):
        q, scale, point = measured(p, p.input("x", [3, 4, 12]))
        sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, right)), point, p.constant(np.int8(zero))])
        y = scaled(p, sums, (scale, p.constant(np.float32(0.01))))
        p.node("Add", [y, p.constant(np.float32([0.7]))], "y")
        p.output("y")

    return build


def constant_first(p):
    q, scale, point = measured(p, p.input("x", [2, 12, 5]))
    sums = p.node("MatMulInteger", [p.constant(bytes_of(p, np.uint8, [7, 12])), q, p.constant(np.uint8(200)), point])
    scaled(p, sums, (p.constant(np.float32(0.01)), scale), "y")
    p.output("y")


def vector_first(p):
    q, scale, point = measured(p, p.input("x", [12]))
    sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point])
    own = p.constant((0.001 + 0.01 * p.random.random(8)).astype(np.float32))
    scaled(p, sums, (scale, own), "y")
    p.output("y")


COLUMNS = [int(v) for v in np.arange(21) * 5 - 50]
# Name: (model, operators that don't run on our kernels).
MODELS = {
    "quantizer": (quantizer, ()),
    "product": (product([5, 37], [37, 19]), ()),
    "product of a row": (product([1, 64], [64, 70], zero=3), ()),
    "product of images": (product([2, 3, 4, 10], [10, 21], zero=128), ()),
    "product u8 u8": (product([9, 64], [64, 33], right=np.uint8, zero=200, weight_zero=128), ()),
    "product i8 i8": (product([9, 65], [65, 33], left=np.int8, zero=-7, weight_zero=3), ()),
    "product i8 u8": (product([9, 66], [66, 33], left=np.int8, right=np.uint8, zero=-128, weight_zero=0), ()),
    "product by columns": (product([6, 30], [30, 21], zero=5, weight_zero=COLUMNS), ()),
    "product fed": (product([6, 30], [30, 8], zero="fed"), ()),
    "product fed signed": (product([6, 30], [30, 8], left=np.int8, zero="fed"), ()),
    "product deep": (product([3, 3000], [3000, 9], zero=255), ()),
    "convolution": (convolution([1, 5, 9, 8], [7, 5, 3, 3], zero=77, pads=[1, 1, 1, 1]), ()),
    "convolution u8": (convolution([2, 5, 9, 8], [7, 5, 3, 2], np.uint8, zero=3, weight_zero=128, strides=[2, 1]), ()),
    "convolution fed": (convolution([1, 4, 9, 8], [6, 4, 3, 3], zero="fed", pads=[2, 2, 2, 2], dilations=[2, 2]), ()),
    "convolution grouped": (convolution([1, 6, 8, 8], [9, 2, 3, 3], zero=9, group=3), ()),
    "convolution depthwise": (convolution([1, 19, 9, 9], [19, 1, 5, 5], zero=9, group=19, pads=[2, 2, 2, 2]), ()),
    "convolution 1-D": (convolution([2, 3, 17], [4, 3, 5], zero=50, strides=[2], pads=[2, 1]), ()),
    "convolution SAME": (convolution([1, 3, 8, 7], [4, 3, 4, 3], zero=1, strides=[3, 2], auto_pad="SAME_UPPER"), ()),
    "convolution 3-D": (convolution([1, 3, 5, 6, 7], [4, 3, 3, 3, 3]), ("ConvInteger",)),
    "chain": (chain(), ()),
    "chain of one scale": (chain(per_column=False, bias=False), ()),
    "chain of u8": (chain(kind=np.uint8, zero=131, per_column=False), ()),
    "chain the other way": (chain(swapped=True, rows=(1, 50)), ()),
    "chain of zero points": (chain(zero=-9), ()),
    "images": (images((8, 6, 3, 3), pads=[1, 1, 1, 1]), ()),
    "images by channels": (images((8, 6, 3, 3), per_channel=True, strides=[2, 2]), ()),
    "images depthwise": (images((6, 1, 5, 5), group=6, pads=[2, 2, 2, 2], bias=False), ()),
    "images 1-D": (images((5, 6, 3), image=(2, 6, 20), pads=[1, 1]), ()),
    "convolutions": (convolutions, ()),
    "shared": (shared, ("Add", "Relu")),
    "sums seen": (sums_seen, ("Cast", "Mul")),
    "scale seen": (scale_seen, ("Mul",)),
    "odd scales": (odd_scales, ("Cast", "Mul")),
    "static": (static, ()),
    "no reals": (no_reals, ("Cast",)),
    "of two": (of_two([3, 12], [12, 5]), ()),
    "of two stacks": (of_two([2, 1, 3, 70], [3, 70, 5]), ()),
    "of matrix and vector": (of_two([4, 12], [12]), ()),
    "of vector and matrix": (of_two([12], [12, 5]), ()),
    "of two vectors": (of_two([12], [12]), ()),
    "of bytes": (of_two([2, 9, 33], [33, 10], True), ()),
    "of bytes and vector": (of_two([2, 9, 33], [33], True), ()),
    "of bytes by columns": (by_columns([2, 9, 33], [33, 10]), ("MatMulInteger",)),
    "of a vector by columns": (by_columns([33], [2, 33, 10]), ("MatMulInteger",)),
    "of bytes and measured": (by_measured, ()),
    "attention": (attention, ()),
    "stack": (constant([3, 12, 8]), ()),
    "constant vector": (constant([12], 3), ()),
    "constant first": (constant_first, ()),
    "vector first": (vector_first, ()),
}  # fmt: skip
