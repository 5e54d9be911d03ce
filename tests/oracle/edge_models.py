"""Models of QuantizeLinear/DequantizeLinear pairs at the edges of what operators say: shapes that fit by chance, images that are
resized by odd amounts, transposed convolutions of a given size, constants that are spread.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name.
"""

import numpy as np
from pair_models import of_one


# Name: (model, the operators that run in float).
MODELS = {
    "Slice backwards of nothing": (of_one("Slice", [0, 3], [np.array([-1]), np.array([-99]), np.array([0]), np.array([-1])]), ()),
}  # fmt: skip
