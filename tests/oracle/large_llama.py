"""Llama decoders of gigabytes with random weights, in the shapes of Llama-3.2-3B."""

import numpy as np
from llama_graph import Shape, write_llama

TILE = 1 << 24  # values, 64 MiB
RUN = 1024  # values with one scale


def shape(layers, vocabulary=128256):
    return Shape(layers=layers, width=3072, heads=24, kv_heads=8, inner=8192, vocabulary=vocabulary, theta=500000.0)


def layers_of(gigabytes):
    """Layers of a model of about so many GB."""
    table, layer = 128256 * 3072 * 4, (3072 * (2 * 3072 + 2 * 1024) + 3 * 3072 * 8192) * 4
    return max(1, round((gigabytes * 1e9 - table) / layer))


def write_large(path, network):
    """Writes the model; its weights repeat one tile of Student-t values with scales that vary."""
    random = np.random.default_rng(0)
    tile = random.standard_t(6, TILE).astype(np.float32)
    tile *= np.repeat(random.lognormal(0, 0.3, TILE // RUN).astype(np.float32) / np.float32(3072**0.5), RUN)

    def weight(_, dims):
        left = int(np.prod(dims))
        while left:
            piece = tile[:left]
            yield piece
            left -= len(piece)

    write_llama(path, network, weight)
