"""Whole quantized models run in ONNX Runtime literally and in Octet."""

from dataclasses import dataclass
from pathlib import Path

import judge
import onnx
from run_model import run_all


@dataclass
class Whole:
    """A quantized model and a few samples, and what both engines make of them."""

    path: Path
    samples: list
    literal: list  # ONNX Runtime's outputs for each sample
    tensors: dict  # and every quantized tensor of the first
    ours: list
    nodes: list  # what Octet tells of its nodes

    def take_tensors(self):
        """Once: those of large models are gigabytes."""
        taken, self.tensors = self.tensors, None
        assert taken is not None, "they were taken before"
        return taken


def run_whole(path, samples, folder):
    """Both engines run all samples."""
    model, watched = onnx.load(path), folder / "watched.onnx"
    onnx.save(with_all_tensors(model), watched)
    it = judge.session(watched, optimize=False)
    watched.unlink()
    names, outputs = ([value.name for value in values] for values in (it.get_outputs(), model.graph.output))
    tensors = dict(zip(names, it.run(names, samples[0])))
    literal = [{name: tensors[name] for name in outputs}]
    literal += [dict(zip(outputs, it.run(outputs, sample))) for sample in samples[1:]]
    ours, told = run_all(path, samples, folder, "--threads", "2")
    return Whole(path, samples, literal, tensors, ours, told["nodes"])


def constants(model):
    """The names of all values that are the same in every run."""
    known = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if all(not name or name in known for name in node.input):
            known.update(node.output)
    return known


def quantizers(model):
    """The QuantizeLinear nodes of activations."""
    fixed = constants(model)
    return [node for node in model.graph.node if node.op_type == "QuantizeLinear" and node.output[0] not in fixed]


def with_all_tensors(model):
    """The model with every quantized tensor as an output."""
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    there = {output.name for output in watched.graph.output}
    made = [node.output[0] for node in quantizers(watched) if node.output[0] not in there]
    watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    return watched
