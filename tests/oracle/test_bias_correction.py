"""Bias correction against numpy: biases of real models, from the means that ONNX Runtime computes.

The float model is run as Octet prepared it, and what each layer's rounded weights add is found by running that layer
itself: a layer of the weights' errors alone, on the inputs it has in the model, whose outputs have the mean that the
bias must take off. Padding, strides, groups and dilation are ONNX Runtime's to get right here.
"""

import reference_runtimes
import numpy as np
import onnx
import pytest
from reference_runtimes import load_samples
from schemes import constants
from weight_errors import added, dequantized

SAMPLES = 4


def layers(quantized, prepared):
    """For each layer with an integer bias: the float node, its rounded weights, its bias as reals
    and the scale of its bias.
    """
    found = constants(quantized)
    made = {output: node for node in quantized.graph.node for output in node.output}
    floats = {node.input[1]: node for node in prepared.graph.node if len(node.input) == 3}
    for node in quantized.graph.node:
        if node.op_type not in ("Conv", "Gemm", "ConvTranspose") or len(node.input) < 3:
            continue
        weight, bias = made.get(node.input[1]), made.get(node.input[2])
        if weight is None or bias is None or bias.input[0] not in found:
            continue
        float_node = floats[weight.input[0].removesuffix("_quantized")]
        yield float_node, dequantized(found, weight), dequantized(found, bias), found[bias.input[1]]


def mean_outputs(prepared, errors, samples):
    """Channel means over the samples of the output change by these weight errors: {weight's name:
    means}.
    """
    sums = {}
    for sample in added(prepared, errors, samples):
        for name, values in sample.items():
            sums[name] = sums.get(name, 0.0) + values.astype(np.float64).mean(tuple(i for i in range(values.ndim) if i != 1))
    return {name: total / len(samples) for name, total in sums.items()}


@pytest.mark.parametrize("name", ["squeezenet", "efficientnet_lite0", "centerface"])
def test_each_bias_takes_off_what_its_weights_add_in_the_mean(name, corpus, program, tmp_path):
    samples = load_samples(corpus.samples(name))[:SAMPLES]
    source = corpus.model(name)
    prepared, plain = map(onnx.load, reference_runtimes.quantize(program, tmp_path, source, samples, "--bias-correction", "false"))
    _, corrected = map(onnx.load, reference_runtimes.quantize(program, tmp_path, source, samples, "--bias-correction", "true"))
    floats = constants(prepared)
    before = {node.input[1]: (weight, bias, scale) for node, weight, bias, scale in layers(plain, prepared)}
    after = {node.input[1]: (weight, bias, scale) for node, weight, bias, scale in layers(corrected, prepared)}
    assert before.keys() == after.keys() and len(before) > 20
    errors = {weight: found[0] - floats[weight] for weight, found in before.items()}
    means = mean_outputs(prepared, errors, samples)
    size, left = 0.0, 0.0
    for weight, (integers, bias, scale) in before.items():
        assert np.array_equal(integers, after[weight][0]), f"the weight {weight} was changed"
        change = after[weight][1] - bias
        # Values at the border of an image differ from inner ones: the share of positions is smaller
        # there.
        size += np.sum(means[weight] ** 2)
        left += np.sum(np.maximum(np.abs(means[weight] + change) - scale, 0.0) ** 2)
    assert size > 0 and left < 0.01 * size, f"{left / size:.4f} of the mean errors is left"
