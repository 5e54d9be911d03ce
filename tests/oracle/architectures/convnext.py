"""ConvNeXt-Tiny (Liu et al., 2022, "A ConvNet for the 2020s")."""

from .network import Network
from .transformer_layers import channels_first, channels_last, gelu, layer_norm

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
    y = layer_norm(network, channels_last(network, y), width, "norm", EPSILON)
    y = gelu(network, network.linear(y, width, 4 * width, std=STD, name="expand"))
    y = network.linear(y, 4 * width, width, std=STD, name="project")
    scale = network.weight("layer_scale", [width, 1, 1], LAYER_SCALE / 4, LAYER_SCALE)
    return network.node("Add", [network.node("Mul", [scale, channels_first(network, y)]), x])


def channel_norm(network, x, width):
    """Normalization over the channels of an image."""
    x = layer_norm(network, channels_last(network, x), width, "norm", EPSILON)
    return channels_first(network, x)
