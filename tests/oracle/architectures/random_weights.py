"""Seeded random weights whose bytes are equal on every processor.

Numpy's normal distribution takes logarithms, whose last bit may differ between machines. Here a
weight is the sum of eight uniform integers. That is close to a normal distribution, cut off at 4.9
standard deviations. The bit generator and the sum are integer arithmetic. A product and a sum in
float32 follow; each rounds once, as IEEE 754 prescribes.
"""

import hashlib
import math

import numpy as np

# Two 64-bit words have eight fields of 16 bits; the mean and standard deviation of their sum.
FIELDS = 8
MEAN = FIELDS * 0xFFFF // 2
DEVIATION = math.sqrt(FIELDS * (2**32 - 1) / 12)
EVEN_FIELDS, HALF = np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
BLOCK = 1 << 20  # values made at once, so that a large tensor needs little memory beside itself


def normal(seed, shape, std, mean=0.0):
    """A float32 array of approximately normal values; `seed` is any text."""
    generator = np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
    values = np.empty(int(np.prod(shape)), np.float32)
    scale = np.float32(std / DEVIATION)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        block[:] = field_sums(generator.random_raw(2 * block.size)) - MEAN
        block *= scale
        block += np.float32(mean)
    return values.reshape(shape)


def field_sums(words):
    """The sum of the eight 16-bit fields of each pair of 64-bit words."""
    pairs = (words & EVEN_FIELDS) + ((words >> np.uint64(16)) & EVEN_FIELDS)
    pairs = pairs[0::2] + pairs[1::2]
    return ((pairs & HALF) + (pairs >> np.uint64(32))).astype(np.int32)
