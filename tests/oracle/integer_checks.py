"""Checks whole quantized models integer by integer.

Single steps add up over the layers of a model, and where they fall is chance: ONNX Runtime adds
floats in the order of its kernels, which is the processor's. So no two engines end in the same
integers, and how far apart they end says little.

Here nothing adds up. Octet runs the whole model and tells every quantized tensor. The model is
then cut at each of them. ONNX Runtime, with graph optimisation off, makes every tensor of the
tensors that Octet had before it: reals, just before it would round them. Each of Octet's
integers must be what such a real rounds to, within `reference_runtimes.slack`.
"""

from dataclasses import dataclass, field

import reference_runtimes
import numpy as np
import onnx
from onnx import helper, numpy_helper
from run_model import run

SAME = 70.0  # decibels
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "ConvInteger", "MatMulInteger")
BYTES = (np.dtype(np.uint8), np.dtype(np.int8))


@dataclass(frozen=True)
class Rounding:
    """A QuantizeLinear of a value: the tensor it makes, of which reals, and by what."""

    tensor: str
    real: str
    scale: np.ndarray
    zero: np.ndarray
    seen: str  # its name in a watched model, which gives out integers of 8 bits, reals of 16

    def integers(self, values):
        """The integers of what a watched model gave out."""
        if values.dtype in BYTES:
            return values
        return (np.rint(values.astype(np.float64) / self.scale) + self.zero).astype(self.zero.dtype)


def constants(model):
    """The names of all values that are the same in every run."""
    known = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if all(not name or name in known for name in node.input):
            known.update(node.output)
    return known


def roundings(model):
    """Every QuantizeLinear of a value."""
    fixed = constants(model)
    numbers = {tensor.name: tensor for tensor in model.graph.initializer}
    found = []
    for index, node in enumerate(model.graph.node):
        if node.op_type == "QuantizeLinear" and node.output[0] not in fixed:
            scale, zero = (numpy_helper.to_array(numbers[name]) for name in node.input[1:3])
            seen = node.output[0] if zero.dtype in BYTES else f"reals of rounding {index}"
            found.append(Rounding(node.output[0], node.input[0], scale, zero, seen))
    return found


def watched(model):
    """The model with every quantized tensor as an output.

    One of 16 bits as its reals, since a region keeps such integers only where nobody sees them.
    """
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    pairs = {
        node.output[0]: node.input[1:3]
        for node in copy.graph.node
        if node.op_type == "QuantizeLinear"
    }
    there = {output.name for output in copy.graph.output}
    for one in roundings(copy):
        assert one.tensor not in there, f"{one.tensor} is an output of the model, too"
        if one.seen != one.tensor:
            copy.graph.node.append(
                helper.make_node(
                    "DequantizeLinear", [one.tensor, *pairs[one.tensor]], [one.seen], one.seen
                )
            )
        copy.graph.output.append(onnx.ValueInfoProto(name=one.seen))
    return copy


def parts(model, sample, tensors, largest):
    """The model cut at its quantized tensors, which are inputs now.

    The reals before rounding are outputs, if they have at most `largest` values.
    """
    cut = onnx.ModelProto.FromString(model.SerializeToString())
    graph, own = cut.graph, {output.name for output in cut.graph.output}
    for value in graph.input:
        if value.name in sample:
            value.CopyFrom(
                helper.make_tensor_value_info(
                    value.name, value.type.tensor_type.elem_type, sample[value.name].shape
                )
            )
    wanted = dict.fromkeys(output.name for output in graph.output)
    given = {value.name for value in graph.input}
    for one in roundings(model):
        values = tensors[one.tensor]
        graph.input.append(
            helper.make_tensor_value_info(
                one.tensor, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape
            )
        )
        if values.size <= largest and one.real not in given:
            wanted[one.real] = None
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in own)
    nodes = needed([node for node in graph.node if not tensors.keys() & node.output], wanted)
    read = set(wanted).union(*map(reads, nodes))
    inputs = [value for value in graph.input if value.name in read]
    del graph.node[:], graph.input[:], graph.value_info[:]
    graph.node.extend(nodes), graph.input.extend(inputs)
    return cut


def needed(nodes, wanted):
    """The nodes, in order, that the wanted values depend on."""
    wanted, kept = set(wanted), []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted |= reads(node)
            kept.append(node)
    return kept[::-1]


def reads(node):
    """The values that a node reads, those too that the graphs in it take from around them."""
    found = set(node.input)
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            found.update(*map(reads, graph.node))
    return found


def in_float(nodes):
    """The products that run in float, with the reasons."""
    return {
        node["node"]: node["reason"]
        for node in nodes
        if node["reason"] and node["operator"] in PRODUCTS
    }


@dataclass
class Held:
    """The result of checking a run of Octet against ONNX Runtime."""

    nodes: list  # what is told of them
    tensors: int = 0
    integers: int = 0
    farthest: float = 0.0  # by which part of what float sums may move an integer one was moved
    # Products that run on integers, but not where tensors are watched, with the reasons.
    lost: dict = field(default_factory=dict)
    # Differences in words, by tensor.
    wrong: dict = field(default_factory=dict)


def watch(model, seen_model, sample, folder):
    """Octet's runs of a model and of the same with more outputs, and what is to be told."""
    plain_path, watched_path = folder / "plain.onnx", folder / "watched.onnx"
    onnx.save(model, plain_path)
    onnx.save(seen_model, watched_path)
    plain, told = run(plain_path, sample, folder, "--threads", "2")
    seen, how = run(watched_path, sample, folder, "--threads", "2")
    held = Held(told["nodes"])
    known = in_float(told["nodes"])
    held.lost = {
        name: reason for name, reason in in_float(how["nodes"]).items() if name not in known
    }
    for name, values in plain.items():
        if not np.array_equal(values, seen[name], equal_nan=values.dtype.kind == "f"):
            held.wrong[name] = "is another one where tensors are watched"
    return plain, seen, held


def near(found, expected):
    """True if floats are equal up to the order of sums, and integers are equal.

    Sums err by some units of 2^-24, the logarithm of one that is next to nothing by much more.
    So all of them are held together.
    """
    if expected.dtype.kind != "f":
        return np.array_equal(found, expected)
    return found.shape == expected.shape and reference_runtimes.sqnr([expected], [found]) >= SAME


def hold(model, sample, folder, largest=np.inf, peer=None):
    """Octet's run of a model against ONNX Runtime's of its parts, or of those of `peer`."""
    plain, seen, held = watch(model, watched(model), sample, folder)
    steps = roundings(model)
    # ONNX Runtime takes no numpy scalar, which a tensor without axes becomes.
    tensors = {one.tensor: np.asarray(one.integers(seen[one.seen])) for one in steps}
    cut = parts(peer or model, sample, tensors, largest)
    given = sample | tensors
    (made,) = reference_runtimes.run(
        cut, [{value.name: given[value.name] for value in cut.graph.input}], optimize=False
    )
    for one in steps:
        values, real = tensors[one.tensor], made.get(one.real, sample.get(one.real))
        if real is None:
            assert values.size > largest, f"nothing tells what {one.tensor} was rounded from"
            continue
        allowed = reference_runtimes.slack(one.scale, one.zero)
        beyond = reference_runtimes.beyond_half(values, real, one.scale, one.zero)
        held.tensors, held.integers = held.tensors + 1, held.integers + values.size
        held.farthest = max(held.farthest, beyond.max(initial=0) / allowed)
        if wrong := np.count_nonzero(~(beyond <= allowed)):
            held.wrong[one.tensor] = (
                f"{wrong} of {beyond.size} integers are up to {beyond.max() + 0.5:.3f} steps off"
            )
    held.wrong |= {
        name: "is another one than its inputs make"
        for name, values in plain.items()
        if not near(values, made[name])
    }
    return held


def hold_measured(model, sample, folder, peer=None):
    """As `hold`, of a model whose ranges are measured as it runs.

    It is cut at what its DynamicQuantizeLinear nodes read. What these make (integers, scale, zero
    point) is ONNX Runtime's to the bit; the floats in between are near its own.
    """
    measured = [node for node in model.graph.node if node.op_type == "DynamicQuantizeLinear"]
    inputs, own = (
        {value.name for value in values} for values in (model.graph.input, model.graph.output)
    )
    reals = [
        name for name in dict.fromkeys(node.input[0] for node in measured) if name not in inputs
    ]
    integers = [name for node in measured for name in node.output]
    more = onnx.ModelProto.FromString(model.SerializeToString())
    more.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in [*reals, *integers] if name not in own
    )
    plain, seen, held = watch(model, more, sample, folder)

    cut = onnx.ModelProto.FromString((peer or model).SerializeToString())
    made_as = {name: f"{name} as made" for name in reals}
    for node in cut.graph.node:
        node.output[:] = [made_as.get(name, name) for name in node.output]
    cut.graph.input.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, seen[name].shape)
        for name in reals
    )
    del cut.graph.output[:], cut.graph.value_info[:]
    cut.graph.output.extend(
        onnx.ValueInfoProto(name=name)
        for name in dict.fromkeys([*made_as.values(), *integers, *own - made_as.keys()])
    )
    (made,) = reference_runtimes.run(cut, [sample | {name: seen[name] for name in reals}], optimize=False)
    held.tensors, held.integers = len(measured), sum(seen[node.output[0]].size for node in measured)
    held.wrong |= {
        name: "is not ONNX Runtime's"
        for name in integers
        if not np.array_equal(seen[name], made[name])
    }
    for name in dict.fromkeys([*reals, *own]):
        if not near(seen[name], made[made_as.get(name, name)]):
            held.wrong[name] = "is another one than its inputs make"
    return held
