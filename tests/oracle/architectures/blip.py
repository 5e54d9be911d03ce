"""The image encoder and text decoder of BLIP.

Li et al., 2022, "BLIP: Bootstrapping Language-Image Pre-training for Unified Vision-Language
Understanding and Generation".
"""

import numpy as np
from onnx import TensorProto

from .network import Network
from .shape_arithmetic import expand, flatten_from, reshape
from .transformer_layers import (
    MASKED,
    MultiHeadAttention,
    add,
    attend,
    cast,
    feed_forward,
    gelu,
    layer_norm,
    linear,
    number,
    take,
    transpose,
)

WIDTH, HIDDEN, DEPTH = 768, 3072, 12

SIDE, PATCH, IMAGE_HEADS = 384, 16, 12
STATES = (SIDE // PATCH) ** 2 + 1  # one for each patch, and the class embedding's
IMAGE_EPSILON = 1e-5

TOKENS, VOCABULARY, POSITIONS, TEXT_HEADS = 32, 30524, 512, 8
TEXT_EPSILON = 1e-12


def blip_image_encoder():
    """A ViT-B/16 on 384×384 pixels that gives all its states."""
    network = Network("blip_image_encoder")
    x = cast(network, network.input("pixel_values", [1, 3, SIDE, SIDE]))
    x = network.conv(x, 3, WIDTH, PATCH, stride=PATCH, padding=0, std=0.02, name="patch_embedding")
    x = transpose(network, flatten_from(network, x, 2), 0, 2, 1)
    first = expand(network, network.weight("class_embedding", [1, 1, WIDTH], 0.02), [1, 1, -1])
    x = network.node("Concat", [cast(network, first), x], {"axis": 1})
    x = add(network, x, network.weight("position_embedding", [1, STATES, WIDTH], 0.02))
    for index in range(DEPTH):
        with network.scope(f"encoder.{index}"):
            y = image_attention(
                network, layer_norm(network, x, WIDTH, "layer_norm1", IMAGE_EPSILON)
            )
            x = add(network, y, x)
            y = layer_norm(network, x, WIDTH, "layer_norm2", IMAGE_EPSILON)
            y = feed_forward(
                network, y, {"mlp.fc1": (WIDTH, HIDDEN), "mlp.fc2": (HIDDEN, WIDTH)}, gelu
            )
            x = add(network, y, x)
    x = layer_norm(network, x, WIDTH, "post_layernorm", IMAGE_EPSILON)
    network.output(x, "last_hidden_state", [1, STATES, WIDTH])
    return network.finish()


def image_attention(network, x):
    """One linear layer for query, key and value, which a Gather each takes apart."""
    channels = WIDTH // IMAGE_HEADS
    x = linear(network, x, WIDTH, 3 * WIDTH, "self_attn.qkv")
    x = transpose(
        network, reshape(network, x, [1, STATES, 3, IMAGE_HEADS, channels]), 2, 0, 3, 1, 4
    )
    query, key, value = (take(network, x, index, 0) for index in range(3))
    x = attend(network, query, transpose(network, key, 0, 1, 3, 2), value, ("Mul", channels**-0.5))
    x = reshape(network, transpose(network, x, 0, 2, 1, 3), [1, STATES, WIDTH])
    return linear(network, x, WIDTH, WIDTH, "self_attn.projection")


def blip_text_decoder():
    """A BERT with a causal mask that also attends to the states of a picture, on 32 tokens."""
    network = Network("blip_text_decoder")
    ids = network.input("input_ids", [1, TOKENS], TensorProto.INT64)
    states = network.input("encoder_hidden_states", [1, STATES, WIDTH])
    words = network.weight("word_embeddings", [VOCABULARY, WIDTH], 0.02)
    places = network.weight("position_embeddings", [POSITIONS, WIDTH], 0.02)
    words = network.node("Gather", [words, ids])
    places = network.node("Gather", [places, network.constant([range(TOKENS)])])
    x = add(network, words, places)
    x = layer_norm(network, x, WIDTH, "embeddings.LayerNorm", TEXT_EPSILON)
    mask = causal_mask(network)
    for index in range(DEPTH):
        with network.scope(f"layer.{index}"):
            mask = cast(network, mask)
            x = text_attention(network, "attention", x, x, TOKENS, mask)
            x = text_attention(network, "crossattention", x, states, STATES)
            layers = {"intermediate.dense": (WIDTH, HIDDEN), "output.dense": (HIDDEN, WIDTH)}
            x = add(network, feed_forward(network, x, layers, gelu), x)
            x = layer_norm(network, x, WIDTH, "output.LayerNorm", TEXT_EPSILON)
    with network.scope("predictions"):
        x = gelu(network, linear(network, x, WIDTH, WIDTH, "transform.dense"))
        x = layer_norm(network, x, WIDTH, "transform.LayerNorm", TEXT_EPSILON)
        x = linear(network, x, WIDTH, VOCABULARY, "decoder")
    network.output(x, "logits", [1, TOKENS, VOCABULARY])
    return network.finish()


def causal_mask(network):
    """Zero where a token may attend: to itself and to those before it."""
    places = np.arange(TOKENS)
    keys, queries = (
        network.constant(places.reshape(1, 1, 1, -1)),
        network.constant(places.reshape(1, 1, -1, 1)),
    )
    earlier = network.node("LessOrEqual", [keys, queries])
    earlier = expand(network, earlier, [1, -1, TOKENS, TOKENS])
    return network.node("Where", [earlier, number(network, 0), number(network, MASKED)])


def text_attention(network, name, x, states, length, mask=None):
    """Attention from the tokens to states, the sum with what came in, and a layer norm."""
    channels = WIDTH // TEXT_HEADS
    with network.scope(name):
        layers = "self.query", "self.key", "self.value", "output.dense"
        attention = MultiHeadAttention(layers, WIDTH, WIDTH, ("Div", channels**0.5))
        shapes = [1, TOKENS, -1, channels], [1, length, -1, channels], [1, TOKENS, WIDTH]
        y = attention(network, x, states, states, *shapes, mask)
        return layer_norm(network, add(network, y, x), WIDTH, "output.LayerNorm", TEXT_EPSILON)
