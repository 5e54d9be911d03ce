"""ViT-B/16 (Dosovitskiy et al., 2020, "An Image is Worth 16x16 Words").

Attention is PyTorch's `MultiheadAttention` with one layer for query, key and value, as the exporter
takes it apart: sequence first, and the square root of the scale on both sides of the first product.
"""

import numpy as np

from .network import Network
from .shape_arithmetic import expand, reshape
from .transformer_layers import (
    LAST,
    add,
    cast,
    feed_forward,
    gelu,
    layer_norm,
    take,
    transpose,
    xavier,
)

SIDE, PATCH, WIDTH, HIDDEN, DEPTH, HEADS, CLASSES = 224, 16, 768, 3072, 12, 12, 1000
PATCHES = (SIDE // PATCH) ** 2
LENGTH = PATCHES + 1  # with the class token
CHANNELS = WIDTH // HEADS
EPSILON = 1e-6


def vit_b_16():
    """Twelve layers on 196 patches of 16×16 pixels and a class token."""
    network = Network("vit_b_16")
    x = network.input("pixel_values", [1, 3, SIDE, SIDE])
    x = network.conv(x, 3, WIDTH, PATCH, stride=PATCH, padding=0, gain=1.0, name="conv_proj")
    x = transpose(network, reshape(network, x, [1, WIDTH, PATCHES]), 0, 2, 1)
    token = expand(network, network.weight("class_token", [1, 1, WIDTH], 0.02), [1, -1, -1])
    x = network.node("Concat", [token, x], {"axis": 1})
    x = add(network, x, network.weight("pos_embedding", [1, LENGTH, WIDTH], 0.02))
    # Training starts from zero here in all layers, and the exporter writes equal tensors once.
    bias = network.parameter("in_proj_bias", np.zeros(3 * WIDTH, np.float32))
    for index in range(DEPTH):
        with network.scope(f"layers.{index}"):
            x = layer(network, x, network.node("Identity", [bias]) if index else bias)
    x = layer_norm(network, x, WIDTH, "ln", EPSILON)
    x = take(network, x, 0, 1)
    x = network.gemm(x, WIDTH, CLASSES, std=0.02, bias_std=0.02, name="head")
    network.output(x, "logits", [1, CLASSES])
    return network.finish()


def layer(network, x, bias):
    attended = self_attention(network, layer_norm(network, x, WIDTH, "ln_1", EPSILON), bias)
    x = add(network, attended, x)
    y = layer_norm(network, x, WIDTH, "ln_2", EPSILON)
    y = feed_forward(network, y, {"mlp.0": (WIDTH, HIDDEN), "mlp.3": (HIDDEN, WIDTH)}, gelu, xavier)
    return add(network, x, y)


def self_attention(network, x, bias):
    with network.scope("self_attention"):
        x = transpose(network, x, 1, 0, 2)
        weight = network.weight("in_proj.weight", [WIDTH, 3 * WIDTH], xavier(WIDTH, 3 * WIDTH))
        x = add(network, bias, network.node("MatMul", [x, weight]))
        x = network.node("Unsqueeze", [unflatten(network, x), network.constant([0])])
        x = network.node("Squeeze", [transpose(network, x, 3, 1, 2, 0, 4), network.constant([3])])
        parts = [take(network, x, index, 0) for index in range(3)]
        parts = [
            transpose(network, reshape(network, part, [LENGTH, HEADS, CHANNELS]), 1, 0, 2)
            for part in parts
        ]
        query, key, value = (reshape(network, part, [1, HEADS, LENGTH, CHANNELS]) for part in parts)
        scale = scale_of(network, query)
        query = network.node("Mul", [query, network.node("Sqrt", [scale])])
        key = network.node(
            "Mul", [transpose(network, key, 0, 1, 3, 2), network.node("Sqrt", [scale])]
        )
        weights = network.node("Softmax", [network.node("MatMul", [query, key])], {"axis": -1})
        x = transpose(network, network.node("MatMul", [weights, value]), 2, 0, 1, 3)
        x = reshape(network, x, [LENGTH, WIDTH])
        x = network.gemm(x, WIDTH, WIDTH, std=(3 * WIDTH) ** -0.5, bias_std=0.02, name="out_proj")
        return transpose(network, reshape(network, x, [LENGTH, 1, WIDTH]), 1, 0, 2)


def unflatten(network, x):
    """Three times the width becomes two axes, at a place that the graph computes."""
    axis = network.node("Mod", [network.constant([2]), network.constant([3])])
    shape = network.node("Shape", [x])
    before = network.node("Slice", [shape, network.constant([0]), reshape(network, axis, [1])])
    place = reshape(network, add(network, axis, network.constant([1])), [1])
    after = network.node("Slice", [shape, place, network.constant([LAST])])
    shape = network.node("Concat", [before, network.constant([3, WIDTH]), after], {"axis": 0})
    return network.node("Reshape", [x, shape])


def scale_of(network, query):
    """1 / √channels, from the shape of the query."""
    ends = network.constant([-1]), network.constant([LAST])
    channels = cast(network, network.node("Slice", [network.node("Shape", [query]), *ends]))
    one = network.constant([1], np.float32)
    return cast(network, network.node("Div", [one, network.node("Sqrt", [channels])]))
