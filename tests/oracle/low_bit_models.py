"""QDQ models with fewer bits than their type, clipped inside the pair as Brevitas writes them, or
with 4-bit types.

Each is a function that builds in a `Pairs`; `MODELS` lists them by name, with the operators that stay float.
"""

import numpy as np
from onnx import TensorProto, helper
from qdq_models import Pairs


class Few(Pairs):
    """Pairs with some number of bits: 4-bit types, or clipped."""

    def __init__(self, seed, typed, bits=4):
        super().__init__(seed, opset=21)
        self.typed, self.bits = typed, bits

    def ends(self, signed):
        return (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if signed else (0, (1 << self.bits) - 1)

    def point(self, zero, signed):
        if not self.typed:
            return self.constant(np.array(zero, np.int8 if signed else np.uint8))
        kind = TensorProto.INT4 if signed else TensorProto.UINT4
        name = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, kind, [], [zero]))
        return name

    def few(self, value, scale, zero=0, signed=True, output=None):
        scale, zero = self.constant(np.float32(scale)), self.point(zero, signed)
        q = self.node("QuantizeLinear", [value, scale, zero])
        if not self.typed:
            q = self.node("Clip", [q, *(self.constant(np.array(end, np.int8 if signed else np.uint8)) for end in self.ends(signed))])
        return self.node("DequantizeLinear", [q, scale, zero], output)

    def few_weight(self, shape, scale=0.0873):
        """8-bit integers after a Clip that changes some of them."""
        values = self.constant(self.random.integers(-12, 12, shape).astype(np.int8))
        ends = [self.constant(np.int8(end)) for end in self.ends(True)]
        zeros = self.constant(np.zeros(np.shape(scale), np.int8))
        return self.node("DequantizeLinear", [self.node("Clip", [values, *ends]), self.constant(np.asarray(scale, np.float32)), zeros], axis=0)


def network(p):
    """Products, a residual, pooling and a head, signed and unsigned."""
    x = p.few(p.input("x", [1, 4, 10, 10]), 0.317)
    y = p.few(p.node("Relu", [p.node("Conv", [x, p.few_weight([6, 4, 3, 3])], pads=[1, 1, 1, 1])]), 0.4139, signed=False)
    z = p.few(p.node("Conv", [y, p.few_weight([6, 6, 1, 1], 0.05 + 0.1 * p.random.random(6))]), 0.5371, 7, signed=False)
    y = p.few(p.node("Add", [y, z]), 0.6113, 3, signed=False)
    y = p.few(p.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2]), 0.6113, 3, signed=False)
    y = p.few(p.node("Concat", [y, p.few(p.node("Tanh", [y]), 0.1437)], axis=1), 0.5213)
    y = p.few(p.node("GlobalAveragePool", [y]), 0.0713)
    p.few(p.node("Gemm", [p.node("Flatten", [y]), p.few_weight([5, 12])], transB=1), 0.0891, output="y")
    p.output("y")


def clamps(p):
    """A Clip of floats and a Relu, in a row."""
    y = p.node("Conv", [p.few(p.input("x", [1, 4, 6, 6]), 0.3), p.few_weight([6, 4, 1, 1])])
    y = p.node("Clip", [y, p.constant(np.float32(-2)), p.constant(np.float32(1.2))])
    p.few(p.node("Relu", [y]), 0.1, 2, signed=False, output="y")
    p.output("y")


def read_in_float(p):
    x = p.few(p.input("x", [1, 4, 6, 6]), 0.3)
    p.node("CumSum", [x, p.constant(np.int64(1))], "z")
    p.output("z")
    p.few(p.node("Sigmoid", [x]), 0.07, 1, signed=False, output="y")
    p.output("y")


# Name: (model, the operators that run in float).
MODELS = {"network": (network, ()), "clamps in a row": (clamps, ()), "read in float": (read_in_float, ("CumSum",))}
