"""Models of the operators that quantize while they run: DynamicQuantizeLinear, MatMulInteger, ConvInteger and what stands around them.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name.
"""

import numpy as np
from onnx import TensorProto

U8, I8, FLOAT, INT32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.FLOAT, TensorProto.INT32


def bytes_of(p, kind, shape):
    """Bytes of a type, its ends among them."""
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
    """The sums times both scales."""
    cast = p.node("Cast", [sums], to=FLOAT)
    factor = p.node("Mul", list(scales))
    return p.node("Mul", [factor, cast] if swapped else [cast, factor], output)


def quantizer(p):
    names = measured(p, p.input("x", [3, 50]))
    for name, kind in zip(names, (U8, FLOAT, U8)):
        p.output(name, kind)


def chain(bias=True, per_column=True, zero=0, swapped=False, kind=np.int8, rows=(2, 7, 50)):
    """What ONNX Runtime's quantize_dynamic makes of a MatMul, and an Add behind it."""

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
    """The same of a Conv."""

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
    """Two products of one value, as of queries and keys, then one of what they make."""
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
    """One after the other, which no float operator comes between; the first is read in float, too."""
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
    """Sums that go out as well, so that nothing may stand for them."""
    q, scale, point = measured(p, p.input("x", [3, 12]))
    p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point], "sums")
    p.output("sums", INT32)
    scaled(p, "sums", (scale, p.constant(np.float32(0.01))), "y")
    p.output("y")


def scale_seen(p):
    """Scale and zero point that go out as well, and a factor that two products read."""
    q, scale, point = measured(p, p.input("x", [3, 12]))
    p.output(scale)
    p.output(point, U8)
    factor = p.node("Mul", [scale, p.constant(np.float32(0.01))])
    for name in "yz":
        sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point])
        p.node("Mul", [p.node("Cast", [sums], to=FLOAT), factor], name)
        p.output(name)


def odd_scales(p):
    """Factors that are no single numbers: only the sums are ours."""
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
    """Sums cast to 64 bits, which is no Cast of ours."""
    q, _, point = measured(p, p.input("x", [3, 12]))
    sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [12, 8])), point])
    p.node("Cast", [sums], "y", to=TensorProto.INT64)
    p.output("y", TensorProto.INT64)


def not_constant(p):
    """A product of two measured values."""
    a, b = measured(p, p.input("a", [3, 12])), measured(p, p.input("b", [12, 5]))
    scaled(p, p.node("MatMulInteger", [a[0], b[0], a[2], b[2]]), (a[1], b[1]), "y")
    p.output("y")


def stack(p):
    """A stack of weights."""
    q, scale, point = measured(p, p.input("x", [3, 4, 12]))
    sums = p.node("MatMulInteger", [q, p.constant(bytes_of(p, np.int8, [3, 12, 8])), point])
    scaled(p, sums, (scale, p.constant(np.float32(0.01))), "y")
    p.output("y")


COLUMNS = [int(v) for v in np.arange(21) * 5 - 50]
# Name: (model, the operators that don't run on our kernels).
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
    "not constant": (not_constant, ("Cast", "MatMulInteger", "Mul")),
    "stack": (stack, ("Cast", "MatMulInteger", "Mul")),
}  # fmt: skip
