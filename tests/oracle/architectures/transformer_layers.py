"""Layers of transformers, written out as PyTorch's exporter writes them in opset 17.

They take and give names of values. A `spread` gives the standard deviation of a layer's weights
from its numbers of inputs and outputs.
"""

import math

import numpy as np
from onnx import TensorProto

from .shape_arithmetic import reshape

LAST = np.iinfo(np.int64).max  # PyTorch's end of a range without one
MASKED = np.finfo(np.float32).min  # added to the score of what must not be attended to


def fixed(inputs, outputs):
    """The usual rule for transformers: the same at every width."""
    return 0.02


def lecun(inputs, outputs):
    """Keeps the variance of the activations."""
    return 1 / math.sqrt(inputs)


def xavier(inputs, outputs):
    """Between keeping the variance of the activations and that of the gradients."""
    return math.sqrt(2 / (inputs + outputs))


def number(network, value):
    """A float scalar."""
    return network.constant(value, np.float32)


def add(network, one, other):
    return network.node("Add", [one, other])


def take(network, x, index, axis):
    """One entry of an axis, which goes."""
    return network.node("Gather", [x, network.constant(index)], {"axis": axis})


def part(network, x, axis, start, end=LAST, step=1):
    """A range of an axis."""
    return network.node(
        "Slice", [x, *(network.constant([one]) for one in (start, end, axis, step))]
    )


def transpose(network, x, *axes):
    return network.node("Transpose", [x], {"perm": axes})


def channels_last(network, x):
    return transpose(network, x, 0, 2, 3, 1)


def channels_first(network, x):
    return transpose(network, x, 0, 3, 1, 2)


def cast(network, x, dtype=TensorProto.FLOAT, times=1):
    """The exporter leaves in casts to the type that a value has already."""
    for _ in range(times):
        x = network.node("Cast", [x], {"to": dtype})
    return x


def linear(network, x, inputs, outputs, name, spread=fixed):
    return network.linear(x, inputs, outputs, std=spread(inputs, outputs), name=name)


def layer_norm(network, x, width, name, epsilon):
    scale = network.weight(f"{name}.weight", [width], 0.1, 1.0)
    shift = network.weight(f"{name}.bias", [width], 0.02)
    attributes = {"axis": -1, "epsilon": epsilon}
    return network.node(
        "LayerNormalization", [x, scale, shift], attributes, name=f"{name}/LayerNormalization"
    )


def relu(network, x):
    return network.node("Relu", [x])


def gelu(network, x):
    """x · (erf(x / √2) + 1) / 2."""
    erf = network.node("Erf", [network.node("Div", [x, number(network, 2**0.5)])])
    gated = network.node("Mul", [x, add(network, erf, number(network, 1))])
    return network.node("Mul", [gated, number(network, 0.5)])


def feed_forward(network, x, layers, activation, spread=fixed):
    """Linear layers, an activation between them; `layers` maps names to inputs and outputs."""
    for index, (name, (inputs, outputs)) in enumerate(layers.items()):
        x = activation(network, x) if index else x
        x = linear(network, x, inputs, outputs, name, spread)
    return x


def attend(network, query, key, value, scale, mask=None, casts=0):
    """softmax(query · key · scale + mask) · value; the key's last two axes are swapped already.

    `scale` is an operator and its number: ("Mul", 0.125), ("Div", 8).
    """
    operator, factor = scale
    scores = network.node("MatMul", [query, key])
    scores = network.node(operator, [scores, number(network, factor)])
    if mask is not None:
        scores = add(network, scores, mask)
    weights = cast(network, network.node("Softmax", [scores], {"axis": -1}), times=casts)
    return network.node("MatMul", [weights, value])


def heads_first(network, query, key, value):
    """From [batch, length, head, channel] to the axes that `attend` wants."""
    return (
        transpose(network, query, 0, 2, 1, 3),
        transpose(network, key, 0, 2, 3, 1),
        transpose(network, value, 0, 2, 1, 3),
    )


class MultiHeadAttention:
    """Attention with a linear layer each for query, key, value and result.

    `names` are theirs. `outer` is the width of what comes in, `inner` that of all heads together;
    `scale` and `casts` are those of `attend`.
    """

    def __init__(self, names, outer, inner, scale, casts=0, spread=fixed):
        self.names, self.outer, self.inner = names, outer, inner
        self.scale, self.casts, self.spread = scale, casts, spread

    def __call__(self, network, query, key, value, query_shape, key_shape, result_shape, mask=None):
        """`query_shape` and `key_shape` split the heads, `result_shape` joins them."""
        values = [(query, query_shape), (key, key_shape), (value, key_shape)]
        split = [
            reshape(network, linear(network, x, self.outer, self.inner, name, self.spread), shape)
            for (x, shape), name in zip(values, self.names)
        ]
        result = attend(network, *heads_first(network, *split), self.scale, mask, self.casts)
        result = reshape(network, transpose(network, result, 0, 2, 1, 3), result_shape)
        return linear(network, result, self.inner, self.outer, self.names[-1], self.spread)
