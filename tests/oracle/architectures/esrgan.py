"""ESRGAN, which makes pictures four times larger.

Wang et al., 2018, "ESRGAN: Enhanced Super-Resolution Generative Adversarial Networks".
"""

import numpy as np

from .network import NEAREST, Network

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
    # Each block adds a fifth of its input to it, too. The convolution behind them undoes that.
    x = network.conv(x, WIDTH, WIDTH, 3, gain=(1 + RESIDUAL) ** (-2 * BLOCKS), name="conv_body")
    x = network.node("Add", [first, x])
    for index in range(2):
        scales = network.constant([1, 1, 2, 2], np.float32)
        x = network.node("Resize", [x, "", scales], NEAREST)
        x = leaky(network, network.conv(x, WIDTH, WIDTH, 3, gain=GAIN, name=f"conv_up{index + 1}"))
    x = leaky(network, network.conv(x, WIDTH, WIDTH, 3, gain=GAIN, name="conv_hr"))
    x = network.conv(x, WIDTH, 3, 3, gain=0.25, name="conv_last")
    network.output(x, "hr", [1, 3, 512, 512])
    return network.finish()


def dense_block(network, x):
    """Five convolutions, each of everything before it; the last result is weighted and added."""
    parts, channels = [x], WIDTH
    for index in range(4):
        joined = network.node("Concat", parts, {"axis": 1}) if index else x
        y = network.conv(joined, channels, GROWTH, 3, gain=GAIN, name=f"conv{index + 1}")
        parts.append(leaky(network, y))
        channels += GROWTH
    joined = network.node("Concat", parts, {"axis": 1})
    y = network.conv(joined, channels, WIDTH, 3, gain=1.0, name="conv5")
    return weighted_sum(network, y, x)


def weighted_sum(network, y, x):
    y = network.node("Mul", [y, network.constant(RESIDUAL, np.float32)])
    return network.node("Add", [y, x])


def leaky(network, x):
    return network.node("LeakyRelu", [x], {"alpha": 0.2})
