"""MobileNetV2, MobileNetV3-Large, and LR-ASPP on the latter.

Sandler et al., 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks"; Howard et al., 2019,
"Searching for MobileNetV3", whose section 6.4 has LR-ASPP. Batch normalization is folded.
"""

from dataclasses import dataclass

import numpy as np

from .network import Network

# MobileNetV2: expansion, output channels, blocks, stride of the first block.
V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


@dataclass(frozen=True)
class Block:
    """An inverted residual of MobileNetV3."""

    kernel: int
    expanded: int
    filters: int
    squeeze: bool
    activation: str
    stride: int


# The table of MobileNetV3-Large.
V3_BLOCKS = (
    Block(3, 16, 16, False, "Relu", 1),
    Block(3, 64, 24, False, "Relu", 2),
    Block(3, 72, 24, False, "Relu", 1),
    Block(5, 72, 40, True, "Relu", 2),
    Block(5, 120, 40, True, "Relu", 1),
    Block(5, 120, 40, True, "Relu", 1),
    Block(3, 240, 80, False, "HardSwish", 2),
    Block(3, 200, 80, False, "HardSwish", 1),
    Block(3, 184, 80, False, "HardSwish", 1),
    Block(3, 184, 80, False, "HardSwish", 1),
    Block(3, 480, 112, True, "HardSwish", 1),
    Block(3, 672, 112, True, "HardSwish", 1),
    Block(5, 672, 160, True, "HardSwish", 2),
    Block(5, 960, 160, True, "HardSwish", 1),
    Block(5, 960, 160, True, "HardSwish", 1),
)
LOW_LEVEL, LAST_STAGE = (
    3,
    12,
)  # blocks: the one whose output LR-ASPP adds; the first that it dilates
CLASSES = 21
# With these gains values keep their size. Small ones want 4 behind HardSwish, large ones 2.
GAINS = {"Relu": 2.0, "HardSwish": 2.6}

# A linear bottleneck leaves values around ±1, so that the convolution behind it has a gain of 1.
# Each sum with the identity adds as much, which the next expansion undoes.


def mobilenet_v2():
    network = Network("mobilenet_v2")
    x = network.input("pixel_values", [1, 3, 224, 224])
    x = relu6(network, network.conv(x, 3, 32, 3, stride=2, name="features.0"))
    channels, index = 32, 1
    for expansion, filters, count, stride in V2_STAGES:
        for depth in range(count):
            with network.scope(f"features.{index}"):
                step = stride if depth == 0 else 1
                x = v2_block(network, x, channels, filters, expansion, step, depth)
            channels, index = filters, index + 1
    x = relu6(network, network.conv(x, channels, 1280, 1, gain=1.0, name="features.18"))
    x = network.gemm(pooled(network, x), 1280, 1000, std=0.04, name="classifier")
    network.output(x, "logits", [1, 1000])
    return network.finish()


def relu6(network, x):
    bounds = [network.constant(bound, np.float32) for bound in (0, 6)]
    return network.node("Clip", [x, *bounds])


def v2_block(network, x, channels, filters, expansion, stride, depth):
    """An inverted residual: 1×1 to more channels, depthwise 3×3, 1×1 without an activation."""
    y, expanded = x, channels * expansion
    if expansion != 1:
        y = network.conv(y, channels, expanded, 1, gain=1 / max(depth, 1), name="expand")
        y = relu6(network, y)
    y = network.conv(y, expanded, expanded, 3, stride=stride, groups=expanded, name="depthwise")
    y = network.conv(relu6(network, y), expanded, filters, 1, name="project")
    return network.node("Add", [x, y]) if stride == 1 and channels == filters else y


def mobilenet_v3_large():
    network = Network("mobilenet_v3_large")
    x = v3_features(network, network.input("pixel_values", [1, 3, 224, 224]))[-1]
    x = network.gemm(pooled(network, x), 960, 1280, std=0.08, name="classifier.0")
    x = network.node("HardSwish", [x])
    network.output(network.gemm(x, 1280, 1000, std=0.05, name="classifier.3"), "logits", [1, 1000])
    return network.finish()


def lraspp_mobilenet_v3_large():
    """Segmentation into 21 classes: the backbone with its last stage dilated, and a light head."""
    network = Network("lraspp_mobilenet_v3_large")
    image = network.input("pixel_values", [1, 3, 512, 512])
    with network.scope("backbone"):
        *maps, high = v3_features(network, image, dilation=2)
    with network.scope("classifier"):
        x = network.node("Relu", [network.conv(high, 960, 128, 1, name="cbr")])
        gate = network.node("GlobalAveragePool", [high])
        gate = network.node("Sigmoid", [network.conv(gate, 960, 128, 1, bias=False, name="scale")])
        x = resized(network, network.node("Mul", [x, gate]), [64, 64])
        low = network.conv(maps[LOW_LEVEL], 40, CLASSES, 1, gain=1.0, name="low_classifier")
        high = network.conv(x, 128, CLASSES, 1, gain=4.0, name="high_classifier")
        x = network.node("Add", [low, high])
    network.output(resized(network, x, [512, 512]), "logits", [1, CLASSES, 512, 512])
    return network.finish()


def resized(network, x, size):
    """Bilinear to a size; batch and channels are taken from the value, as exporters write it."""
    ends = [network.constant(at) for at in ([0], [2], [0])]
    kept = network.node("Slice", [network.node("Shape", [x]), *ends])
    sizes = network.node("Concat", [kept, network.constant(size)], {"axis": 0})
    attributes = {
        "coordinate_transformation_mode": "half_pixel",
        "mode": "linear",
        "nearest_mode": "floor",
    }
    return network.node("Resize", [x, "", "", sizes], attributes)


def v3_features(network, x, dilation=1):
    """The outputs of all blocks and of the last convolution.

    A dilation of the last stage replaces its stride.
    """
    x = network.node("HardSwish", [network.conv(x, 3, 16, 3, stride=2, name="features.0")])
    channels, maps, depth = 16, [], 1
    for index, block in enumerate(V3_BLOCKS):
        dilated = dilation if index >= LAST_STAGE else 1
        with network.scope(f"features.{index + 1}"):
            x, summed = v3_block(network, x, channels, block, dilated, 1 / depth)
        depth = depth + 1 if summed else 1
        channels = block.filters
        maps.append(x)
    x = network.conv(x, channels, 960, 1, gain=1 / depth, name="features.16")
    maps.append(network.node("HardSwish", [x]))
    return maps


def v3_block(network, x, channels, block, dilation, gain):
    """An inverted residual with squeeze-and-excitation; returns too if it adds the identity."""
    y, expanded, after = x, block.expanded, GAINS[block.activation]
    if expanded != channels:
        y = network.conv(y, channels, expanded, 1, gain=gain, name="expand")
        y = network.node(block.activation, [y])
    stride = 1 if dilation > 1 else block.stride
    y = network.conv(y, expanded, expanded, block.kernel, stride=stride, dilation=dilation,
                     groups=expanded, gain=after, name="depthwise")
    y = network.node(block.activation, [y])
    if block.squeeze:
        y = squeeze_and_excitation(network, y, expanded, eighth(expanded // 4))
        after *= 4  # the weights of the channels are near 1/2
    y = network.conv(y, expanded, block.filters, 1, gain=after, name="project")
    summed = block.stride == 1 and channels == block.filters
    return (network.node("Add", [y, x]) if summed else y), summed


def squeeze_and_excitation(network, x, channels, squeezed):
    """Each channel times a weight between 0 and 1 that follows from the means of all."""
    y = network.node("GlobalAveragePool", [x])
    y = network.node("Relu", [network.conv(y, channels, squeezed, 1, name="squeeze")])
    y = network.conv(y, squeezed, channels, 1, name="excite")
    return network.node("Mul", [network.node("HardSigmoid", [y], {"alpha": 1 / 6}), x])


def eighth(channels):
    """The multiple of 8 nearest to a number of channels, not below nine tenths of it."""
    rounded = max(8, (channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def pooled(network, x):
    """The means of the channels, as a matrix."""
    return network.node("Flatten", [network.node("GlobalAveragePool", [x])], {"axis": 1})


def dwblock_k5d5():
    """A depthwise convolution of kernel 5 and dilation 5 over 96 channels, and a 1×1 one."""
    network = Network("dwblock_k5d5")
    x = network.input("x", [1, 96, 128, 128])
    x = network.conv(x, 96, 96, 5, dilation=5, groups=96, gain=1.0, name="depthwise")
    x = network.conv(network.node("HardSwish", [x]), 96, 96, 1, name="pointwise")
    x = network.node("Relu", [x])
    network.output(x, "y", [1, 96, 128, 128])
    return network.finish()
