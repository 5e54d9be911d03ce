"""The prompt encoder and mask decoder of SAM 2.

Ravi et al., 2024, "SAM 2: Segment Anything in Images and Videos". It takes an image's embeddings at
three scales, and points with labels: 0 is outside, 1 inside, 2 and 3 are corners of a box, −1 is
no point.
"""

import math

import numpy as np
from onnx import TensorProto

from .network import Network
from .shape_arithmetic import flatten_from, reshape
from .transformer_layers import (
    MultiHeadAttention,
    add,
    cast,
    channels_first,
    channels_last,
    feed_forward,
    gelu,
    layer_norm,
    lecun,
    number,
    part,
    relu,
    take,
    transpose,
)

PICTURE, SIDE, WIDTH, HIDDEN, HEADS, DEPTH = 1024, 64, 256, 2048, 8, 2
CROSS = WIDTH // 2  # attention between tokens and image is half as wide
POINTS, LABELS, MASKS = 2, 4, 4
TOKENS = 2 + MASKS  # object score, IoU, masks; the points come after them
NO_POINT, LEFT_OUT = -1, -10
EPSILON, UPSCALE_EPSILON = 1e-5, 1e-6


def sam2_image_decoder():
    """Three masks from two points."""
    network = Network("sam2_image_decoder")
    maps = [
        network.input(f"image_embeddings.{scale}", [1, channels, side, side])
        for scale, (channels, side) in enumerate(
            [(WIDTH // 8, 4 * SIDE), (WIDTH // 4, 2 * SIDE), (WIDTH, SIDE)]
        )
    ]
    points = network.input("input_points", [1, 1, POINTS, 2])
    labels = network.input("input_labels", [1, 1, POINTS], TensorProto.INT64)
    with network.scope("prompt"):
        prompt = embed_points(network, points, labels)
    tokens = network.weight("output_tokens", [1, 1, TOKENS, WIDTH], 0.5)
    tokens = cast(network, network.node("Concat", [tokens, prompt], {"axis": 2}))
    image = add(network, maps[2], network.weight("no_mask_embed", [1, WIDTH, 1, 1], 0.5))
    with network.scope("transformer"):
        tokens, image = transformer(network, tokens, image)
    masks, scores, objects = heads(network, tokens, upscaled(network, image, *maps[:2]))
    network.output(masks, "pred_masks", [1, 1, MASKS - 1, 4 * SIDE, 4 * SIDE])
    network.output(scores, "iou_scores", [1, 1, MASKS - 1])
    network.output(objects, "object_score_logits", [1, 1, 1])
    return network.finish()


def embed_points(network, points, labels):
    """Sine and cosine of random frequencies at each point, plus what its label has learned."""
    points = add(network, points, number(network, 0.5))
    points = network.node(
        "Concat", [points, network.constant(np.zeros([1, 1, 1, 2]), np.float32)], {"axis": 2}
    )
    labels = network.node("Concat", [labels, network.constant([[[NO_POINT]]])], {"axis": 2})
    x = network.node("Div", [points, number(network, PICTURE)])
    x = network.node("Sub", [network.node("Mul", [x, number(network, 2)]), number(network, 1)])
    x = network.node("MatMul", [x, network.weight("frequencies", [2, WIDTH // 2], 1.0)])
    x = network.node("Mul", [x, number(network, 2 * math.pi)])
    x = network.node("Concat", [network.node("Sin", [x]), network.node("Cos", [x])], {"axis": -1})
    column = network.node("Unsqueeze", [labels, network.constant([3])])
    nowhere = network.node("Equal", [column, network.constant(NO_POINT)])
    x = network.node("Where", [nowhere, network.weight("not_a_point_embed", [1, WIDTH], 0.5), x])
    kept = network.node("Not", [network.node("Equal", [column, network.constant(LEFT_OUT)])])
    x = network.node(
        "Where", [kept, x, network.constant(np.zeros([1, 1, POINTS + 1, WIDTH]), np.float32)]
    )
    row = network.node("Clip", [labels, network.constant(0), ""])
    learned = network.node("Gather", [network.weight("point_embed", [LABELS, WIDTH], 0.5), row])
    real = network.node("GreaterOrEqual", [labels, network.constant(0)])
    real = cast(network, network.node("Unsqueeze", [real, network.constant([-1])]))
    return add(network, x, network.node("Mul", [learned, real]))


def transformer(network, prompt, image):
    """Layers in which tokens and image attend to each other; gives both."""
    image = transpose(network, flatten_from(network, image, 2), 0, 2, 1)
    image = network.node("Unsqueeze", [image, network.constant([1])])
    places = network.weight("image_positions", [1, 1, SIDE * SIDE, WIDTH], 0.7)
    tokens, asking = prompt, prompt
    for index in range(DEPTH):
        with network.scope(f"layers.{index}"):
            # In the first layer the tokens are their own positions, and nothing of them is kept.
            attended = attention(network, "self_attn", asking, asking, tokens)
            attended = add(network, tokens, attended) if index else attended
            tokens = layer_norm(network, attended, WIDTH, "layer_norm1", EPSILON)
            asking = add(network, tokens, prompt)
            looked_at = add(network, image, places)
            attended = attention(network, "cross_attn_token_to_image", asking, looked_at, image)
            tokens = layer_norm(
                network, add(network, tokens, attended), WIDTH, "layer_norm2", EPSILON
            )
            layers = {"mlp.proj_in": (WIDTH, HIDDEN), "mlp.proj_out": (HIDDEN, WIDTH)}
            y = feed_forward(network, tokens, layers, relu, lecun)
            tokens = layer_norm(network, add(network, tokens, y), WIDTH, "layer_norm3", EPSILON)
            asking = add(network, tokens, prompt)
            attended = attention(network, "cross_attn_image_to_token", looked_at, asking, tokens)
            image = layer_norm(
                network, add(network, image, attended), WIDTH, "layer_norm4", EPSILON
            )
    looked_at = add(network, image, places)
    attended = attention(network, "final_attn_token_to_image", asking, looked_at, image)
    return layer_norm(
        network, add(network, tokens, attended), WIDTH, "layer_norm_final_attn", EPSILON
    ), image


def attention(network, name, query, key, value):
    inner = WIDTH if name == "self_attn" else CROSS
    channels = inner // HEADS
    layers = [f"{name}.{part}_proj" for part in "qkvo"]
    shape = [1, -1, HEADS, channels]
    attend = MultiHeadAttention(
        layers, WIDTH, inner, ("Mul", channels**-0.5), casts=2, spread=lecun
    )
    return attend(network, query, key, value, shape, shape, [1, 1, -1, inner])


def upscaled(network, image, finest, finer):
    """The image four times as wide and high, with what the encoder saw at these scales."""
    x = reshape(network, transpose(network, image, 0, 1, 3, 2), [1, WIDTH, SIDE, SIDE])
    x = add(network, double(network, x, WIDTH, WIDTH // 4, "upscale_conv1"), finer)
    x = layer_norm(
        network,
        channels_last(network, x),
        WIDTH // 4,
        "upscale_layer_norm",
        UPSCALE_EPSILON,
    )
    x = gelu(network, channels_first(network, x))
    x = add(network, double(network, x, WIDTH // 4, WIDTH // 8, "upscale_conv2"), finest)
    return gelu(network, x)


def double(network, x, channels, filters, name):
    """A transposed convolution whose 2×2 kernels lie side by side."""
    weight = network.weight(f"{name}.weight", [channels, filters, 2, 2], lecun(channels, filters))
    bias = network.weight(f"{name}.bias", [filters], 0.02)
    attributes = {
        "dilations": [1, 1],
        "group": 1,
        "kernel_shape": [2, 2],
        "pads": [0] * 4,
        "strides": [2, 2],
    }
    return network.node(
        "ConvTranspose", [x, weight, bias], attributes, name=f"{name}/ConvTranspose"
    )


def heads(network, tokens, image):
    """Masks, the IoU of each as the network judges it, and whether there is an object at all."""
    mask_tokens = part(network, tokens, 2, 2, TOKENS)
    iou_token = take(network, tokens, 1, 2)
    kernels = []
    for index in range(MASKS):
        token = take(network, mask_tokens, index, 2)
        kernel = perceptron(network, token, f"output_hypernetworks_mlps.{index}", WIDTH // 8)
        kernels.append(network.node("Unsqueeze", [kernel, network.constant([2])]))
    kernels = network.node("Concat", kernels, {"axis": 2})
    masks = network.node(
        "MatMul", [kernels, reshape(network, image, [1, 1, WIDTH // 8, 16 * SIDE * SIDE])]
    )
    masks = reshape(network, masks, [1, 1, -1, 4 * SIDE, 4 * SIDE])
    scores = network.node("Sigmoid", [perceptron(network, iou_token, "iou_prediction_head", MASKS)])
    object_token = take(network, tokens, 0, 2)
    objects = perceptron(network, object_token, "pred_obj_score_head", 1)
    # The first mask is for many points; with few, the others are asked for.
    return part(network, masks, 2, 1), part(network, scores, 2, 1), objects


def perceptron(network, x, name, outputs):
    """Three linear layers with ReLU between."""
    layers = {
        f"{name}.proj_in": (WIDTH, WIDTH),
        f"{name}.layers.0": (WIDTH, WIDTH),
        f"{name}.proj_out": (WIDTH, outputs),
    }
    return feed_forward(network, x, layers, relu, lecun)
