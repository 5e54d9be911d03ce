"""Channel equalization (`equalize`): the float model is unchanged in ONNX Runtime, factors follow
the formula, and integers equal those of the model with factors. If channels differ much,
accuracy improves.
"""

import json

import reference_runtimes
import numpy as np
import onnx
import pytest
from reference_runtimes import sqnr
from onnx import helper
from schemes import build, constants, node, weight
from tasks import first

KEY = "octet.equalized"
# For each model: the number of layers whose output channels can have factors.
MODELS = {"squeezenet": 25, "centerface": 59, "efficientnet_lite0": 16, "ppocr_det": 29, "ppocr_cls": 20, "captcha_crnn": 20}


def remembered(path):
    """The factors stored in a model, for each value."""
    found = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    powers = {value: np.frombuffer(bytes.fromhex(digits), np.int8) for value, digits in json.loads(found[KEY]).items()}
    return {value: np.exp2(power / 8) for value, power in powers.items()}


def reaches(model, samples):
    """Largest magnitude of each channel of every value: of the second axis of four, else of the
    last.
    """
    probe = onnx.ModelProto.FromString(model.SerializeToString())
    del probe.graph.output[:]
    probe.graph.output.extend(helper.ValueInfoProto(name=name) for n in model.graph.node for name in n.output)
    found = {}
    for sample in reference_runtimes.run(probe, samples, optimize=False):
        for name, values in sample.items():
            axis = 1 if values.ndim == 4 else values.ndim - 1
            greatest = np.abs(values).max(tuple(i for i in range(values.ndim) if i != axis))
            found[name] = np.maximum(found.get(name, 0), greatest)
    return found


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.5, 1.0])
def test_factors_are_those_of_the_formula(program, tmp_path, strength):
    random = np.random.default_rng(11)

    def uneven(name, *shape):
        sizes = np.exp2(random.uniform(-3, 3, (shape[0],) + (1,) * (len(shape) - 1)))
        return weight(name, *shape, scale=sizes)

    model = build(
        [
            node("Conv", ["x", "w1", "b1"], "a"),
            node("Relu", ["a"], "b"),
            node("Conv", ["b", "w2"], "c", group=2),
            node("Relu", ["c"], "d"),
            node("Conv", ["d", "w3", "b3"], "y"),
        ],
        [uneven("w1", 8, 3, 3, 3), uneven("b1", 8), uneven("w2", 6, 4, 3, 3), uneven("w3", 5, 6, 1, 1), uneven("b3", 5)],
        [("x", [2, 3, 9, 9])], [("y", [2, 5, 5, 5])],
    )  # fmt: skip
    source = tmp_path / "float.onnx"
    onnx.save(model, source)
    samples = [{"x": random.standard_normal((2, 3, 9, 9)).astype(np.float32)} for _ in range(4)]
    prepared, target = reference_runtimes.quantize(program, tmp_path, source, samples, f"--equalize={strength}")
    before, after, reach = constants(model), constants(onnx.load(prepared)), reaches(model, samples)

    def factors(value, met):
        # A channel that a Relu sets to zero is unchanged.
        dead = reach[value] == 0
        far = np.log2(np.where(dead, 1, reach[value].astype(np.float64)) / reach[value].max())
        power = (1 - strength) * np.log2(met.astype(np.float64) / met.max()) - strength * far
        return np.where(dead, 1, np.exp2(np.rint(8 * power) / 8))

    met = {"a": np.abs(before["w2"]).reshape(2, 3, 4, 9).max((1, 3)).ravel(), "c": np.abs(before["w3"]).max((0, 2, 3))}
    wanted = {"a": factors("b", met["a"]), "c": factors("d", met["c"])}
    for path in prepared, target:
        found = remembered(path)
        assert found.keys() == wanted.keys()
        for value in wanted:
            np.testing.assert_array_equal(found[value], wanted[value])
    first_factors, second = wanted["a"], wanted["c"]
    inputs = np.repeat(first_factors.reshape(2, 1, 4), 3, 1).reshape(6, 4)[:, :, None, None]
    for name, scaled in {
        "w1": before["w1"] * first_factors[:, None, None, None],
        "b1": before["b1"] * first_factors,
        "w2": before["w2"] / inputs * second[:, None, None, None],
        "w3": before["w3"] / second[None, :, None, None],
        "b3": before["b3"],
    }.items():
        np.testing.assert_allclose(after[name], scaled, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_float_model_stays_the_same_function_and_integers_are_those_of_it(name, corpus, program, task, tmp_path):
    part, source = task(name).folds[0], corpus.model(name)
    prepared, target = reference_runtimes.quantize(program, tmp_path, source, part.calibration, "--equalize")
    assert len(remembered(prepared)) >= MODELS[name]
    answers = [[first(outputs) for outputs in reference_runtimes.run(path, part.judged[:4])] for path in (source, prepared)]
    same = sqnr(*answers)
    print(name, f"{same:.0f} dB")
    assert same > 90
    # The model with the factors, quantized as it is, gives the same integers, scales and zero points.
    again = tmp_path / "again"
    again.mkdir()
    _, other = reference_runtimes.quantize(program, again, prepared, part.calibration)
    one, two = constants(onnx.load(target)), constants(onnx.load(other))
    assert one.keys() == two.keys()
    for constant in one:
        np.testing.assert_array_equal(one[constant], two[constant])


@pytest.mark.parametrize("options, gain", [(["--method", "minmax"], 2), (["--method", "auto"], 2), (["--method", "auto", "--per-tensor"], 4)])
def test_more_is_kept_of_a_model_whose_channels_differ_much(options, gain, corpus, program, task, tmp_path):
    of = task("centerface")
    noise, right = {}, {}
    for equalized in False, True:
        before, after, found = [], [], 0
        for part in of.folds:
            before += [first(outputs) for outputs in reference_runtimes.run(corpus.model("centerface"), part.judged)]
            more = ["--equalize"] if equalized else []
            _, target = reference_runtimes.quantize(program, tmp_path, corpus.model("centerface"), part.calibration, *options, *more)
            answers = reference_runtimes.run(target, part.judged)
            after += [first(outputs) for outputs in answers]
            found += of.right(answers, part.truths)[0]
        noise[equalized], right[equalized] = sqnr(before, after), found
    print(options, noise, right)
    assert noise[True] > noise[False] + gain
    assert right[True] >= right[False] - 1
