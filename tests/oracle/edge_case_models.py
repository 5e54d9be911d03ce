"""Edge cases of QDQ models: coincidentally matching shapes, resizes by odd factors, transposed
convolutions of a given size, broadcast constants.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name.
"""

import numpy as np
from qdq_models import convolution, of_one


def gemm(rows, bias, columns=5, **attributes):
    """A float bias of any shape that broadcasts."""

    def build(p):
        x = p.pair(p.input("x", [rows, 8]))
        c = p.constant((3 * p.random.standard_normal(bias)).astype(np.float32))
        p.pair(p.node("Gemm", [x, p.weight([8, columns]), c], **attributes), 0.1, output="y")
        p.output("y")

    return build


def with_constant(operator, shape, constant, first=False, quantized=False, low=0.5):
    """Arithmetic with a broadcast constant, float or quantized, without numbers near zero."""

    def build(p):
        x = p.pair(p.input("x", shape))
        values = (p.random.choice([-1, 1], constant) * (low + p.random.random(constant))).astype(np.float32)
        c = p.constant(values)
        if quantized:
            scale, zero = np.float32(0.015), np.uint8(128)
            integers = np.clip(np.rint(values / scale) + zero, 0, 255).astype(np.uint8)
            c = p.dq(p.constant(integers), scale, zero)
        p.pair(p.node(operator, [c, x] if first else [x, c]), 0.05, 120, output="y")
        p.output("y")

    return build


def joined(p):
    """Constant positions concatenated in front of a value, as in a vision transformer."""
    x = p.pair(p.input("x", [1, 6, 8]))
    c = p.constant(p.random.standard_normal([1, 1, 8]).astype(np.float32))
    p.pair(p.node("Concat", [c, x], axis=1), 0.03, 100, output="y")
    p.output("y")


def resized(shape, coordinates, rounding="round_prefer_floor", scales=None, sizes=None, **attributes):
    more = [None, None if scales is None else np.array(scales, np.float32)]
    if sizes is not None:
        more.append(np.array(sizes))
    given = {"mode": "nearest", "coordinate_transformation_mode": coordinates, "nearest_mode": rounding, **attributes}
    return of_one("Resize", shape, more, **given)


def transposed(shape, weight, per_channel=True, **attributes):
    return convolution(shape, weight, per_channel, transposed=True, **attributes)


def deep_product(p):
    """Its sums exceed 32 bits if the whole image has the largest value."""
    depth = 70_000
    x = p.pair(p.input("x", [1, 4, depth]), 0.01, 0)
    w = p.dq(p.constant(np.full([depth, 3], 127, np.int8)), 0.0001, 0, np.int8)
    p.pair(p.node("MatMul", [x, w]), 20, 0, output="y")
    p.output("y")


def softmax(shape, axis):
    """Of opset 12: over all axes from one on."""

    def build(p):
        p.pair(p.node("Softmax", [p.pair(p.input("x", shape))], axis=axis), 1 / 255, 0, output="y")
        p.output("y")

    return build


# Name: (model, the operators that run in float).
MODELS = {
    "Gemm, a bias each row": (gemm(5, [5, 1]), ("Gemm",)),
    "Gemm, a bias each column": (gemm(5, [1, 5]), ()),
    "Gemm, a bias for all": (gemm(5, [1, 1]), ()),
    "Gemm, a bias each place": (gemm(5, [5, 5]), ("Gemm",)),
    "Gemm of one column": (gemm(5, [5, 1], columns=1), ("Gemm",)),
    "Add each row": (with_constant("Add", [5, 5], [5, 1]), ()),
    "Mul each row": (with_constant("Mul", [5, 5], [5, 1]), ()),
    "Mul each row, quantized": (with_constant("Mul", [5, 5], [5, 1], quantized=True), ()),
    "Mul each channel": (with_constant("Mul", [2, 5, 4, 4], [5, 1, 1]), ()),
    "Mul each column": (with_constant("Mul", [2, 3, 5], [5]), ()),
    "Add to channels and rows": (with_constant("Add", [2, 5, 4, 3], [1, 5, 4, 1]), ()),
    "Sub from each channel": (with_constant("Sub", [1, 5, 4, 4], [1, 5, 1, 1], first=True), ()),
    "Div each channel": (with_constant("Div", [1, 5, 4, 4], [1, 5, 1, 1]), ()),
    "Div each channel, quantized": (with_constant("Div", [1, 5, 4, 4], [1, 5, 1, 1], quantized=True), ()),
    "PRelu each channel": (with_constant("PRelu", [2, 5, 4, 4], [5, 1, 1]), ()),
    "PRelu each column": (with_constant("PRelu", [3, 5], [5]), ()),
    "PRelu each row of pixels": (with_constant("PRelu", [1, 5, 4, 4], [4, 1]), ("PRelu",)),
    "Pow by a whole number": (of_one("Pow", [2, 3, 4], [np.int64(3)], into=(0.1, 128)), ()),
    "Concat with floats": (joined, ()),
    "Slice backwards of nothing": (of_one("Slice", [0, 3], [np.array([-1]), np.array([-99]), np.array([0]), np.array([-1])]), ()),
    "Slice backwards from before the front": (of_one("Slice", [5, 3], [np.array([-99]), np.array([-100]), np.array([0]), np.array([-1])]), ()),
    "Pad of named axes": (of_one("Pad", [1, 4, 5, 6], [np.array([1, 2, 0, 1]), None, np.array([2, -1])]), ()),
    "Pad of named axes, wrapped": (of_one("Pad", [1, 4, 5, 6], [np.array([-2, 3]), None, np.array([-1])], mode="wrap"), ()),
    "Pad reflected and cut": (of_one("Pad", [1, 2, 5, 5], [np.array([0, 0, -1, 2, 0, 0, 2, -2])], mode="reflect"), ()),
    "Resize by a tenth": (resized([1, 1, 1, 20], "asymmetric", "floor", scales=[1, 1, 1, 0.1]), ()),
    "Resize to 48 of 20": (resized([1, 2, 3, 20], "asymmetric", "floor", sizes=[1, 2, 3, 48]), ()),
    "Resize to 48 of 20, halves up": (resized([1, 2, 10, 20], "asymmetric", "round_prefer_ceil", sizes=[1, 2, 48, 48]), ()),
    "Resize to 83 of 14": (resized([1, 2, 14, 26], "half_pixel", sizes=[1, 2, 83, 53]), ()),
    "Resize to 71 of 28, halves up": (resized([1, 2, 28, 22], "pytorch_half_pixel", "round_prefer_ceil", sizes=[1, 2, 71, 47]), ()),
    "Resize up, aligned": (resized([1, 2, 7, 5], "align_corners", "ceil", sizes=[1, 2, 33, 9]), ()),
    "Resize by scales that change nothing": (resized([1, 2, 2, 7], "half_pixel", "floor", scales=[1, 1, 1.3, 1.1]), ()),
    "Resize by a scale that changes nothing": (resized([1, 2, 2, 7], "half_pixel", "floor", scales=[1, 1, 1.3, 2]), ()),
    "Resize of named axes": (resized([1, 3, 4, 5], "half_pixel", scales=[2, 1.5], axes=[2, -1]), ()),
    "Resize of named axes to sizes": (resized([1, 3, 4, 5], "asymmetric", sizes=[9, 6], axes=[3, 2]), ()),
    "Resize linear of named axes": (resized([1, 3, 4, 5], "half_pixel", scales=[2, 1.5], axes=[2, 3], mode="linear"), ()),
    "Resize to cover": (resized([1, 3, 8, 6], "half_pixel", sizes=[20, 20], axes=[2, 3], keep_aspect_ratio_policy="not_smaller"), ()),
    "Resize to fit": (resized([1, 3, 8, 6], "half_pixel", "floor", sizes=[20, 20], axes=[2, 3], keep_aspect_ratio_policy="not_larger"), ()),
    "Resize to cover in all axes": (resized([1, 3, 8, 6], "half_pixel", sizes=[1, 3, 20, 20], keep_aspect_ratio_policy="not_smaller"), ()),
    "ConvTranspose to a size": (transposed([1, 4, 8, 8], [4, 3, 3, 3], strides=[2, 2], output_shape=[16, 15]), ()),
    # Auto-padding pools ignore `pads`.
    "MaxPool with two ways to pad": (of_one("MaxPool", [1, 3, 7, 8], kernel_shape=[3, 3], strides=[2, 1], pads=[1, 0, 1, 2], auto_pad="SAME_LOWER"), ()),
    "AveragePool with two ways to pad": (of_one("AveragePool", [1, 3, 7, 8], kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad="VALID"), ()),
    "ConvTranspose to a size, VALID": (transposed([1, 4, 8, 8], [4, 3, 3, 3], strides=[2, 2], output_shape=[16, 15], auto_pad="VALID"), ()),
    "ConvTranspose to a size and more": (transposed([1, 1, 7, 11], [1, 1, 2, 2], strides=[3, 3], output_padding=[1, 2], output_shape=[20, 32]), ()),
    "ConvTranspose, a size for each group": (transposed([1, 4, 8, 8], [4, 2, 3, 3], group=2, per_channel=False, strides=[2, 2], output_padding=[1, 1], output_shape=[16, 16]), ()),
    "ConvTranspose to a size, SAME_UPPER": (transposed([1, 4, 8, 8], [4, 3, 3, 3], strides=[2, 2], output_padding=[1, 1], output_shape=[16, 16], auto_pad="SAME_UPPER"), ()),
    "ConvTranspose to a size, SAME_LOWER": (transposed([1, 4, 8, 7], [4, 3, 4, 3], strides=[2, 3], output_shape=[15, 20], auto_pad="SAME_LOWER"), ()),
    "ConvTranspose, scales that groups share": (transposed([1, 4, 8, 8], [4, 2, 3, 3], group=2, strides=[2, 2]), ()),
    "ConvTranspose in groups": (transposed([1, 6, 5, 5], [6, 2, 3, 3], group=3, per_channel=False, strides=[2, 2], kind=np.uint8, zero=120), ()),
    "ConvTranspose depthwise, zero point aside": (transposed([1, 8, 6, 6], [8, 1, 4, 4], group=8, per_channel=False, strides=[2, 2], pads=[1, 1, 1, 1], kind=np.uint8, zero=117), ()),
}  # fmt: skip

# Variants at opset 12.
OLD = {
    "Softmax of all": softmax([2, 3, 4], 0),
    "Softmax of two axes": softmax([2, 3, 4], 1),
    "Softmax of two axes, from behind": softmax([2, 5, 3, 4], -2),
    "Softmax of the last": softmax([2, 7], 1),
    "Softmax of pixels and channels": softmax([2, 5, 3, 4], 1),
}
