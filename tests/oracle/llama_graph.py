"""Llama decoders as exporters write them: plain ONNX operators, from token ids to logits, with the
weights in a file beside the model. The weights come from a function, so that models of any size are
written piece by piece.
"""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ALIGNMENT = 64
ELEMENTS = {"float32": (np.float32, TensorProto.FLOAT), "float16": (np.float16, TensorProto.FLOAT16)}


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder. `element` is the type of the weights and of the values between nodes."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    theta: float = 100000.0
    epsilon: float = 1e-5
    tied: bool = True
    element: str = "float32"
    opset: int = 17

    @property
    def head(self):
        return self.width // self.heads


class Writer:
    """The graph under construction, and the file of its weights."""

    def __init__(self, path, shape, weight):
        self.path, self.shape, self.weight = path, shape, weight
        self.nodes, self.constants, self.known = [], [], set()
        self.dtype, self.kind = ELEMENTS[shape.element]
        self.location = f"{path.name}_data"
        self.data = open(path.with_name(self.location), "wb")

    def node(self, operator, inputs, name, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}_output_0"], name, **attributes))
        return f"{name}_output_0"

    def constant(self, name, values):
        if name not in self.known:
            self.known.add(name)
            self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def stored(self, name, dims):
        """A weight in the file of weights; the function gives arrays that follow one another."""
        if name in self.known:
            return name
        self.known.add(name)
        offset = -(-self.data.tell() // ALIGNMENT) * ALIGNMENT
        self.data.seek(offset)
        length = int(np.prod(dims)) * self.dtype().itemsize
        for piece in self.weight(name, dims):
            self.data.write(np.ascontiguousarray(piece, self.dtype).data)
        assert self.data.tell() == offset + length, f"{name} has another size than {dims}"
        tensor = TensorProto(name=name, data_type=self.kind, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in ("location", self.location), ("offset", offset), ("length", length):
            tensor.external_data.add(key=key, value=str(value))
        self.constants.append(tensor)
        return name

    def linear(self, x, name, rows, columns):
        return self.node("MatMul", [x, self.stored(f"{name}.weight", [rows, columns])], f"/{name.replace('.', '/')}/MatMul")

    def cast(self, x, name, kind):
        return x if self.shape.element == "float32" else self.node("Cast", [x], name, to=kind)

    def norm(self, x, name):
        """RMS norm in float32, as in the Python model."""
        path = f"/{name.replace('.', '/')}"
        wide = self.cast(x, f"{path}/Cast", TensorProto.FLOAT)
        square = self.node("Pow", [wide, self.constant("two", np.float32(2))], f"{path}/Pow")
        if self.shape.opset < 18:
            mean = self.node("ReduceMean", [square], f"{path}/ReduceMean", axes=[-1], keepdims=1)
        else:
            mean = self.node("ReduceMean", [square, self.constant("last", [-1])], f"{path}/ReduceMean", keepdims=1)
        mean = self.node("Add", [mean, self.constant("epsilon", np.float32(self.shape.epsilon))], f"{path}/Add")
        root = self.node("Sqrt", [mean], f"{path}/Sqrt")
        scale = self.node("Div", [self.constant("one", np.float32(1)), root], f"{path}/Div")
        normal = self.cast(self.node("Mul", [wide, scale], f"{path}/Mul"), f"{path}/Cast_1", self.kind)
        return self.node("Mul", [self.stored(f"{name}.weight", [self.shape.width]), normal], f"{path}/Mul_1")

    def positions(self):
        """Cosines and sines [length, head], and the mask [length, length] of later tokens."""
        half = np.arange(0, self.shape.head, 2) / self.shape.head
        shape = self.node("Shape", ["input_ids"], "/model/Shape")
        length = self.node("Gather", [shape, self.constant("index_1", np.int64(1))], "/model/Gather")
        steps = [self.constant("index_0", np.int64(0)), length, self.constant("index_1", np.int64(1))]
        places = self.node("Range", steps, "/model/Range")
        column = self.node("Unsqueeze", [places, self.constant("axis_1", [1])], "/model/Unsqueeze")
        row = self.node("Unsqueeze", [places, self.constant("axis_0", [0])], "/model/Unsqueeze_1")
        later = self.node("Less", [column, row], "/model/Less")
        hidden = [self.constant("hidden", self.dtype(np.finfo(self.dtype).min)), self.constant("shown", self.dtype(0))]
        mask = self.node("Where", [later, *hidden], "/model/Where")
        wide = self.node("Cast", [column], "/model/rotary_emb/Cast", to=TensorProto.FLOAT)
        frequencies = self.constant("inv_freq", (self.shape.theta**-half).astype(np.float32)[None])
        angles = self.node("Mul", [wide, frequencies], "/model/rotary_emb/Mul")
        angles = self.node("Concat", [angles, angles], "/model/rotary_emb/Concat", axis=-1)
        cosines = self.cast(self.node("Cos", [angles], "/model/rotary_emb/Cos"), "/model/rotary_emb/Cast_1", self.kind)
        sines = self.cast(self.node("Sin", [angles], "/model/rotary_emb/Sin"), "/model/rotary_emb/Cast_2", self.kind)
        return shape, cosines, sines, mask

    def rotate(self, x, cosines, sines, path):
        cut = self.constant("half", [self.shape.head // 2])
        ends = [self.constant("begin", [0]), cut], [cut, self.constant("end", [self.shape.head])]
        first, second = (
            self.node("Slice", [x, begin, end, self.constant("head_axis", [3])], f"{path}/Slice_{place}")
            for place, (begin, end) in enumerate(ends)
        )
        turned = self.node("Concat", [self.node("Neg", [second], f"{path}/Neg"), first], f"{path}/Concat", axis=-1)
        parts = self.node("Mul", [x, cosines], f"{path}/Mul"), self.node("Mul", [turned, sines], f"{path}/Mul_1")
        return self.node("Add", list(parts), f"{path}/Add")

    def heads_first(self, x, count, path):
        split = self.node("Reshape", [x, self.constant(f"split_{count}", [0, 0, count, self.shape.head])], f"{path}/Reshape")
        return self.node("Transpose", [split], f"{path}/Transpose", perm=[0, 2, 1, 3])

    def repeated(self, x, path):
        """Keys or values, once for each head that reads them."""
        shape = self.shape
        times = shape.heads // shape.kv_heads
        wide = self.node("Unsqueeze", [x, self.constant("axis_2", [2])], f"{path}/Unsqueeze")
        wide = self.node("Expand", [wide, self.constant("groups", [1, 1, times, 1, 1])], f"{path}/Expand")
        ends = self.constant("joined", [shape.heads, -1, shape.head])
        sizes = self.node("Concat", ["batch", ends], f"{path}/Concat", axis=0)
        return self.node("Reshape", [wide, sizes], f"{path}/Reshape_1")

    def attention(self, x, name, cosines, sines, mask):
        shape, path = self.shape, f"/{name.replace('.', '/')}"
        wide, narrow = shape.width, shape.kv_heads * shape.head
        q, k, v = (
            self.heads_first(self.linear(x, f"{name}.{part}_proj", wide, columns), count, f"{path}/{part}")
            for part, columns, count in (("q", wide, shape.heads), ("k", narrow, shape.kv_heads), ("v", narrow, shape.kv_heads))
        )
        q, k = (self.rotate(x, cosines, sines, f"{path}/{part}_rotary") for part, x in (("q", q), ("k", k)))
        k, v = self.repeated(k, f"{path}/k"), self.repeated(v, f"{path}/v")
        k = self.node("Transpose", [k], f"{path}/Transpose", perm=[0, 1, 3, 2])
        scores = self.node("MatMul", [q, k], f"{path}/MatMul")
        scores = self.node("Mul", [scores, self.constant("scale", self.dtype(shape.head**-0.5))], f"{path}/Mul")
        scores = self.node("Softmax", [self.node("Add", [scores, mask], f"{path}/Add")], f"{path}/Softmax", axis=-1)
        mixed = self.node("Transpose", [self.node("MatMul", [scores, v], f"{path}/MatMul_1")], f"{path}/Transpose_1", perm=[0, 2, 1, 3])
        joined = self.node("Reshape", [mixed, self.constant("flat", [0, 0, wide])], f"{path}/Reshape")
        return self.linear(joined, f"{name}.o_proj", wide, wide)

    def gated(self, x, name):
        shape, path = self.shape, f"/{name.replace('.', '/')}"
        gate, up = (self.linear(x, f"{name}.{part}_proj", shape.width, shape.inner) for part in ("gate", "up"))
        silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{path}/Sigmoid")], f"{path}/Mul")
        return self.linear(self.node("Mul", [silu, up], f"{path}/Mul_1"), f"{name}.down_proj", shape.inner, shape.width)

    def write(self):
        shape = self.shape
        table = self.stored("model.embed_tokens.weight", [shape.vocabulary, shape.width])
        x = self.node("Gather", [table, "input_ids"], "/model/embed_tokens/Gather")
        sizes, *rotary = self.positions()
        first = self.node("Gather", [sizes, self.constant("index_0", np.int64(0))], "/model/Gather_1")
        self.nodes.append(helper.make_node("Unsqueeze", [first, self.constant("axis_0", [0])], ["batch"], "/model/Unsqueeze_2"))
        for layer in range(shape.layers):
            name = f"model.layers.{layer}"
            for norm, part, body in (("input_layernorm", "self_attn", self.attention), ("post_attention_layernorm", "mlp", self.gated)):
                change = body(self.norm(x, f"{name}.{norm}"), f"{name}.{part}", *(rotary if part == "self_attn" else []))
                x = self.node("Add", [x, change], f"/model/layers.{layer}/{part}/residual/Add")
        x = self.norm(x, "model.norm")
        if shape.tied:
            head = self.node("Transpose", [table], "/lm_head/Transpose", perm=[1, 0])
        else:
            head = self.stored("lm_head.weight", [shape.width, shape.vocabulary])
        self.nodes.append(helper.make_node("MatMul", [x, head], ["logits"], "/lm_head/MatMul"))
        self.data.close()
        value = helper.make_tensor_value_info
        inputs = [value("input_ids", TensorProto.INT64, ["batch", "sequence"])]
        outputs = [value("logits", self.kind, ["batch", "sequence", shape.vocabulary])]
        graph = helper.make_graph(self.nodes, "main_graph", inputs, outputs, self.constants)
        ir_version = 8 if shape.opset < 21 else 10
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", shape.opset)], ir_version=ir_version), self.path)


def write_llama(path, shape, weight):
    """Writes the model and its file of weights. `weight(name, dims)` yields the arrays of a weight;
    products have `[inputs, outputs]`.
    """
    Writer(path, shape, weight).write()


def reference_logits(shape, weights, ids):
    """Logits `[length, vocabulary]` of one sequence, computed with numpy in float64."""

    def of(name):
        return weights[name].astype(np.float64)

    def norm(x, name):
        return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + shape.epsilon) * of(f"{name}.weight")

    def split(x, count):
        return x.reshape(length, count, shape.head).swapaxes(0, 1)

    def rotate(x):
        first, second = np.split(x, 2, -1)
        return x * np.cos(angles) + np.concatenate([-second, first], -1) * np.sin(angles)

    length, group = len(ids), shape.heads // shape.kv_heads
    angles = np.arange(length)[:, None] * shape.theta ** (-np.arange(0, shape.head, 2) / shape.head)
    angles = np.concatenate([angles, angles], -1)
    later = np.triu(np.ones((length, length), bool), 1)
    x = of("model.embed_tokens.weight")[ids]
    for layer in range(shape.layers):
        name = f"model.layers.{layer}"
        y = norm(x, f"{name}.input_layernorm")
        q, k, v = (y @ of(f"{name}.self_attn.{part}_proj.weight") for part in "qkv")
        q, k, v = rotate(split(q, shape.heads)), rotate(split(k, shape.kv_heads)), split(v, shape.kv_heads)
        scores = q @ np.repeat(k, group, 0).swapaxes(1, 2) / np.sqrt(shape.head)
        scores = np.exp(np.where(later, -np.inf, scores - scores.max(-1, keepdims=True)))
        mixed = scores / scores.sum(-1, keepdims=True) @ np.repeat(v, group, 0)
        x = x + mixed.swapaxes(0, 1).reshape(length, -1) @ of(f"{name}.self_attn.o_proj.weight")
        y = norm(x, f"{name}.post_attention_layernorm")
        gate, up = (y @ of(f"{name}.mlp.{part}_proj.weight") for part in ("gate", "up"))
        x = x + gate / (1 + np.exp(-gate)) * up @ of(f"{name}.mlp.down_proj.weight")
    head = of("model.embed_tokens.weight").T if shape.tied else of("lm_head.weight")
    return norm(x, "model.norm") @ head
