"""ResNet-18 and ResNet-50 (He et al., 2015, "Deep Residual Learning for Image Recognition").

ResNet-50 is the common variant, which strides in the 3×3 convolution of a bottleneck.
"""

from .network import Network

WIDTHS = (64, 128, 256, 512)
EXPANSION = 4  # output channels of a bottleneck by its inner ones


def resnet18():
    """Two blocks of two 3×3 convolutions a stage; batch normalization folded."""
    return classifier("resnet18", (2, 2, 2, 2), basic_block, 512)


def resnet50():
    """3, 4, 6 and 3 bottlenecks; batch normalization folded."""
    return classifier("resnet50", (3, 4, 6, 3), bottleneck, 512 * EXPANSION)


def classifier(name, blocks, block, features):
    """The backbone, the mean over the picture and one fully connected layer for 1000 classes."""
    network = Network(name)
    x = network.input("pixel_values", [1, 3, 224, 224])
    x = backbone(network, x, blocks, block)[-1]
    x = network.node("GlobalAveragePool", [x], name="avgpool/GlobalAveragePool")
    x = network.node("Flatten", [x], {"axis": 1})
    network.output(network.gemm(x, features, 1000), "logits", [1, 1000])
    return network.finish()


def backbone(network, x, blocks=(3, 4, 6, 3), block=None, frozen_norm=False):
    """Adds the stem and the four stages; returns the feature maps at strides 4, 8, 16 and 32.

    With `frozen_norm`, each convolution has no bias, but a product and a sum for each channel after
    it, as detectors have it. Without, both are folded into the convolution's weight and bias.
    """
    block = block or bottleneck

    def conv(x, channels, filters, kernel, name, stride=1, gain=2.0):
        if not frozen_norm:
            return network.conv(x, channels, filters, kernel, stride=stride, gain=gain, name=name)
        options = {"stride": stride, "gain": gain, "bias": False, "name": name}
        x = network.conv(x, channels, filters, kernel, **options)
        return network.channel_affine(x, filters, name=f"{name}.bn")

    x = network.node("Relu", [conv(x, 3, 64, 7, "conv1", stride=2)])
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    x = network.node("MaxPool", [x], window, name="maxpool/MaxPool")
    channels, maps = 64, []
    for stage, (width, count) in enumerate(zip(WIDTHS, blocks)):
        for index in range(count):
            stride = 2 if stage and index == 0 else 1
            with network.scope(f"layer{stage + 1}.{index}"):
                x, channels = block(network, conv, x, channels, width, stride, index)
        maps.append(x)
    return maps


# The variance of the sum grows with each block of a stage. As batch normalization would, the first
# convolution of a branch undoes that: its gain goes down with the depth in the stage.


def basic_block(network, conv, x, channels, width, stride, depth):
    """Two 3×3 convolutions, added to the identity, or to a 1×1 convolution if the shape changes."""
    y = network.node("Relu", [conv(x, channels, width, 3, "conv1", stride, gain=1 / (depth + 1))])
    y = conv(y, width, width, 3, "conv2")
    if stride != 1 or channels != width:
        x = conv(x, channels, width, 1, "downsample", stride, gain=0.5)
    return network.node("Relu", [network.node("Add", [y, x])]), width


def bottleneck(network, conv, x, channels, width, stride, depth):
    """1×1 to fewer channels, 3×3, 1×1 to four times as many; added as in `basic_block`."""
    y = network.node("Relu", [conv(x, channels, width, 1, "conv1", gain=1 / (depth + 1))])
    y = network.node("Relu", [conv(y, width, width, 3, "conv2", stride)])
    y = conv(y, width, width * EXPANSION, 1, "conv3")
    if stride != 1 or channels != width * EXPANSION:
        x = conv(x, channels, width * EXPANSION, 1, "downsample", stride, gain=0.5)
    return network.node("Relu", [network.node("Add", [y, x])]), width * EXPANSION
