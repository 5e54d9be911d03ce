"""Llama decoders with caches, as exporters write them.

`genai` has ONNX Runtime's operators (GroupQueryAttention, norms of sums), as onnxruntime-genai's
builder writes them; `heads` has RotaryEmbedding and MultiHeadAttention, as its optimizer writes
them; `plain` has ONNX operators only, as optimum's exporter writes them.
"""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
FORMS = ["genai", "genai packed", "heads", "plain"]
LEAST = np.finfo(np.float32).min


@dataclass(frozen=True)
class Sizes:
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head: int = 16
    inner: int = 96
    vocabulary: int = 50
    positions: int = 64

    @property
    def width(self):
        return self.heads * self.head


class Decoder:
    """The graph under construction. Weights come from `weight(name, shape)`, or are random."""

    def __init__(self, form="genai", sizes=Sizes(), weight=None, theta=10000.0, epsilon=1e-5):
        self.form, self.sizes, self.theta, self.epsilon = form, sizes, theta, epsilon
        self.weight = weight or self.random
        self.generator = np.random.default_rng(11)
        self.nodes, self.constants = [], {}

    def random(self, name, shape):
        if len(shape) == 1:
            return self.generator.uniform(0.5, 1.5, shape)
        scale = 1.0 if "embed" in name else shape[0] ** -0.5
        return self.generator.standard_normal(shape) * scale

    def constant(self, name, values):
        self.constants.setdefault(name, numpy_helper.from_array(np.asarray(values), name))
        return name

    def stored(self, name, *shape):
        if name not in self.constants:
            self.constant(name, np.ascontiguousarray(self.weight(name, shape), np.float32))
        return name

    def node(self, operator, inputs, name, outputs=None, domain="", **attributes):
        outputs = outputs or [f"{name}_output_0"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, name, domain=domain, **attributes))
        return outputs[0]

    def ints(self, *values):
        return self.constant("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def int(self, value):
        return self.constant(f"int_{value}", np.int64(value))

    def float(self, value):
        return self.constant(f"float_{value}", np.float32(value))

    def linear(self, x, name, rows, columns):
        return self.node("MatMul", [x, self.stored(f"{name}.weight", rows, columns)], f"/{name.replace('.', '/')}/MatMul")

    def norm(self, x, name):
        path, scale = f"/{name.replace('.', '/')}", self.stored(f"{name}.weight", self.sizes.width)
        if self.form != "plain":
            return self.node("SimplifiedLayerNormalization", [x, scale], f"{path}/SimplifiedLayerNormalization", axis=-1, epsilon=self.epsilon)
        square = self.node("Pow", [x, self.float(2.0)], f"{path}/Pow")
        mean = self.node("ReduceMean", [square, self.ints(-1)], f"{path}/ReduceMean", keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, self.float(self.epsilon)], f"{path}/Add")], f"{path}/Sqrt")
        normal = self.node("Mul", [x, self.node("Reciprocal", [root], f"{path}/Reciprocal")], f"{path}/Mul")
        return self.node("Mul", [scale, normal], f"{path}/Mul_1")

    def norm_of_sum(self, x, change, name):
        """The normalized sum, and the sum."""
        path = f"/{name.replace('.', '/')}"
        if not self.form.startswith("genai"):
            x = self.node("Add", [x, change], f"{path}/residual/Add")
            return self.norm(x, name), x
        fused = f"{path}/SkipLayerNorm"
        inputs = [x, change, self.stored(f"{name}.weight", self.sizes.width)]
        outputs = [f"{fused}_output_0", "", "", f"{fused}_output_3"]
        self.node("SkipSimplifiedLayerNormalization", inputs, fused, outputs, MICROSOFT, epsilon=self.epsilon)
        return outputs[0], outputs[3]

    def tables(self):
        half = np.arange(0, self.sizes.head, 2) / self.sizes.head
        angles = np.arange(self.sizes.positions)[:, None] * self.theta**-half
        return [self.constant(name, of(angles).astype(np.float32)) for name, of in (("cos_cache", np.cos), ("sin_cache", np.sin))]

    def lengths(self):
        """Tokens of each sequence without the last one, and those of the longest."""
        path = "/model/attn_mask_reformat"
        sums = self.node("ReduceSum", ["attention_mask", self.ints(1)], f"{path}/ReduceSum", keepdims=0)
        lengths = self.node("Cast", [self.node("Sub", [sums, self.ints(1)], f"{path}/Sub")], f"{path}/Cast", to=TensorProto.INT32)
        total = self.node("Gather", [self.node("Shape", ["attention_mask"], f"{path}/Shape"), self.int(1)], f"{path}/Gather")
        return lengths, self.node("Cast", [total], f"{path}/total/Cast", to=TensorProto.INT32)

    def mask(self):
        """The addend [batch, 1, new tokens, all tokens] that hides later and padded tokens."""
        path = "/model/mask"
        shape = self.node("Shape", ["input_ids"], f"{path}/Shape")
        batch, new = (self.node("Gather", [shape, self.int(axis)], f"{path}/Gather_{axis}") for axis in (0, 1))
        past = self.node("Gather", [self.node("Shape", ["past_key_values.0.key"], f"{path}/Shape_1"), self.int(2)], f"{path}/Gather_2")
        total = self.node("Add", [past, new], f"{path}/Add")
        sides = [self.node("Unsqueeze", [size, self.ints(0)], f"{path}/Unsqueeze_{at}") for at, size in enumerate((new, total, batch))]
        square = self.node("Concat", sides[:2], f"{path}/Concat", axis=0)
        fill = numpy_helper.from_array(np.array([LEAST], np.float32))
        hidden = self.node("ConstantOfShape", [square], f"{path}/ConstantOfShape", value=fill)
        hidden = self.node("Trilu", [hidden, self.int(1)], f"{path}/Trilu")
        places = self.node("Range", [past, total, self.int(1)], f"{path}/Range")
        column = self.node("Unsqueeze", [places, self.ints(1)], f"{path}/Unsqueeze_3")
        later = self.node("Greater", [self.node("Range", [self.int(0), total, self.int(1)], f"{path}/Range_1"), column], f"{path}/Greater")
        hidden = self.node("Mul", [hidden, self.node("Cast", [later], f"{path}/Cast", to=TensorProto.FLOAT)], f"{path}/Mul")
        # Trilu drops what lies below its diagonal; with earlier tokens that is not enough, so it is filled again.
        hidden = self.node("Where", [later, self.float(LEAST), hidden], f"{path}/Where")
        wide = self.node("Unsqueeze", [hidden, self.ints(0, 1)], f"{path}/Unsqueeze_4")
        sizes = self.node("Concat", [sides[2], self.ints(1), *sides[:2]], f"{path}/Concat_1", axis=0)
        wide = self.node("Expand", [wide, sizes], f"{path}/Expand")
        flags = self.node("Unsqueeze", ["attention_mask", self.ints(1, 2)], f"{path}/Unsqueeze_5")
        flags = self.node("Cast", [flags], f"{path}/Cast_1", to=TensorProto.FLOAT)
        padded = self.node("Equal", [self.node("Add", [wide, flags], f"{path}/Add_1"), self.float(0.0)], f"{path}/Equal")
        # Written into the whole mask by index, as an assignment to a slice is exported.
        made = self.node("Where", [padded, self.float(LEAST), wide], f"{path}/Where_1")
        rows = self.node("Range", [self.int(0), batch, self.int(1)], f"{path}/Range_2")
        rows = self.node("Unsqueeze", [rows, self.ints(1)], f"{path}/Unsqueeze_6")
        return self.node("ScatterND", [wide, rows, made], f"{path}/ScatterND")

    def angles(self):
        """Cosines and sines [batch, 1, tokens, head] of the positions."""
        path, sizes = "/model/rotary_emb", self.sizes
        half = self.theta ** -(np.arange(0, sizes.head, 2) / sizes.head)
        column = self.constant("inv_freq", half.astype(np.float32)[None, :, None])
        batch = self.node("Shape", ["position_ids"], f"{path}/Shape", start=0, end=1)
        wanted = self.node("Concat", [batch, self.ints(-1, 1)], f"{path}/Concat", axis=0)
        same = self.node("Equal", [wanted, self.node("Mul", [self.ints(1, 1, 1), self.ints(-1)], f"{path}/Mul")], f"{path}/Equal")
        wanted = self.node("Where", [same, self.ints(1, 1, 1), wanted], f"{path}/Where")
        column = self.node("Expand", [column, wanted], f"{path}/Expand")
        row = self.node("Unsqueeze", ["position_ids", self.ints(1)], f"{path}/Unsqueeze")
        row = self.node("Cast", [row], f"{path}/Cast", to=TensorProto.FLOAT)
        angles = self.node("Transpose", [self.node("MatMul", [column, row], f"{path}/MatMul")], f"{path}/Transpose", perm=[0, 2, 1])
        angles = self.node("Concat", [angles, angles], f"{path}/Concat_1", axis=-1)
        angles = self.node("Unsqueeze", [angles, self.ints(1)], f"{path}/Unsqueeze_1")
        return self.node("Cos", [angles], f"{path}/Cos"), self.node("Sin", [angles], f"{path}/Sin")

    def by_head(self, x, count, path):
        x = self.node("Reshape", [x, self.ints(0, 0, count, self.sizes.head)], f"{path}/Reshape")
        return self.node("Transpose", [x], f"{path}/Transpose", perm=[0, 2, 1, 3])

    def rotate(self, x, cosines, sines, path):
        half = self.sizes.head // 2
        parts = [
            self.node("Slice", [x, self.ints(begin), self.ints(end), self.ints(3)], f"{path}/Slice_{begin}")
            for begin, end in ((0, half), (half, np.iinfo(np.int64).max))
        ]
        turned = self.node("Concat", [self.node("Neg", [parts[1]], f"{path}/Neg"), parts[0]], f"{path}/Concat", axis=-1)
        parts = self.node("Mul", [x, cosines], f"{path}/Mul"), self.node("Mul", [turned, sines], f"{path}/Mul_1")
        return self.node("Add", list(parts), f"{path}/Add")

    def repeated(self, x, path):
        sizes, path = self.sizes, f"{path}_repeated"
        shape = self.node("Shape", [x], f"{path}/Shape")
        batch, _, length = (self.node("Gather", [shape, self.ints(axis)], f"{path}/Gather_{axis}") for axis in range(3))
        wide = self.node("Unsqueeze", [x, self.ints(2)], f"{path}/Unsqueeze")
        inner = [self.ints(sizes.kv_heads), self.ints(sizes.heads // sizes.kv_heads), length, self.ints(sizes.head)]
        wide = self.node("Expand", [wide, self.node("Concat", [batch, *inner], f"{path}/Concat", axis=0)], f"{path}/Expand")
        joined = self.node("Concat", [batch, self.ints(sizes.heads), length, self.ints(sizes.head)], f"{path}/Concat_1", axis=0)
        return self.node("Reshape", [wide, joined], f"{path}/Reshape")

    def attention(self, x, layer):
        sizes, name = self.sizes, f"model.layers.{layer}.self_attn"
        path, narrow = f"/{name.replace('.', '/')}", sizes.kv_heads * sizes.head
        past, present = ([f"{which}.{layer}.{part}" for part in ("key", "value")] for which in ("past_key_values", "present"))
        if self.form == "genai packed":
            q, k, v = self.linear(x, f"{name}.qkv_proj", sizes.width, sizes.width + 2 * narrow), "", ""
        else:
            widths = {"q": sizes.width, "k": narrow, "v": narrow}
            q, k, v = (self.linear(x, f"{name}.{part}_proj", sizes.width, wide) for part, wide in widths.items())
        if self.form.startswith("genai"):
            inputs = [q, k, v, *past, *self.shared]
            outputs = [f"{path}/GroupQueryAttention/output_0", *present]
            counts = {"num_heads": sizes.heads, "kv_num_heads": sizes.kv_heads, "do_rotary": 1}
            mixed = self.node("GroupQueryAttention", inputs, f"{path}/GroupQueryAttention", outputs, MICROSOFT, **counts)
        elif self.form == "heads":
            mixed = self.of_heads(q, k, v, path, past, present)
        else:
            mixed = self.plain(q, k, v, path, past, present)
        return self.linear(mixed, f"{name}.o_proj", sizes.width, sizes.width)

    def of_heads(self, q, k, v, path, past, present):
        mask, *tables = self.shared
        q, k = (
            self.node("RotaryEmbedding", [x, "position_ids", *tables], f"{path}/{part}_rotary/RotaryEmbedding", domain=MICROSOFT)
            for part, x in (("q", q), ("k", k))
        )
        k, v = (self.by_head(x, self.sizes.kv_heads, f"{path}/{part}") for part, x in (("k", k), ("v", v)))
        for part, x, before, joined in zip("kv", (k, v), past, present):
            self.node("Concat", [before, x], f"{path}/{part}_past/Concat", [joined], axis=2)
        k, v = (self.repeated(joined, f"{path}/{part}") for part, joined in zip("kv", present))
        attributes = {"num_heads": self.sizes.heads}
        return self.node("MultiHeadAttention", [q, k, v, "", "", mask], f"{path}/MultiHeadAttention", domain=MICROSOFT, **attributes)

    def plain(self, q, k, v, path, past, present):
        sizes, (mask, cosines, sines) = self.sizes, self.shared
        q = self.rotate(self.by_head(q, sizes.heads, f"{path}/q"), cosines, sines, f"{path}/q_rotary")
        k = self.rotate(self.by_head(k, sizes.kv_heads, f"{path}/k"), cosines, sines, f"{path}/k_rotary")
        v = self.by_head(v, sizes.kv_heads, f"{path}/v")
        for part, x, before, joined in zip("kv", (k, v), past, present):
            self.node("Concat", [before, x], f"{path}/{part}_past/Concat", [joined], axis=2)
        k, v = (self.repeated(joined, f"{path}/{part}") for part, joined in zip("kv", present))
        k = self.node("Transpose", [k], f"{path}/Transpose", perm=[0, 1, 3, 2])
        # The factor is split over both operands, as in scaled_dot_product_attention.
        root = self.constant("root", np.float32(sizes.head**-0.25))
        q, k = (self.node("Mul", [x, root], f"{path}/Mul_{place}") for place, x in enumerate((q, k)))
        scores = self.node("Add", [self.node("MatMul", [q, k], f"{path}/MatMul"), mask], f"{path}/Add")
        shares = self.node("Softmax", [scores], f"{path}/Softmax", axis=-1)
        shares = self.node("Where", [self.node("IsNaN", [shares], f"{path}/IsNaN"), self.float(0.0), shares], f"{path}/Where")
        mixed = self.node("MatMul", [shares, v], f"{path}/MatMul_1")
        mixed = self.node("Transpose", [mixed], f"{path}/Transpose_1", perm=[0, 2, 1, 3])
        return self.node("Reshape", [mixed, self.ints(0, 0, sizes.width)], f"{path}/Reshape")

    def gated(self, x, name):
        sizes, path = self.sizes, f"/{name.replace('.', '/')}"
        gate, up = (self.linear(x, f"{name}.{part}_proj", sizes.width, sizes.inner) for part in ("gate", "up"))
        silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{path}/act_fn/Sigmoid")], f"{path}/act_fn/Mul")
        return self.linear(self.node("Mul", [silu, up], f"{path}/Mul"), f"{name}.down_proj", sizes.inner, sizes.width)

    def model(self):
        sizes = self.sizes
        x = self.node("Gather", [self.stored("model.embed_tokens.weight", sizes.vocabulary, sizes.width), "input_ids"], "/model/embed_tokens/Gather")
        if self.form.startswith("genai"):
            self.shared = [*self.lengths(), *self.tables()]
        else:
            self.shared = [self.mask(), *(self.angles() if self.form == "plain" else self.tables())]
        normal = self.norm(x, "model.layers.0.input_layernorm")
        for layer in range(sizes.layers):
            change = self.attention(normal, layer)
            normal, x = self.norm_of_sum(x, change, f"model.layers.{layer}.post_attention_layernorm")
            change = self.gated(normal, f"model.layers.{layer}.mlp")
            last = layer + 1 == sizes.layers
            normal, x = self.norm_of_sum(x, change, "model.norm" if last else f"model.layers.{layer + 1}.input_layernorm")
        self.node("MatMul", [normal, self.stored("lm_head.weight", sizes.width, sizes.vocabulary)], "/lm_head/MatMul", ["logits"])
        value, whole, real = helper.make_tensor_value_info, TensorProto.INT64, TensorProto.FLOAT
        inputs = [value("input_ids", whole, ["batch", "sequence"]), value("attention_mask", whole, ["batch", "total_sequence"])]
        if not self.form.startswith("genai"):
            inputs.append(value("position_ids", whole, ["batch", "sequence"]))
        outputs = [value("logits", real, ["batch", "sequence", sizes.vocabulary])]
        for layer in range(sizes.layers):
            for part in ("key", "value"):
                for values, which, length in (inputs, "past_key_values", "past_sequence"), (outputs, "present", "total_sequence"):
                    values.append(value(f"{which}.{layer}.{part}", real, ["batch", sizes.kv_heads, length, sizes.head]))
        graph = helper.make_graph(self.nodes, "main_graph", inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def sample(self, tokens, past=None, hidden=None):
        """Inputs for tokens `[batch, new]`, behind the outputs `past` of a run. `hidden` counts the
        padded tokens at the front of each sequence.
        """
        sizes, (batch, new) = self.sizes, tokens.shape
        before = past["present.0.key"].shape[2] if past else 0
        mask = np.ones([batch, before + new], np.int64)
        for line, count in enumerate(hidden or []):
            mask[line, :count] = 0
        sample = {"input_ids": tokens.astype(np.int64), "attention_mask": mask}
        if not self.form.startswith("genai"):
            sample["position_ids"] = np.maximum(np.cumsum(mask, 1) - 1, 0)[:, before:]
        for layer in range(sizes.layers):
            for part in ("key", "value"):
                empty = np.zeros([batch, sizes.kv_heads, 0, sizes.head], np.float32)
                sample[f"past_key_values.{layer}.{part}"] = past[f"present.{layer}.{part}"] if past else empty
        return sample
