"""DETR (Carion et al., 2020, "End-to-End Object Detection with Transformers") on a ResNet-50.

The exporter left in how the masks are made of the pixels that are there, and how sizes are read off
values, though all pixels are there and all sizes known.
"""

import math

import numpy as np
from onnx import TensorProto

from .network import NEAREST, Network
from .resnet import EXPANSION, WIDTHS, backbone
from .shape_arithmetic import expand, filled, flatten_from, size
from .transformer_layers import (
    MASKED,
    MultiHeadAttention,
    add,
    cast,
    feed_forward,
    layer_norm,
    linear,
    number,
    part,
    relu,
    take,
    transpose,
)

HIGH, WIDE, STRIDE = 480, 640, 32
ROWS, COLUMNS = HIGH // STRIDE, WIDE // STRIDE
PLACES = ROWS * COLUMNS
WIDTH, HIDDEN, HEADS, DEPTH = 256, 2048, 8, 6
CHANNELS = WIDTH // HEADS
QUERIES, CLASSES = 100, 3
EPSILON = 1e-5


def detr_resnet50():
    """A hundred boxes and their classes from the last map of the backbone."""
    network = Network("detr_resnet50")
    x = network.input("pixel_values", [1, 3, HIGH, WIDE])
    with network.scope("backbone"):
        x = backbone(network, x, frozen_norm=True)[-1]
        pixels = pixels_there(network)
    x = network.conv(x, WIDTHS[-1] * EXPANSION, WIDTH, 1, std=0.02, name="input_projection")
    x = transpose(network, flatten_from(network, x, 2), 0, 2, 1)
    with network.scope("position_embedding"):
        places = positions(network, pixels)
    pixels = cast(network, network.node("Flatten", [pixels], {"axis": 1}), TensorProto.BOOL)
    with network.scope("encoder"):
        x = encoder(network, x, places, pixels)
    with network.scope("decoder"):
        x = decoder(network, x, places, pixels)
    classes = linear(network, x, WIDTH, CLASSES, "class_labels_classifier")
    network.output(classes, "logits", [1, QUERIES, CLASSES])
    layers = {
        f"bbox_predictor.{index}": (WIDTH, outputs)
        for index, outputs in enumerate([WIDTH, WIDTH, 4])
    }
    boxes = network.node("Sigmoid", [feed_forward(network, x, layers, relu)])
    network.output(boxes, "pred_boxes", [1, QUERIES, 4])
    return network.finish()


def pixels_there(network):
    """True for positions of the backbone's map with pixels of the picture, not padding."""
    everywhere = network.constant(np.ones([1, 1, HIGH, WIDE]), np.float32)
    x = network.node(
        "Resize", [everywhere, "", "", network.constant([1, 1, ROWS, COLUMNS])], NEAREST
    )
    return take(network, cast(network, x, TensorProto.BOOL), 0, 0)


def positions(network, pixels):
    """Sines and cosines of each place's row and column, counted over the pixels that are there."""
    pixels = cast(network, pixels)
    turns = []
    for axis in (1, 2):
        counted = network.node("CumSum", [pixels, network.constant(axis, np.int32)])
        total = add(network, part(network, counted, axis, -1), number(network, 1e-6))
        shares = network.node("Div", [counted, total])
        turns.append(network.node("Mul", [shares, number(network, 2 * math.pi)]))
    waves = [waves_of(network, one) for one in turns]
    x = transpose(network, network.node("Concat", waves, {"axis": 3}), 0, 3, 1, 2)
    return transpose(network, flatten_from(network, x, 2), 0, 2, 1)


def waves_of(network, turns):
    """Sine and cosine by turns, of frequencies in a geometric series."""
    pairs = np.arange(WIDTH // 2) // 2
    periods = network.constant(10000 ** (4 * pairs / WIDTH), np.float32)
    x = network.node("Div", [network.node("Unsqueeze", [turns, network.constant([3])]), periods])
    waves = []
    for start, operator in enumerate(("Sin", "Cos")):
        wave = network.node(operator, [part(network, x, 3, start, step=2)])
        waves.append(network.node("Unsqueeze", [wave, network.constant([4])]))
    return flatten_from(network, network.node("Concat", waves, {"axis": 4}), 3)


def attention_mask(network, pixels, queries, batch=None):
    """Zero at each pixel that is there, for each query; `batch` is a size that the graph reads."""
    length = size(network, pixels, 1)
    constant = network.constant
    starts = (
        constant([[[[0]]]])
        if batch is None
        else unsqueeze(network, counted(network, batch), 1, 2, 3)
    )
    keys = unsqueeze(network, counted(network, length), 0, 1, 2)
    always = filled(network, constant([]), True, bool)
    rows = constant(np.arange(queries).reshape(1, 1, -1, 1))
    asked = cast(network, network.node("GreaterOrEqual", [rows, constant(0)]), TensorProto.BOOL)
    asked = network.node("And", [always, asked])
    # pixels[batch, key], gathered from those of all pictures one after another
    stride = network.node("Gather", [network.node("Shape", [pixels]), constant([1])], {"axis": 0})
    index = add(network, keys, network.node("Mul", [starts, stride]))
    there = network.node(
        "Gather", [network.node("Flatten", [pixels], {"axis": 2}), index], {"axis": 0}
    )
    shape = network.node("Concat", [network.node("Shape", [index])], {"axis": 0})
    there = network.node("Reshape", [network.node("Reshape", [there, constant([-1])]), shape])
    seen = network.node("And", [asked, cast(network, there, TensorProto.BOOL)])
    seen = expand(network, seen, [1 if batch is None else batch, -1, queries, length])
    return network.node("Where", [seen, number(network, 0), number(network, MASKED)])


def counted(network, count):
    """0, 1, … up to a size."""
    start, step = network.constant(0), network.constant(1)
    return network.node("Range", [start, cast(network, count, TensorProto.INT64), step])


def unsqueeze(network, x, *axes):
    for axis in axes:
        x = network.node("Unsqueeze", [x, network.constant([axis])])
    return x


def encoder(network, x, places, pixels):
    mask = attention_mask(network, pixels, PLACES)
    for index in range(DEPTH):
        with network.scope(f"layers.{index}"):
            sizes = [1, PLACES] if index == 0 else sizes_of(network, x)
            asking = add(network, x, places)
            x = attended(network, "self_attn", x, (asking, asking, x), sizes, sizes, mask)
            x = mlp(network, x)
    return x


def decoder(network, image, places, pixels):
    """Learned queries attend to each other and to the image; gives what became of each."""
    queries = filled(network, network.constant([3]), 1)
    queries = network.node(
        "Expand", [network.weight("query_position_embeddings", [1, QUERIES, WIDTH], 0.02), queries]
    )
    queries = network.node("Tile", [queries, network.constant([1, 1, 1])])
    batch = size(network, image, 0)
    mask = attention_mask(network, cast(network, pixels, TensorProto.BOOL), QUERIES, batch)
    memory = [batch, size(network, image, 1)]
    seen = add(network, image, places)
    for index in range(DEPTH):
        with network.scope(f"layers.{index}"):
            if index == 0:
                asked, x, value = (nothing(network) for _ in range(3))
            else:
                asked = value = x
            sizes = [1, QUERIES] if index == 0 else sizes_of(network, x)
            asking = add(network, asked, queries)
            x = attended(network, "self_attn", x, (asking, asking, value), sizes, sizes)
            sizes = [1, QUERIES] if index == 0 else sizes_of(network, x)
            asking = add(network, x, queries)
            x = attended(network, "encoder_attn", x, (asking, seen, image), sizes, memory, mask)
            x = mlp(network, x)
    return layer_norm(network, x, WIDTH, "layernorm", EPSILON)


def nothing(network):
    """The decoder starts from it; the exporter writes it at each use."""
    return network.constant(np.zeros([1, QUERIES, WIDTH]), np.float32)


def sizes_of(network, x):
    """Batch and length."""
    return [size(network, x, axis) for axis in range(2)]


def attended(network, name, x, inputs, query_sizes, key_sizes, mask=None):
    """The layer norm of x plus the attention of query, key and value."""
    layers = [f"{name}.{part}_proj" for part in "qkvo"]
    attention = MultiHeadAttention(layers, WIDTH, WIDTH, ("Mul", CHANNELS**-0.5))
    split = [-1, CHANNELS]
    y = attention(
        network, *inputs, query_sizes + split, key_sizes + split, [*query_sizes, -1], mask
    )
    return layer_norm(network, add(network, x, y), WIDTH, f"{name}_layer_norm", EPSILON)


def mlp(network, x):
    y = feed_forward(network, x, {"mlp.fc1": (WIDTH, HIDDEN), "mlp.fc2": (HIDDEN, WIDTH)}, relu)
    return layer_norm(network, add(network, x, y), WIDTH, "final_layer_norm", EPSILON)
