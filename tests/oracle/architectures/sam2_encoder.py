"""The image encoder of SAM 2 (Ravi et al., 2024): Hiera-S (Ryali et al., 2023) and a pyramid.

It is built as two traces give it: with all shapes fixed, and with the arithmetic on sizes left in
the graph. Channels come last. Most blocks attend inside windows, and the picture is padded to a
whole number of them first. The first block of a stage halves the picture: it pools the queries, and
what goes past the attention.
"""

import numpy as np
from onnx import TensorProto

from .network import NEAREST, Network
from .shape_arithmetic import Known, Traced, entry, filled, known, reshape, vector
from .transformer_layers import (
    add,
    attend,
    cast,
    channels_first,
    channels_last,
    feed_forward,
    gelu,
    heads_first,
    layer_norm,
    linear,
    transpose,
)

PICTURE, STRIDE, PYRAMID, EPSILON = 1024, 4, 256, 1e-6
SIDE = PICTURE // STRIDE
BLOCKS = (1, 2, 11, 2)  # of each stage
WIDTHS = (96, 192, 384, 768)
HEADS = (1, 2, 4, 8)
CHANNELS = WIDTHS[0] // HEADS[0]
WINDOWS = (8, 4, 14, 7)
GLOBAL = (7, 10, 13)  # blocks without windows
FIRST = np.iinfo(np.int64).min


def sam2_image_encoder():
    """The trace with fixed shapes."""
    network = Network("sam2_image_encoder")
    return encoder(network, Known(), lambda name, side: [1, PYRAMID, side, side])


def sam2_image_encoder_dynshape():
    """The trace that reads sizes off values, so that those of its outputs are unknown."""
    network = Network("sam2_image_encoder_dynshape")
    return encoder(
        network,
        Traced(network),
        lambda name, side: [f"{name}_batch", PYRAMID, f"{name}_height", f"{name}_width"],
    )


def encoder(network, trace, output_shape):
    x = cast(network, network.input("pixel_values", [1, 3, PICTURE, PICTURE]))
    x = network.conv(x, 3, WIDTHS[0], 7, stride=STRIDE, std=0.02, name="patch_embed")
    x = channels_last(network, x)
    x = add(network, x, network.weight("positions", [1, SIDE, SIDE, WIDTHS[0]], 0.0266))
    maps, index = [], 0
    for stage, count in enumerate(BLOCKS):
        for place in range(count):
            with network.scope(f"blocks.{index}"):
                x = block(network, trace, x, index, stage, halved=stage > 0 and place == 0)
            index += 1
        maps.append(x)
    for name, value, side in zip(
        ("fpn0", "fpn1", "fpn2"), pyramid(network, maps), (SIDE, SIDE // 2, SIDE // 4)
    ):
        network.output(value, name, output_shape(name, side))
    return network.finish()


def pyramid(network, maps):
    """All maps with as many channels; the coarsest is enlarged and added to the one before it."""
    maps = [cast(network, channels_first(network, x)) for x in maps]
    maps = [
        network.conv(x, channels, PYRAMID, 1, std=0.02, name=f"convs.{stage}")
        for stage, (x, channels) in enumerate(zip(maps, WIDTHS))
    ]
    scales = network.constant([1, 1, 2, 2], np.float32)
    coarsest = cast(network, network.node("Resize", [cast(network, maps[3]), "", scales], NEAREST))
    return maps[0], maps[1], add(network, maps[2], coarsest)


def block(network, trace, x, index, stage, halved):
    # The first block of a stage still has the windows, the width and the side of the stage before.
    before = stage - halved
    inputs, width, window, side = WIDTHS[before], WIDTHS[stage], WINDOWS[before], SIDE >> before
    y = layer_norm(network, x, inputs, "layer_norm1", EPSILON)
    x = pool(network, linear(network, y, inputs, width, "proj")) if halved else x
    if index in GLOBAL:
        y = attention(network, trace, y, [1, side, side], inputs, stage, halved)
    else:
        sizes = [1, side, side, inputs]
        if index > 0:  # no arithmetic went into the sizes that the first block sees
            sizes = trace.sizes(y, range(4), sizes)
        windows = Windows(network, trace, window, *sizes[1:3])
        y = windows.cut(y, sizes[0], sizes[3])
        count = len(range(0, side, window)) ** 2
        y = attention(network, trace, y, [count, window, window], inputs, stage, halved)
        if halved:
            windows = Windows(network, trace, window // 2, *trace.sizes(x, (1, 2), [side // 2] * 2))
        y = windows.join(y, count)
    x = add(network, x, y)
    y = layer_norm(network, x, width, "layer_norm2", EPSILON)
    y = feed_forward(
        network, y, {"mlp.proj_in": (width, 4 * width), "mlp.proj_out": (4 * width, width)}, gelu
    )
    return add(network, x, y)


def attention(network, trace, x, sizes, inputs, stage, halved):
    """Attention inside each picture or window; `sizes` are the first three of `x`."""
    width, heads = WIDTHS[stage], HEADS[stage]
    half = [side // 2 for side in sizes[1:]]
    batch, high, wide = trace.sizes(x, range(3), sizes)
    x = linear(network, x, inputs, 3 * width, "attn.qkv")
    x = reshape(network, x, [batch, trace.multiply(high, wide), 3, heads, -1])
    parts = network.node("Split", [x, network.constant([1, 1, 1])], {"axis": 2}, outputs=3)
    query, key, value = (network.node("Squeeze", [part, network.constant([2])]) for part in parts)
    if halved:
        query = pool(network, reshape(network, query, [batch, high, wide, -1]))
        high, wide = trace.sizes(query, (1, 2), half)
        query = reshape(network, query, [batch, trace.multiply(high, wide), heads, -1])
    x = attend(network, *heads_first(network, query, key, value), ("Mul", CHANNELS**-0.5), casts=2)
    x = reshape(network, transpose(network, x, 0, 2, 1, 3), [batch, high, wide, -1])
    return linear(network, x, width, width, "attn.proj")


def pool(network, x):
    """The maximum of each 2×2 positions."""
    attributes = {"ceil_mode": 0, "kernel_shape": [2, 2], "pads": [0] * 4, "strides": [2, 2]}
    x = network.node("MaxPool", [channels_first(network, x)], attributes)
    return channels_last(network, x)


class Windows:
    """Square windows of a picture, which is padded at the bottom and the right to whole ones."""

    def __init__(self, network, trace, window, height, width):
        self.network, self.trace, self.window, self.sizes = network, trace, window, (height, width)
        self.lacking = [trace.lacking(size, window) for size in self.sizes]
        self.padded = [trace.add(size, more) for size, more in zip(self.sizes, self.lacking)]
        self.counts = [trace.divide(size, window) for size in self.padded]

    def cut(self, x, batch, channels):
        """From a batch of pictures to one of windows."""
        (rows, columns), window = self.counts, self.window
        down, right = self.lacking
        x = pad(self.network, x, [0, 0, 0, right, 0, down])
        x = reshape(self.network, x, [batch, rows, window, columns, window, channels])
        x = transpose(self.network, x, 0, 1, 3, 2, 4, 5)
        return reshape(self.network, x, [-1, window, window, channels])

    def join(self, x, count):
        """From a batch of `count` windows back to one of pictures, without the padding."""
        (rows, columns), window = self.counts, self.window
        (count,) = self.trace.sizes(x, (0,), [count])
        batch = self.trace.divide(count, self.trace.multiply(rows, columns))
        x = reshape(self.network, x, [batch, rows, columns, window, window, -1])
        x = transpose(self.network, x, 0, 1, 3, 2, 4, 5)
        x = reshape(self.network, x, [batch, *self.padded, -1])
        constant = self.network.constant
        for axis, size in enumerate(self.sizes, start=1):
            ends = [constant([0]), entry(self.network, size), constant([axis]), constant([1])]
            x = self.network.node("Slice", [x, *ends])
        return x


def pad(network, x, amounts):
    """PyTorch's `pad` of four axes: before and after each, last axis first, the first may lack."""
    given = vector(network, amounts)
    if known(amounts):
        others = network.constant([8 - len(amounts)])
    else:
        length = network.node(
            "Gather", [network.node("Shape", [given]), network.constant([0])], {"axis": 0}
        )
        others = network.node("Sub", [network.constant(8), length])
        given = cast(network, vector(network, amounts), TensorProto.INT64)
    pairs = network.node("Concat", [given, filled(network, others, 0)], {"axis": 0})
    pairs = reshape(network, pairs, [-1, 2])
    backwards = network.node("Slice", [pairs, *map(network.constant, ([-1], [FIRST], [0], [-1]))])
    pads = reshape(network, transpose(network, backwards, 1, 0), [-1])
    return network.node(
        "Pad", [x, cast(network, pads, TensorProto.INT64), ""], {"mode": "constant"}
    )
