"""ESRGAN, four times larger (Wang et al., 2018, "Enhanced Super-Resolution Generative Adversarial Networks")."""

import numpy as np

from .network import Network

WIDTH, GROWTH, BLOCKS = 64, 32, 23
RESIDUAL = 0.2  # the factor of what a dense block adds
GAIN = 2 / (1 + 0.2**2)  # He's rule for leaky ReLU of slope 0.2


def esrgan_x4():
    network = Network("esrgan_x4")
    low = network.input("lr", [1, 3, 128, 128])
    first = network.conv(low, 3, WIDTH, 3, gain=1.0, name="conv_first")
    x = first
    for index in range(BLOCKS):
        with network.scope(f"body.{index}"):
            y = x
            for dense in range(3):
                with network.scope(f"rdb{dense + 1}"):
                    y = dense_block(network, y)
            x = weighted_sum(network, y, x)
    # Each block adds a fifth of its input to it, too; the convolution behind all of them undoes that.
    x = network.conv(x, WIDTH, WIDTH, 3, gain=(1 + RESIDUAL) ** (-2 * BLOCKS), name="conv_body")
    x = network.node("Add", [first, x])
    for index in range(2):
        scales = network.constant([1, 1, 2, 2], np.float32)
        attributes = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
        x = network.node("Resize", [x, "", scales], attributes)
        x = leaky(network, network.conv(x, WIDTH, WIDTH, 3, gain=GAIN, name=f"conv_up{index + 1}"))
    x = leaky(network, network.conv(x, WIDTH, WIDTH, 3, gain=GAIN, name="conv_hr"))
    network.output(network.conv(x, WIDTH, 3, 3, gain=0.25, name="conv_last"), "hr", [1, 3, 512, 512])
    return network.finish()


def dense_block(network, x):
    """Five convolutions, each of everything before it; the last one's result is weighted and added."""
    parts = [x]
    for index in range(5):
        joined = network.node("Concat", parts, {"axis": 1}) if index else x
        channels = WIDTH + index * GROWTH
        if index == 4:
            return weighted_sum(network, network.conv(joined, channels, WIDTH, 3, gain=1.0, name="conv5"), x)
        parts.append(leaky(network, network.conv(joined, channels, GROWTH, 3, gain=GAIN, name=f"conv{index + 1}")))
    raise AssertionError("the last convolution returns")


def weighted_sum(network, y, x):
    return network.node("Add", [network.node("Mul", [y, network.constant(RESIDUAL, np.float32)]), x])


def leaky(network, x):
    return network.node("LeakyRelu", [x], {"alpha": 0.2})
