"""Models with elementwise selection of quantized values: Max, Min and Where, with 8 and 16 bits.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name with their float operators.
"""

import numpy as np
from onnx import TensorProto
from qdq_models import of_two


def greatest(operator, wide=False, behind=None):
    """Four inputs: values with other scales and with the output's, a float constant, a quantized
    constant.
    """
    end = (0.0002, 30_000, np.uint16) if wide else (0.03, 110, np.uint8)

    def build(p):
        a = p.pair(p.input("a", [2, 3, 4, 5]), 0.02, 120)
        b = p.pair(p.input("b", [2, 3, 4, 5]), *end)
        floats = p.constant(p.random.standard_normal([3, 1, 1]).astype(np.float32))
        integers = p.weight([4, 5], 0.01)
        y = p.node(operator, [a, b, floats, integers])
        p.pair(p.node(behind, [y]) if behind else y, *end, output="y")
        p.output("y")

    return build


def between_convolutions(p):
    """Channels last, with a value per channel and row."""
    x = p.pair(p.input("x", [1, 3, 6, 6]))
    a, b = (p.pair(p.node("Conv", [x, p.weight([8, 3, 1, 1])]), 0.04, zero) for zero in (100, 130))
    low = p.constant(p.random.standard_normal([1, 8, 6, 1]).astype(np.float32))
    y = p.pair(p.node("Max", [p.pair(p.node("Min", [a, b]), 0.04, 100), low]), 0.04, 100)
    p.pair(p.node("Conv", [y, p.weight([4, 8, 3, 3])]), 0.2, output="y")
    p.output("y")


def of_itself(p):
    """The maximum of a value and of its table is one table."""
    x = p.pair(p.input("x", [2, 30]))
    p.pair(p.node("Max", [x, p.pair(p.node("Tanh", [x]), 1 / 128)]), output="y")
    p.output("y")


def where(left=(2, 3, 4, 5), right=(2, 3, 4, 5), mask=(2, 3, 4, 5), condition="input", end=(0.03, 110), behind=None):
    """A shape stands for a value, a number for a constant, a list for a constant of that shape."""

    def build(p):
        def branch(name, given, scale, zero):
            if isinstance(given, tuple):
                return p.pair(p.input(name, list(given)), scale, zero)
            if isinstance(given, list):
                return p.weight(given, 0.02)
            return p.constant(np.float32(given))

        a, b = branch("a", left, 0.02, 120), branch("b", right, 0.03, 110)
        if condition == "input":
            c = p.input("c", list(mask), TensorProto.BOOL)
        elif condition == "constant":
            c = p.constant(p.random.integers(0, 2, mask).astype(bool))
        else:
            c = p.node("Less", [p.input("c", list(mask)), p.constant(np.float32(0.2))])
        y = p.node("Where", [c, a, b])
        p.pair(p.node(behind, [y]) if behind else y, *end, output="y")
        p.output("y")

    return build


def where_less(p):
    """Selected by a float comparison of the values, between two regions."""
    x = p.pair(p.input("x", [1, 3, 6, 6]))
    a, b = (p.pair(p.node("Conv", [x, p.weight([8, 3, 1, 1])]), 0.04, 110) for _ in "ab")
    y = p.pair(p.node("Where", [p.node("Less", [a, b]), a, b]), 0.04, 110)
    p.pair(p.node("Conv", [y, p.weight([4, 8, 3, 3])]), 0.2, output="y")
    p.output("y")


def masked_attention(p):
    """A mask sets scores to a large negative number before the Softmax."""
    a, b = p.pair(p.input("a", [2, 3, 5, 8])), p.pair(p.input("b", [2, 3, 8, 5]), 0.03, 120)
    scores = p.pair(p.node("MatMul", [a, b]), 0.1)
    mask = p.node("Cast", [p.input("mask", [2, 1, 1, 5], TensorProto.INT64)], to=TensorProto.BOOL)
    scores = p.pair(p.node("Where", [mask, scores, p.constant(np.float32(-12))]), 0.1, 130)
    p.pair(p.node("Softmax", [scores]), 1 / 255, 0, output="y")
    p.output("y")


WIDE = (0.0002, 30_000, np.uint16)

MODELS = {
    "Max": (of_two("Max", [2, 3, 4, 4], [2, 3, 4, 4]), ()),
    "Min spread": (of_two("Min", [2, 3, 4, 4], [3, 1, 1]), ()),
    "Max both ways": (of_two("Max", [2, 1, 4, 1], [2, 3, 1, 5]), ()),
    "Min of nothing": (of_two("Min", [0, 4], [0, 4]), ()),
    "Max of four": (greatest("Max"), ()),
    "Min of four, Relu": (greatest("Min", behind="Relu"), ()),
    "Max of four into 16 bits": (greatest("Max", wide=True), ()),
    "Min of four into 16 bits": (greatest("Min", wide=True), ()),
    "Max between convolutions": (between_convolutions, ()),
    "Max of itself": (of_itself, ()),
    "Where": (where(), ()),
    "Where spread": (where((2, 3, 4, 1), (5,), (2, 1, 1, 5)), ()),
    "Where, Relu": (where(behind="Relu"), ()),
    "Where of a constant": (where(right=[3, 1, 1]), ()),
    "Where of a number": (where(left=-0.7, mask=(1, 1, 4, 5)), ()),
    "Where of a number beyond the scale": (where(right=-1e4), ()),
    "Where of constants": (where(left=[4, 5], right=-0.7), ("Where",)),
    "Where by a constant": (where(condition="constant", mask=(4, 5)), ()),
    "Where by what is computed in float": (where(condition="Less"), ("Less",)),
    "Where into 16 bits": (where(end=WIDE), ()),
    "Where of a number into 16 bits": (where(left=0.3, end=WIDE, mask=(3, 1, 5), condition="Less"), ("Less",)),
    "Where without end into 16 bits": (where(left=-np.inf, end=WIDE), ("Where",)),
    "Where by a comparison": (where_less, ("Less",)),
    "masked attention": (masked_attention, ("Cast",)),
}  # fmt: skip
