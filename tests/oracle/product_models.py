"""Products of two values and matrix-vector products with quantized or float results.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name, with the operators that stay float.
"""

import numpy as np
from onnx import TensorProto


def of_two(left, right, end=None, kind=np.uint8):
    """The end: None for floats, else scale and zero point, and their type."""

    def build(p):
        middle = 120 if kind == np.uint8 else -3
        a, b = p.pair(p.input("a", left), 0.02, middle, kind), p.pair(p.input("b", right), 0.03, middle + 9, kind)
        y = p.node("MatMul", [a, b], None if end else "y")
        if end:
            p.pair(y, *end, output="y")
        p.output("y")

    return build


def by_constant(left, right, end=None, first=False, bias=None, kind=np.int8):
    def build(p):
        x, w = p.pair(p.input("x", left)), p.weight(right, kind=kind, zero=0 if kind == np.int8 else 117, low=-100 if kind == np.int8 else 0, high=100)
        y = p.node("MatMul", [w, x] if first else [x, w])
        if bias is not None:
            y = p.node("Add", [y, p.constant(p.random.standard_normal(bias).astype(np.float32))])
        p.pair(y, *end, output="y") if end else p.node("Identity", [y], "y")
        p.output("y")

    return build


WIDE = (0.0004, 30_000, np.uint16)


def wide(left, right, end=(0.05, 120), both=True):
    """Two values of 16 bits, or one with 8; the end as above."""

    def build(p):
        a, b = p.pair(p.input("a", left), *WIDE), p.pair(p.input("b", right), *((0.0003, -4000, np.int16) if both else (0.03, 120)))
        y = p.node("MatMul", [a, b] if both is not None else [b, a], None if end else "y")
        if end:
            p.pair(y, *end, output="y")
        p.output("y")

    return build


def gemm(left, right, bias=None, end=(0.1, 110), kind=(0.02, 120), constant=False, **attributes):
    """Two values, or with weights; the bias is a float constant."""

    def build(p):
        a = p.pair(p.input("a", left), *kind)
        b = p.weight(right) if constant else p.pair(p.input("b", right), 0.03, 130)
        c = [] if bias is None else [p.constant(p.random.standard_normal(bias).astype(np.float32))]
        y = p.node("Gemm", [a, b, *c], None if end else "y", **attributes)
        if end:
            p.pair(p.node("Relu", [y]), *end, output="y")
        p.output("y")

    return build


def wide_attention(p):
    """Queries, keys, scores and weights of 16 bits."""
    x = p.pair(p.input("x", [2, 3, 7, 8]), *WIDE)
    turned = p.pair(p.node("Transpose", [x], perm=[0, 1, 3, 2]), *WIDE)
    scores = p.pair(p.node("MatMul", [x, turned]), 0.001, 20_000, np.uint16)
    weights = p.pair(p.node("Softmax", [scores]), 1 / 65_535, 0, np.uint16)
    p.pair(p.node("MatMul", [weights, x]), 0.03, output="y")
    p.output("y")


def attention(p):
    """Pairs only at the inputs of products, as NVIDIA's and Intel's tools write them."""
    heads, size = 3, 8
    x = p.pair(p.input("x", [2, 5, heads * size]), 0.02, 0, np.int8)
    parts = []
    for perm in [0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]:
        scale = 0.004 + 0.004 * p.random.random(heads * size)
        part = p.node("MatMul", [x, p.weight([heads * size, heads * size], scale, axis=1)])
        part = p.node("Add", [part, p.constant(p.random.standard_normal(heads * size).astype(np.float32))])
        part = p.node("Reshape", [part, p.constant(np.array([0, 0, heads, size]))])
        parts.append(p.pair(p.node("Transpose", [part], perm=perm), 0.03, 0, np.int8))
    scores = p.node("Div", [p.node("MatMul", parts[:2]), p.constant(np.float32(size**0.5))])
    mask = p.constant(np.where(np.arange(5) < 4, 0, -1e4).astype(np.float32))
    weights = p.node("Softmax", [p.node("Add", [scores, mask])], axis=-1)
    y = p.node("MatMul", [p.pair(weights, 1 / 127, 0, np.int8), parts[2]])
    y = p.node("Reshape", [p.node("Transpose", [y], perm=[0, 2, 1, 3]), p.constant(np.array([0, 0, heads * size]))])
    p.node("MatMul", [p.pair(y, 0.03, 0, np.int8), p.weight([heads * size, 7])], "y")
    p.output("y")


def added(p):
    """Its float result and another value, quantized together."""
    a, b, c = (p.pair(p.input(name, [2, 4, 4]), scale) for name, scale in [("a", 0.02), ("b", 0.03), ("c", 0.04)])
    p.pair(p.node("Add", [c, p.node("MatMul", [a, b])]), 0.05, output="y")
    p.output("y")


def read_twice(p):
    """Products that are read in float, and quantized."""
    a, b = p.pair(p.input("a", [3, 4])), p.pair(p.input("b", [4, 5]))
    product = p.node("MatMul", [a, b])
    p.pair(product, 0.05, output="y")
    p.node("CumSum", [product, p.constant(np.int64(0))], "z")
    p.output("y")
    p.output("z")


def as_operator(left, right, constant=False):
    """QLinearMatMul."""

    def build(p):
        scale, zero = lambda s: p.constant(np.float32(s)), lambda z: p.constant(np.uint8(z))
        a = [p.q(p.input("a", left), 0.02, 120), scale(0.02), zero(120)]
        given = p.constant(p.random.integers(0, 256, right).astype(np.uint8)) if constant else p.q(p.input("b", right), 0.03, 140)
        b = [given, scale(0.03), zero(140)]
        p.node("QLinearMatMul", [*a, *b, scale(0.05), zero(100)], "y")
        p.output("y", TensorProto.UINT8)

    return build


BYTES, WORDS = (0.05, 110), (0.0004, 30000, np.uint16)
# Name: (model, the operators that run in float).
MODELS = {
    "two of 16 bits": (wide([2, 5, 40], [40, 6]), ("MatMul",)),
    "two of 16 bits into 16": (wide([2, 1, 4, 9], [3, 9, 5], WIDE[:1] + (100, np.uint16)), ("MatMul",)),
    "two of 16 bits in floats": (wide([5, 300], [300, 6], None), ("MatMul",)),
    "16 bits by 8": (wide([2, 5, 40], [2, 40, 6], both=False), ()),
    "8 bits by 16": (wide([40, 6], [5, 40], None, both=None), ()),
    "attention of 16 bits": (wide_attention, ("MatMul", "MatMul")),
    "Gemm of two": (gemm([4, 9], [9, 5]), ()),
    "Gemm of two, turned": (gemm([9, 4], [5, 9], [5], transA=1, transB=1, alpha=0.4, beta=1.7), ()),
    "Gemm of two in floats": (gemm([9, 4], [9, 5], [1, 5], None, transA=1), ()),
    "Gemm of 16 bits and 8": (gemm([9, 4], [5, 9], [1], kind=WIDE, transA=1, transB=1), ()),
    "Gemm of two, a bias each row": (gemm([4, 9], [9, 5], [4, 1]), ("Gemm", "Relu")),
    "Gemm with weights, turned": (gemm([9, 4], [9, 5], [5], constant=True, transA=1), ()),
    "Gemm of 16 bits with weights, turned": (gemm([9, 4], [5, 9], kind=WIDE, constant=True, transA=1, transB=1), ()),
    "in floats": (of_two([3, 70], [70, 9]), ()),
    "signed": (of_two([2, 3, 7], [2, 7, 9], kind=np.int8), ()),
    "into 16 bits": (of_two([2, 3, 7], [2, 7, 9], WORDS), ()),
    "stacks": (of_two([2, 3, 4, 6], [2, 3, 6, 5]), ()),
    "stacks spread": (of_two([2, 1, 4, 6], [3, 6, 5]), ()),
    "stacks spread both ways": (of_two([2, 1, 3, 4, 6], [5, 1, 6, 2], BYTES), ()),
    "one matrix for all": (of_two([4, 6], [2, 3, 6, 5], BYTES), ()),
    "vector first": (of_two([6], [6, 5]), ()),
    "vector first, stacked": (of_two([6], [3, 6, 5], BYTES), ()),
    "vector second": (of_two([4, 6], [6]), ()),
    "vector second, stacked": (of_two([2, 4, 6], [6], BYTES), ()),
    "two vectors": (of_two([9], [9]), ()),
    "two vectors in bytes": (of_two([9], [9], BYTES), ()),
    "constant vector": (by_constant([2, 4, 6], [6]), ()),
    "constant vector in bytes": (by_constant([4, 6], [6], BYTES), ()),
    "constant vector unsigned": (by_constant([4, 6], [6], BYTES, kind=np.uint8), ()),
    "constant vector with a bias": (by_constant([3, 6], [6], BYTES, bias=[1]), ()),
    "constant vector with a bias of rows": (by_constant([3, 6], [6], BYTES, bias=[3]), ()),
    "constant vector and vector": (by_constant([6], [6], BYTES), ()),
    "constant vector first": (by_constant([6, 4], [6], first=True), ()),
    "vector by constant": (by_constant([6], [6, 4], BYTES, bias=[4]), ()),
    "constant stack": (by_constant([2, 3, 6], [2, 6, 4]), ()),
    "constant first": (by_constant([2, 6, 4], [3, 6], first=True), ()),
    "attention": (attention, ("Add", "Div", "Softmax")),
    "added": (added, ()),
    "read twice": (read_twice, ("CumSum",)),
    "QLinearMatMul stacks": (as_operator([2, 1, 4, 6], [3, 6, 5]), ()),
    "QLinearMatMul vector first": (as_operator([6], [6, 5]), ()),
    "QLinearMatMul vector second": (as_operator([2, 4, 6], [6]), ()),
    "QLinearMatMul constant vector": (as_operator([4, 6], [6], True), ()),
    "QLinearMatMul vectors": (as_operator([6], [6], True), ()),
}  # fmt: skip
