"""Models of QuantizeLinear/DequantizeLinear pairs at the edges of what operators say: shapes that fit by chance, images that are
resized by odd amounts, transposed convolutions of a given size, constants that are spread.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name.
"""

import numpy as np
from pair_models import of_one


def gemm(rows, bias, columns=5, **attributes):
    """The bias in floats, of any shape that spreads."""

    def build(p):
        x = p.pair(p.input("x", [rows, 8]))
        c = p.constant((3 * p.random.standard_normal(bias)).astype(np.float32))
        p.pair(p.node("Gemm", [x, p.weight([8, columns]), c], **attributes), 0.1, output="y")
        p.output("y")

    return build


# Name: (model, the operators that run in float).
MODELS = {
    "Gemm, a bias each row": (gemm(5, [5, 1]), ("Gemm",)),
    "Gemm, a bias each column": (gemm(5, [1, 5]), ()),
    "Gemm, a bias for all": (gemm(5, [1, 1]), ()),
    "Gemm, a bias each place": (gemm(5, [5, 5]), ("Gemm",)),
    "Gemm of one column": (gemm(5, [5, 1], columns=1), ("Gemm",)),
    "Slice backwards of nothing": (of_one("Slice", [0, 3], [np.array([-1]), np.array([-99]), np.array([0]), np.array([-1])]), ()),
}  # fmt: skip
