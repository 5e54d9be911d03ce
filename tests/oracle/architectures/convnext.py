"""ConvNeXt-Tiny (Liu et al., 2022, "A ConvNet for the 2020s")."""

import numpy as np

from .network import Network

WIDTHS, DEPTHS = (96, 192, 384, 768), (3, 3, 9, 3)
EPSILON = 1e-6
# The spread of the published initialization. Blocks normalize, so that activations keep their size.
STD = 0.02
LAYER_SCALE = 0.1  # the order of magnitude of a trained network; training starts from 1e-6


def convnext_tiny():
    network = Network("convnext_tiny")
    x = network.input("pixel_values", [1, 3, 224, 224])
    with network.scope("stem"):
        x = network.conv(x, 3, WIDTHS[0], 4, stride=4, padding=0, gain=1.0)
        x = channel_norm(network, x, WIDTHS[0])
    for stage, (width, depth) in enumerate(zip(WIDTHS, DEPTHS)):
        if stage:
            with network.scope(f"downsample.{stage}"):
                x = channel_norm(network, x, WIDTHS[stage - 1])
                x = network.conv(x, WIDTHS[stage - 1], width, 2, stride=2, padding=0, gain=1.0)
        for index in range(depth):
            with network.scope(f"stages.{stage}.{index}"):
                x = block(network, x, width)
    with network.scope("classifier"):
        x = channel_norm(network, network.node("GlobalAveragePool", [x]), WIDTHS[-1])
        x = network.node("Flatten", [x], {"axis": 1})
        x = network.gemm(x, WIDTHS[-1], 1000, std=STD, bias_std=STD)
        network.output(x, "logits", [1, 1000])
    return network.finish()


def block(network, x, width):
    """A 7×7 depthwise convolution and two linear layers for each pixel; weighted and added."""
    y = network.conv(x, width, width, 7, groups=width, gain=1.0, name="depthwise")
    y = layer_norm(network, channels_last(network, y), width)
    y = gelu(network, network.linear(y, width, 4 * width, std=STD, name="expand"))
    y = network.linear(y, 4 * width, width, std=STD, name="project")
    scale = network.weight("layer_scale", [width, 1, 1], LAYER_SCALE / 4, LAYER_SCALE)
    return network.node("Add", [network.node("Mul", [scale, channels_first(network, y)]), x])


def gelu(network, x):
    """The exact GELU in the operators that exporters write: x · (erf(x / √2) + 1) · ½."""
    y = network.node("Erf", [network.node("Div", [x, network.constant(2**0.5, np.float32)])])
    y = network.node("Mul", [x, network.node("Add", [y, network.constant(1, np.float32)])])
    return network.node("Mul", [y, network.constant(0.5, np.float32)])


def layer_norm(network, x, width):
    """Normalization over the last axis, with weights around 1."""
    scale = network.weight("norm.weight", [width], 0.1, 1.0)
    shift = network.weight("norm.bias", [width], 0.1)
    return network.node("LayerNormalization", [x, scale, shift], {"axis": -1, "epsilon": EPSILON})


def channel_norm(network, x, width):
    """Normalization over the channels of an image."""
    return channels_first(network, layer_norm(network, channels_last(network, x), width))


def channels_last(network, x):
    return network.node("Transpose", [x], {"perm": [0, 2, 3, 1]})


def channels_first(network, x):
    return network.node("Transpose", [x], {"perm": [0, 3, 1, 2]})
