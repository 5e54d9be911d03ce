"""Models of one operator of exported decoders, with random sizes: attentions with caches, rotations,
norms and tables in blocks.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
OPSETS = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
ELEMENTS = {np.dtype(kind): onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in ("f4", "i4", "i8", "u1")}


def one(operator, inputs, outputs, constants=(), domain=MICROSOFT, opset=23, **attributes):
    """A model of one node and its sample. `inputs` are names with arrays, or `None`; sizes are open.
    Names in `constants` are initializers.
    """
    names = [given and given[0] or "" for given in inputs]
    while not names[-1]:
        names.pop()
    node = helper.make_node(operator, names, outputs, "it", domain=domain, **attributes)
    sample = {name: array for name, array in filter(None, inputs) if name not in constants}
    values = [
        helper.make_tensor_value_info(name, ELEMENTS[array.dtype], [f"{name}_{axis}" for axis in range(array.ndim)])
        for name, array in sample.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name]
    tensors = [numpy_helper.from_array(array, name) for name, array in filter(None, inputs) if name in constants]
    graph = helper.make_graph([node], "one", values, results, tensors)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), sample


def floats(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


def tables(random, positions, pairs):
    angles = random.uniform(-3, 3, (positions, pairs))
    return ("cos", np.cos(angles).astype(np.float32)), ("sin", np.sin(angles).astype(np.float32))


def group_query(seed, packed=False, past=None, rotary=False, bias=False, sink=False, room=0, norms=False, **attributes):
    """`past` is the number of earlier tokens, `None` without a cache input; `room` is the unused part
    of the cache. A batch of several sequences has one new token, or none before.
    """
    random = np.random.default_rng(seed)
    before = past or 0
    shared, group, width = int(random.integers(1, 4)), int(random.integers(1, 4)), int(random.choice([16, 32, 48]))
    heads = shared * group
    tokens = int(random.integers(2, 9))
    batch = 1 if before and tokens > 1 and seed % 2 else int(random.integers(1, 4))
    if before and batch > 1:
        tokens = 1
    total = before + tokens
    # Sequences that are shorter than the longest one, where the operator allows that.
    lengths = np.full(batch, total - 1, np.int32)
    if before and batch > 1:
        lengths[1:] -= random.integers(0, before, batch - 1).astype(np.int32)
    wide = (heads + 2 * shared) * width if packed else heads * width
    inputs = [("query", floats(random, batch, tokens, wide))]
    inputs += [None, None] if packed else [(name, floats(random, batch, tokens, shared * width)) for name in ("key", "value")]
    cache = [batch, shared, before + room, width]
    inputs += [None, None] if past is None else [(name, floats(random, *cache)) for name in ("past_key", "past_value")]
    inputs += [("seqlens_k", lengths), ("total", np.array(total, np.int32))]
    inputs += tables(random, total + 3, random.choice([8, width // 16 * 8])) if rotary else [None, None]
    inputs += [None]
    inputs += [("bias", floats(random, *random.choice([[batch, heads], [1, heads], [1, 1]]), tokens, total)) if bias else None]
    inputs += [("sinks", floats(random, heads)) if sink else None, None, None]
    inputs += [(name, floats(random, width)) if norms else None for name in ("q_norm", "k_norm")]
    outputs = ["output", "present_key", "present_value"]
    more = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": int(rotary)} | attributes
    return one("GroupQueryAttention", inputs, outputs, ["cos", "sin", "q_norm", "k_norm", "total", "sinks"], **more)


def with_norms_before(model, sample):
    """ONNX Runtime's CPU has no norms inside of GroupQueryAttention: the same with normalized inputs."""
    changed, sample = onnx.ModelProto.FromString(model.SerializeToString()), dict(sample)
    (node,), tensors = changed.graph.node, {tensor.name: numpy_helper.to_array(tensor) for tensor in changed.graph.initializer}
    for name, scale in ("query", tensors["q_norm"]), ("key", tensors["k_norm"]):
        heads = sample[name].reshape(*sample[name].shape[:2], -1, len(scale))
        normal = heads / np.sqrt(np.mean(heads**2, -1, keepdims=True) + 1e-6) * scale
        sample[name] = normal.reshape(sample[name].shape).astype(np.float32)
    del node.input[9:]
    return changed, sample


def apart(model, sample):
    """ONNX Runtime's CPU has no joined queries, keys and values: the same as three inputs."""
    query, *key = sample.values()
    heads = model.graph.node[0].attribute[0].i
    joined = key[0] if key else query
    parts = [joined[..., place, :].reshape(*joined.shape[:2], -1) for place in range(joined.shape[3])]
    given = [*([query] if key else []), *parts]
    return one("MultiHeadAttention", list(zip(("query", "key", "value"), given)), ["output"], num_heads=heads)


def multi_head(seed, form="flat", past=None, present=True, bias=False, mask=None, addend=False, **attributes):
    """`form` is the layout of keys and values, `mask` the number of axes of the padding mask."""
    random = np.random.default_rng(seed)
    batch, heads, tokens = (int(random.integers(low, high)) for low, high in ((1, 4), (1, 5), (1, 7)))
    width, deep = (int(random.choice([8, 16, 20])) for _ in range(2))
    deep = width if past is not None or form != "flat" else deep
    keys = tokens if past is not None or form == "packed" or attributes.get("unidirectional") else int(random.integers(1, 8))
    total = keys + (past or 0)
    inputs = {
        "flat": [("query", [batch, tokens, heads * width]), ("key", [batch, keys, heads * width]), ("value", [batch, keys, heads * deep])],
        "by head": [("query", [batch, tokens, heads * width]), ("key", [batch, heads, keys, width]), ("value", [batch, heads, keys, deep])],
        "pairs": [("query", [batch, tokens, heads * width]), ("key", [batch, keys, heads, 2, width])],
        "packed": [("query", [batch, tokens, heads, 3, width])],
    }[form]
    inputs = [(name, floats(random, *shape)) for name, shape in inputs]
    inputs += [None] * (3 - len(inputs))
    inputs += [("bias", floats(random, heads * (2 * width + deep))) if bias else None]
    shape = {None: None, 1: [batch], 2: [batch, total], 3: [batch, tokens, total]}[mask]
    shown = None if mask is None else random.integers(1, total + 1, shape) if mask == 1 else random.integers(0, 2, shape)
    if mask in (2, 3):
        # Next to −10000 a score is rounded to 0.001, so each query sees a key.
        shown[..., 0] = 1
    inputs += [None if mask is None else ("mask", shown.astype(np.int32))]
    sizes = [int(random.choice([1, batch])), int(random.choice([1, heads])), tokens, total]
    inputs += [("addend", floats(random, *sizes)) if addend else None]
    cache = [batch, heads, past or 0, width]
    inputs += [None, None] if past is None else [(name, floats(random, *cache)) for name in ("past_key", "past_value")]
    outputs = ["output", "present_key", "present_value"] if present else ["output"]
    return one("MultiHeadAttention", inputs, outputs, ["bias"], num_heads=heads, **attributes)


def rotary(seed, axes=3, partly=False, offset=False, domain=MICROSOFT, by_token=False, interleaved=0):
    random = np.random.default_rng(seed)
    batch, heads, tokens = (int(random.integers(1, 5)) for _ in range(3))
    width = int(random.choice([16, 32]))
    pairs = 4 if partly else width // 2
    shape = [batch, tokens, heads * width] if axes == 3 else [batch, heads, tokens, width]
    places = ("positions", random.integers(0, 9, [1] if offset else [batch, tokens]))
    attributes = {"interleaved": interleaved} | ({"num_heads": heads} if partly or (domain == "" and axes == 3) else {})
    attributes |= {"rotary_embedding_dim": 2 * pairs} if partly else {}
    cosines = tables(random, 16, pairs)
    if by_token:
        cosines = [(name, table[places[1]]) for name, table in cosines]
    given = [("x", floats(random, *shape))]
    given += [*cosines, None if by_token else places] if domain == "" else [places, *cosines]
    return one("RotaryEmbedding", given, ["output"], [] if by_token else ["cos", "sin"], domain=domain, **attributes)


def norm(seed, operator="SimplifiedLayerNormalization", axis=-1, skip=None, bias=False, outputs=("output",), domain="", **attributes):
    random = np.random.default_rng(seed)
    shape = [int(size) for size in random.integers(1, 7, 3)]
    inputs = [("x", floats(random, *shape))]
    if skip:
        inputs += [("skip", floats(random, *{"whole": shape, "row": [1, *shape[1:]], "matrix": shape[1:]}[skip]))]
    else:
        attributes |= {"axis": axis}
    inputs += [("scale", floats(random, *(shape[-1:] if skip else shape[axis:])))]
    inputs += [("bias", floats(random, shape[-1]))] if bias else []
    return one(operator, inputs, list(outputs), ["scale", "bias"], domain=domain, epsilon=1e-5, **attributes)


def table(seed, bits=4, zero_points=False, typed=None, **attributes):
    """A lookup of rows; `typed` is the four-bit type of the table in place of bytes."""
    random = np.random.default_rng(seed)
    rows, block = int(random.integers(2, 9)), int(random.choice([16, 32]))
    columns = int(random.choice([32, 48, 80]))
    blocks = -(-columns // block)
    each = 1 if typed else 8 // bits
    packed_zeros = -(-blocks // each)
    # ONNX Runtime rounds the rows of zero points up to bytes, and four-bit types must fill theirs.
    indices = random.integers(-rows, rows, [int(size) for size in random.integers(1, 4, 2)])
    made = [("data", [rows, columns // each]), ("zeros", [rows, blocks if typed else packed_zeros])]
    tensors = []
    for name, shape in made[: 1 + zero_points]:
        if typed:
            low, high = (-8, 8) if typed == TensorProto.INT4 else (0, 16)
            tensors.append(helper.make_tensor(name, typed, shape, random.integers(low, high, int(np.prod(shape))).tolist()))
        else:
            tensors.append(numpy_helper.from_array(random.integers(0, 256, shape).astype(np.uint8), name))
    tensors.append(numpy_helper.from_array(floats(random, rows, blocks), "scales"))
    names = ["data", "indices", "scales", *(["zeros"] if zero_points else [])]
    more = {"gather_axis": 0, "quantize_axis": 1, "block_size": block, "bits": bits} | attributes
    node = helper.make_node("GatherBlockQuantized", names, ["output"], "it", domain=MICROSOFT, **more)
    value = helper.make_tensor_value_info("indices", TensorProto.INT64, ["one", "other"])
    result = helper.make_tensor_value_info("output", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "one", [value], [result], tensors)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10), {"indices": indices}
