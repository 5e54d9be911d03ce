"""Arithmetic on sizes, as an exporter leaves it in a graph.

A size is an int where the trace knew it, or the name of a scalar that the graph reads off a value.
"""

import numpy as np
from onnx import TensorProto, numpy_helper


def size(network, x, axis):
    """The size of an axis, read from the value."""
    return network.node("Gather", [network.node("Shape", [x]), network.constant(axis)], {"axis": 0})


def vector(network, sizes):
    """Sizes beside each other; one constant where the trace knew all of them."""
    if known(sizes):
        return network.constant(list(sizes))
    return network.node("Concat", [entry(network, one) for one in sizes], {"axis": 0})


def entry(network, size):
    """One size as a vector."""
    if isinstance(size, int):
        return network.constant([size])
    return network.node("Unsqueeze", [size, network.constant([0])])


def known(sizes):
    return all(isinstance(one, int) for one in sizes)


def reshape(network, x, sizes):
    return network.node("Reshape", [x, vector(network, sizes)])


def expand(network, x, sizes):
    """PyTorch's `expand`: −1 keeps an axis as it is."""
    target = vector(network, sizes)
    if known(sizes):
        axes = network.constant([len(sizes)])
    else:
        target = network.node("Reshape", [target, network.constant([-1])])
        axes = network.node("Shape", [target])
    ones = filled(network, axes, 1)
    keeps = network.node("Equal", [target, network.node("Mul", [ones, network.constant(-1)])])
    return network.node("Expand", [x, network.node("Where", [keeps, ones, target])])


def filled(network, shape, number, dtype=np.int64):
    """A tensor of one number, of a shape in the graph."""
    value = numpy_helper.from_array(np.asarray([number], dtype))
    return network.node("ConstantOfShape", [shape], {"value": value})


def flatten_from(network, x, axis):
    """All axes from this one on become one; the sizes before it are read off the value."""
    before = network.node(
        "Slice", [network.node("Shape", [x]), *map(network.constant, ([0], [axis], [0]))]
    )
    return network.node(
        "Reshape", [x, network.node("Concat", [before, network.constant([-1])], {"axis": 0})]
    )


class Known:
    """A trace with fixed shapes: ints in, ints out."""

    def sizes(self, x, axes, known):
        """The sizes of these axes of a value, of which it is known what they are."""
        return known

    def add(self, one, other):
        return one + other

    def multiply(self, one, other):
        return one * other

    def divide(self, one, other):
        return one // other

    def lacking(self, size, multiple):
        """The least that makes `size` a multiple when it is added."""
        return -size % multiple


class Traced:
    """A trace that kept its arithmetic: a node for each operation, even on numbers that it knew."""

    def __init__(self, network):
        self.network = network

    def sizes(self, x, axes, known):
        return [size(self.network, x, axis) for axis in axes]

    def add(self, one, other):
        return self._node("Add", one, other)

    def multiply(self, one, other):
        return self._node("Mul", one, other)

    def divide(self, one, other):
        quotient = self._node("Div", one, other)
        for _ in range(2):
            quotient = self.network.node("Cast", [quotient], {"to": TensorProto.INT64})
        return quotient

    def lacking(self, size, multiple):
        opposite = -size if isinstance(size, int) else self.network.node("Neg", [size])
        return self._node("Mod", opposite, multiple)

    def _node(self, operator, *operands):
        scalars = [self.network.constant(one) if isinstance(one, int) else one for one in operands]
        return self.network.node(operator, scalars)
