"""Whole quantized models on our integers: every integer follows from its inputs (`integer_checks`)."""

import reference_runtimes
import numpy as np
import onnx
import pytest
from corpus_manifest import FILES
from onnx import numpy_helper
from integer_checks import hold, roundings

# All 625 tensors of it are 2.8 billion integers. Those of up to this size are held.
LARGEST = {"sam2_image_encoder_dynshape": 1 << 20}


@pytest.mark.parametrize("name, whose", FILES)
def test_every_integer_of_a_whole_model_follows_from_those_before_it(
    name, whose, corpus, file_by, tmp_path
):
    sample = reference_runtimes.load_samples(corpus.samples(name))[0]
    held = hold(onnx.load(file_by(name, whose)), sample, tmp_path, LARGEST.get(name, np.inf))
    print(
        f"{name} {whose}: {held.tensors} tensors, {held.integers} integers, "
        f"{held.farthest:.1%} of what sums may move"
    )
    assert not held.wrong, held.wrong
    assert not held.lost, held.lost
    assert held.tensors > 20
    heavy = [node for node in held.nodes if node["operator"] in ("Conv", "Gemm", "MatMul")]
    on_integers = [node for node in heavy if node["region"] is not None]
    assert len(on_integers) >= 0.8 * len(
        heavy
    ), f"{len(on_integers)} of {len(heavy)} products on integers"


def damaged(model, what):
    """The model with a constant of a layer in the middle changed, and the constant's name.

    Of weights and scales, those of the first channel.
    """
    model = onnx.ModelProto.FromString(model.SerializeToString())
    pairs = {
        node.output[0]: node for node in model.graph.node if node.op_type == "DequantizeLinear"
    }
    layers = [node for node in model.graph.node if node.op_type == "Conv"]
    value, weight = (pairs[name] for name in layers[len(layers) // 2].input[:2])
    name = {"weights": weight.input[0], "a scale": weight.input[1], "a zero point": value.input[2]}[
        what
    ]
    (tensor,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
    values = numpy_helper.to_array(tensor).copy()
    channel = np.atleast_1d(values)[0:1]
    channel += (channel / 100 if what == "a scale" else np.ones_like(channel)).astype(values.dtype)
    tensor.CopyFrom(numpy_helper.from_array(values, name))
    return model, name


def behind(model, name):
    """The quantized tensors that are made of this one without another in between."""
    reached, found = {name}, set()
    rounded = {one.tensor for one in roundings(model)}
    for node in model.graph.node:
        if node.output[0] in rounded:
            found |= {node.output[0]} if node.input[0] in reached else set()
        elif reached.intersection(node.input):
            reached.update(node.output)
    return found


@pytest.mark.parametrize("what", ["weights", "a scale", "a zero point"])
def test_one_wrong_number_is_found_where_it_is(what, corpus, file_by, tmp_path):
    model = onnx.load(file_by("squeezenet", "octet"))
    other, name = damaged(model, what)
    held = hold(model, reference_runtimes.load_samples(corpus.samples("squeezenet"))[0], tmp_path, peer=other)
    assert held.wrong.keys() == behind(model, name), held.wrong
