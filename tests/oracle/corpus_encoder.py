"""all-MiniLM-L6-v2 as ONNX, from its trained weights: a BERT of six layers for sentences.

Batch and length are dynamic, as exporters write them. The first output passes the token ids
through, as some exports do; the second is the sentence embedding.
"""

import json
import struct

import numpy as np
from architectures.network import Network
from architectures.shape_arithmetic import size, vector
from architectures.transformer_layers import MASKED, add, attend, gelu, heads_first, number
from corpus_weights import CorpusError
from onnx import TensorProto

WIDTH, HIDDEN, DEPTH, HEADS, EPSILON = 384, 1536, 6, 12, 1e-12
BOUNDARY = 1 << 20  # no header of a file that we know is longer


def read_safetensors(data):
    """Tensors of 32-bit floats by name; integer buffers are left out."""
    (length,) = struct.unpack_from("<Q", data)
    if length > min(BOUNDARY, len(data) - 8):
        raise CorpusError("the weights are not a safetensors file: its header is too long")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(body[begin:end], "<f4").reshape(entry["shape"])
    return tensors


class Encoder:
    """The network under construction, and the weights that it takes by name."""

    def __init__(self, weights):
        self.network, self.weights = Network("all-MiniLM-L6-v2"), weights

    def parameter(self, name, transposed=False):
        values = self.weights[name]
        return self.network.parameter(name, values.T if transposed else values)

    def linear(self, x, name):
        product = self.network.node("MatMul", [x, self.parameter(f"{name}.weight", True)])
        return add(self.network, product, self.parameter(f"{name}.bias"))

    def layer_norm(self, x, name):
        inputs = [x, self.parameter(f"{name}.weight"), self.parameter(f"{name}.bias")]
        return self.network.node("LayerNormalization", inputs, {"axis": -1, "epsilon": EPSILON})

    def embedding(self, ids, name):
        table = self.parameter(f"embeddings.{name}_embeddings.weight")
        return self.network.node("Gather", [table, ids])

    def layer(self, x, batch, length, mask, name):
        """Attention and two linear layers, each with a sum and a layer norm behind it."""
        split = vector(self.network, [batch, length, HEADS, WIDTH // HEADS])
        parts = [
            self.network.node("Reshape", [self.linear(x, f"{name}.attention.self.{one}"), split])
            for one in ("query", "key", "value")
        ]
        scale = ("Div", (WIDTH / HEADS) ** 0.5)
        y = attend(self.network, *heads_first(self.network, *parts), scale, mask)
        y = self.network.node("Transpose", [y], {"perm": [0, 2, 1, 3]})
        joined = vector(self.network, [batch, length, WIDTH])
        y = self.network.node("Reshape", [y, joined])
        y = self.linear(y, f"{name}.attention.output.dense")
        x = self.layer_norm(add(self.network, y, x), f"{name}.attention.output.LayerNorm")
        y = gelu(self.network, self.linear(x, f"{name}.intermediate.dense"))
        y = self.linear(y, f"{name}.output.dense")
        return self.layer_norm(add(self.network, y, x), f"{name}.output.LayerNorm")


def minilm_l6(data):
    """The model: ids and mask to passed ids and the mean of the last states under the mask."""
    encoder = Encoder(read_safetensors(data))
    network = encoder.network
    shape = ["batch", "sequence"]
    ids = network.input("input_ids", shape, TensorProto.INT64)
    seen = network.input("attention_mask", shape, TensorProto.INT64)
    batch, length = (size(network, ids, axis) for axis in (0, 1))
    positions = network.node("Range", [network.constant(0), length, network.constant(1)])
    zeros = network.node("Mul", [ids, network.constant(0)])
    x = add(network, encoder.embedding(ids, "word"), encoder.embedding(zeros, "token_type"))
    x = add(network, x, encoder.embedding(positions, "position"))
    x = encoder.layer_norm(x, "embeddings.LayerNorm")
    weights = network.node("Cast", [seen], {"to": TensorProto.FLOAT})
    hidden = network.node("Sub", [number(network, 1), weights])
    hidden = network.node("Mul", [hidden, number(network, MASKED)])
    mask = network.node("Unsqueeze", [hidden, network.constant([1, 2])])
    for index in range(DEPTH):
        x = encoder.layer(x, batch, length, mask, f"encoder.layer.{index}")
    weights = network.node("Unsqueeze", [weights, network.constant([2])])
    total = network.node("ReduceSum", [network.node("Mul", [x, weights]), network.constant([1])],
                         {"keepdims": 0})
    count = network.node("ReduceSum", [weights, network.constant([1])], {"keepdims": 0})
    mean = network.node("Div", [total, count])
    network.output(network.node("Identity", [ids]), "token_ids", shape, TensorProto.INT64)
    network.output(mean, "sentence_embedding", ["batch", WIDTH])
    return network.finish()
