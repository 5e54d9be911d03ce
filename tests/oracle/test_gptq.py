"""GPTQ rounding against numpy: its integers, its errors, and its effect on real tasks.

The published algorithm is written down here in its own form: weights are changed by a factor of the inverse of their
inputs' mean products. Octet never inverts anything, so the two have only the mathematics in common.
"""

import json

import reference_runtimes
import numpy as np
import onnx
import pytest
from reference_runtimes import sqnr
from schemes import build, constants, node, weight
from tasks import first
from weight_errors import added, dequantized

DAMPING, OF_FEW = 0.01, 0.2


def gptq(weights, scales, products, positions, low, high):
    """Integers of rows of weights, by the paper: the error of each is spread over those that are left."""
    size = len(products)
    damped = products + (DAMPING + OF_FEW * size / positions) * np.mean(np.diag(products)) * np.eye(size)
    order = np.argsort(np.diag(products), kind="stable")[::-1]
    upper = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T
    left, integers = weights[:, order].astype(np.float64), np.zeros(weights.shape)
    for k in range(size):
        integers[:, k] = np.clip(np.rint(left[:, k] / scales), low, high)
        error = (left[:, k] - integers[:, k] * scales) / upper[k, k]
        left[:, k:] -= np.outer(error, upper[k, k:])
    back = np.empty_like(integers)
    back[:, order] = integers
    return back


def alike(count, rows, inputs, seed):
    """Rows of inputs that go together."""
    random = np.random.default_rng(seed)
    mixed = random.standard_normal((count, rows, 6)) @ random.standard_normal((6, inputs))
    return [{"x": (part + 0.3 * random.standard_normal((rows, inputs)) + 0.5).astype(np.float32)} for part in mixed]


@pytest.mark.parametrize("element", ["i8", "i4"])
@pytest.mark.parametrize("corrected", [False, True])
def test_integers_are_those_of_the_published_algorithm(program, tmp_path, element, corrected):
    inputs, outputs = 48, 20
    model = build(
        [node("Gemm", ["x", "w", "b"], "y", transB=1)], [weight("w", outputs, inputs), weight("b", outputs)],
        [("x", [16, inputs])], [("y", [16, outputs])], 21,
    )  # fmt: skip
    samples = alike(8, 16, inputs, 5)
    options = ["--rounding", "gptq", "--weights", element, "--no-guard", "--bias-correction", str(corrected).lower()]
    source = tmp_path / "float.onnx"
    onnx.save(model, source)
    _, target = reference_runtimes.quantize(program, tmp_path, source, samples, *options)
    found, floats = constants(onnx.load(target)), constants(model)
    scales, integers = found["w_scale"].astype(np.float64), found["w_quantized"].astype(np.int64)
    rows = np.concatenate([sample["x"] for sample in samples]).astype(np.float64)
    products = rows.T @ rows / len(rows)
    if corrected:
        products -= np.outer(rows.mean(0), rows.mean(0))
    low, high = {"i8": (-127, 127), "i4": (-8, 7)}[element]
    wanted = gptq(floats["w"], scales, products, len(rows), low, high)
    # Octet looks at inputs in 2047 steps: a weight that is nearly between two integers may fall to the other, and those behind it with it.
    assert np.mean(integers == wanted) > (0.9 if element == "i8" else 0.95)

    def square(integers):
        errors = integers * scales[:, None] - floats["w"]
        return np.einsum("oi,ij,oj->", errors, products, errors)

    nearest = np.clip(np.rint(floats["w"] / scales[:, None]), low, high)
    assert square(integers) < 1.05 * square(wanted)
    assert square(integers) < 0.5 * square(nearest)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "ppocr_rec", "minilm"])
def test_what_a_layer_adds_is_less_on_samples_that_were_not_seen(program, corpus, task, tmp_path, name):
    part = task(name).folds[0]
    sums = {}
    for rounding in "nearest", "gptq":
        files = reference_runtimes.quantize(program, tmp_path, corpus.model(name), part.calibration, "--rounding", rounding)
        prepared, made = map(onnx.load, files)
        found, floats = constants(made), constants(prepared)
        linear = {n.input[0].removesuffix("_quantized"): n for n in made.graph.node if n.op_type == "DequantizeLinear"}
        weights = [n.input[1] for n in prepared.graph.node if n.op_type in ("Conv", "Gemm", "MatMul")
                   and n.input[1] in floats and n.input[1] in linear]  # fmt: skip
        errors = {name: dequantized(found, linear[name]) - floats[name] for name in weights}
        outputs = list(added(prepared, errors, part.judged[:4]))
        sums[rounding] = np.array([np.mean([np.mean(np.square(sample[name], dtype=np.float64)) for sample in outputs])
                                   for name in errors])  # fmt: skip
        assert len(errors) >= 18
    gained = 10 * np.log10(sums["nearest"] / sums["gptq"])
    print(name, "decibels by layer", np.round(np.sort(gained), 1))
    assert np.median(gained) > 2
    assert np.mean(gained > 0) > 0.9 and np.min(gained) > -1


@pytest.mark.parametrize("name, gain", [("squeezenet", 3), ("ppocr_rec", 2)])
def test_weights_of_four_bits_keep_more_of_the_model(program, corpus, task, tmp_path, name, gain):
    part = task(name).folds[0]
    before = [first(outputs) for outputs in reference_runtimes.run(corpus.model(name), part.judged)]
    noise, right = {}, {}
    for rounding in "nearest", "gptq":
        options = ["--method", "auto", "--weights", "i4", "--rounding", rounding]
        _, target = reference_runtimes.quantize(program, tmp_path, corpus.model(name), part.calibration, *options)
        answers = reference_runtimes.run(target, part.judged)
        noise[rounding] = sqnr(before, [first(outputs) for outputs in answers])
        right[rounding], _ = task(name).right(answers, part.truths)
    print(name, noise, right)
    assert noise["gptq"] > noise["nearest"] + gain
    assert right["gptq"] >= right["nearest"]


def test_blocks_of_four_bits_keep_more_of_the_model(program, corpus, task, tmp_path):
    part = task("minilm").folds[0]
    before = [first(outputs) for outputs in reference_runtimes.run(corpus.model("minilm"), part.judged)]
    noise = {}
    for method in "rtn", "search", "gptq":
        settings = tmp_path / "settings.json"
        settings.write_text(json.dumps({"scheme": "blocks", "blocks": {"method": method}}))
        calibration = part.calibration if method == "gptq" else []
        _, target = reference_runtimes.quantize(program, tmp_path, corpus.model("minilm"), calibration, "--config", settings)
        noise[method] = sqnr(before, [first(outputs) for outputs in reference_runtimes.run(target, part.judged)])
    print(noise)
    assert noise["gptq"] > max(noise["rtn"], noise["search"]) + 1
