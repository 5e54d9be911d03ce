"""Each calibration method against its oracle, tensor by tensor.

ONNX Runtime's calibrators judge `minmax`, `moving-average`, `ort-percentile` and `ort-entropy`; plain numpy over all
values judges the others. To compare numbers and not engines, what a real model makes of
real samples is recorded once and fed to both as the inputs of a probe: a model of one Add of 1 for each tensor, which
every engine rounds the same.
"""

import json
import subprocess
from functools import cache

import numpy as np
import onnx
import pytest
from reference_runtimes import load_samples, session
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationMethod
from onnxruntime.quantization.calibrate import CalibrationDataReader, create_calibrator

MODELS = ["squeezenet", "efficientnet_lite0", "centerface", "ppocr_cls"]
SAMPLES, TENSORS = 3, 20


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self._samples = iter(samples)

    def get_next(self):
        return next(self._samples, None)


def record(path, samples):
    """Some of the float tensors inside a model, from all over it, for each sample."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    floats = [v.name for v in model.graph.value_info if v.type.tensor_type.elem_type == TensorProto.FLOAT]
    constants = {t.name for t in model.graph.initializer} | {
        o for node in model.graph.node if node.op_type == "Constant" for o in node.output}
    floats = [name for name in floats if name not in constants]
    floats = floats[:: max(1, len(floats) // TENSORS)][:TENSORS]
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in floats)
    it = session(model, optimize=False)
    return [dict(zip(floats, it.run(floats, sample))) for sample in samples]


def probe(sizes):
    """A model that adds 1 to each of its inputs."""
    inputs = [helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, [size]) for i, size in enumerate(sizes)]
    outputs = [helper.make_tensor_value_info(f"o{i}", TensorProto.FLOAT, [size]) for i, size in enumerate(sizes)]
    nodes = [helper.make_node("Add", [f"t{i}", "one"], [f"o{i}"], f"add{i}") for i in range(len(sizes))]
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")
    graph = helper.make_graph(nodes, "probe", inputs, outputs, [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.fixture(scope="module")
def probes(corpus, tmp_path_factory):
    """Maps a model's name to the path of its probe and the recorded samples, cached."""

    @cache
    def make(name):
        folder = tmp_path_factory.mktemp(name)
        if name == "odd":
            samples = odd_samples()
        else:
            recorded = record(corpus.model(name), load_samples(corpus.samples(name))[:SAMPLES])
            samples = [{f"t{i}": a.ravel() for i, a in enumerate(one.values())} for one in recorded]
        onnx.save(probe([a.size for a in samples[0].values()]), folder / "probe.onnx")
        for index, sample in enumerate(samples):
            np.savez(folder / f"{index}.npz", **sample)
        return folder / "probe.onnx", samples

    return make


def odd_samples():
    """Rare distributions that calibrators have to handle."""
    random = np.random.default_rng(5)
    bell = random.standard_normal((3, 9000)).astype(np.float32)
    makers = [
        lambda x: np.maximum(x, 0), lambda x: np.clip(x, -1, 1), lambda x: x**5, lambda x: np.round(x * 8) / 8,
        lambda x: x * 0 + 3, lambda x: x * 0, lambda x: x * 0 - 1e-30, lambda x: -np.abs(x) - 5,
        lambda x: np.abs(x) * 1e30, lambda x: x * 1e-30, lambda x: np.clip(x, 0, 6), lambda x: np.exp(x * 3),
        lambda x: np.abs(x) + 7, lambda x: x.astype(np.float16).astype(np.float32),
    ]  # fmt: skip
    return [{f"t{i}": make(x).astype(np.float32) for i, make in enumerate(makers)} for x in bell]


def ours(program, model, method, folder, *more):
    """The ranges that Octet finds, by tensor."""
    samples = sorted(model.parent.glob("*.npz")) if not more or more[0] != "--calib" else []
    command = [program, "quantize", model, "--out", folder / "q.onnx", "--save-ranges", folder / "ranges.json",
               "--method", method, "--no-guard"]  # fmt: skip
    if samples:
        command += ["--calib", *samples]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "ranges.json").read_text())
    return {name: np.array(ends, np.float32) for name, ends in found.items()}


def theirs(model, samples, method, folder, **options):
    """The ranges that ONNX Runtime finds when all samples are collected at once, by tensor."""
    calibrator = create_calibrator(
        str(model), augmented_model_path=str(folder / "augmented.onnx"), calibrate_method=method, extra_options=options)
    calibrator.collect_data(Reader(samples))
    found = calibrator.compute_data()
    ends = {name: [float(np.ravel(v)[0]) for v in data.range_value] for name, data in found.items()}
    return {name: np.array(pair, np.float32) for name, pair in ends.items()}


def covered(ends):
    """The range of a quantizer: zero is included in every range."""
    return min(float(ends[0]), 0.0), max(float(ends[1]), 0.0)


def check_same(mine, other, tolerance=0.0):
    assert mine, "no range was found"
    wrong = []
    for name, ends in mine.items():
        a, b = covered(ends), covered(other[name])
        allowed = tolerance * max(1e-38, b[1] - b[0])
        if abs(a[0] - b[0]) > allowed or abs(a[1] - b[1]) > allowed:
            wrong.append(f"{name}: ours {a}, theirs {b}")
    assert not wrong, f"{len(wrong)} of {len(mine)} differ:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_minmax_is_onnx_runtimes(name, probes, program, tmp_path):
    model, samples = probes(name)
    check_same(ours(program, model, "minmax", tmp_path), theirs(model, samples, CalibrationMethod.MinMax, tmp_path))


@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_moving_average_is_the_mean_over_samples(name, probes, program, tmp_path):
    # Theirs adds up in f32.
    model, samples = probes(name)
    other = theirs(model, samples, CalibrationMethod.MinMax, tmp_path, moving_average=True)
    check_same(ours(program, model, "moving-average", tmp_path), other, 1e-6)


@pytest.mark.parametrize("percent", [99.999, 99.9, 90.0, 100.0])
@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_ort_percentile_is_onnx_runtimes(name, percent, probes, program, tmp_path):
    model, samples = probes(name)
    other = theirs(model, samples, CalibrationMethod.Percentile, tmp_path, percentile=percent)
    check_same(ours(program, model, f"ort-percentile:{percent}", tmp_path), other)


@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_ort_entropy_with_its_defaults_is_onnx_runtimes_and_minmax(name, probes, program, tmp_path):
    model, samples = probes(name)
    mine = ours(program, model, "ort-entropy", tmp_path)
    check_same(mine, theirs(model, samples, CalibrationMethod.Entropy, tmp_path))
    check_same(mine, ours(program, model, "minmax", tmp_path))


@pytest.mark.parametrize("bins, levels", [(512, 128), (300, 37)])
@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_ort_entropy_is_onnx_runtimes(name, bins, levels, probes, program, tmp_path):
    model, samples = probes(name)
    other = theirs(model, samples, CalibrationMethod.Entropy, tmp_path, num_bins=bins, num_quantized_bins=levels)
    check_same(ours(program, model, f"ort-entropy:{bins}/{levels}", tmp_path), other)


@pytest.mark.parametrize("name", ["squeezenet", "ppocr_cls"])
def test_a_whole_model_calibrates_as_in_onnx_runtime(name, corpus, program, tmp_path):
    # Two engines: activations differ in their last bits, and a percentile by a bin of 2048 where a value moved.
    samples = tmp_path / "samples"
    samples.mkdir()
    for file in sorted(corpus.samples(name).glob("*.npz"))[:SAMPLES]:
        (samples / file.name).symlink_to(file)
    prepared = tmp_path / "prepared.onnx"
    for method, theirs_is, tolerance in [
        ("minmax", CalibrationMethod.MinMax, 1e-4), ("ort-percentile", CalibrationMethod.Percentile, 1.5 / 2048),
    ]:  # fmt: skip
        mine = ours(program, corpus.model(name), method, tmp_path, "--calib", samples, "--save-prepared", prepared)
        check_same(mine, theirs(prepared, load_samples(samples), theirs_is, tmp_path), tolerance)


def values_of(samples, name):
    """All values of a tensor of the probe, in order."""
    index = int(name[1:])
    values = np.concatenate([sample[f"t{index}"] for sample in samples])
    return np.sort(values + np.float32(1) if name[0] == "o" else values)


def bin_width(values):
    """The width of our bins: 2048 of them from zero to the next power of two."""
    return 2.0 ** (np.frexp(max(-float(values[0]), float(values[-1]), 1e-45))[1] - 11)


@pytest.mark.parametrize("percent", [99.99, 99.0, 75.0])
@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_percentile_is_that_of_all_values_within_a_bin(name, percent, probes, program, tmp_path):
    model, samples = probes(name)
    for tensor, (low, high) in ours(program, model, f"percentile:{percent}", tmp_path).items():
        values = values_of(samples, tensor)
        cut = int((1 - percent / 100) * len(values) / 2)
        allowed = 1.001 * bin_width(values)
        assert abs(low - values[cut]) <= allowed, (tensor, low, values[cut])
        assert abs(high - values[-1 - cut]) <= allowed, (tensor, high, values[-1 - cut])


def weighed(values):
    """The values, or where they are many the means of 2^16 bins with their counts: much finer than our own."""
    values = values.astype(np.float64)
    if len(values) <= 1 << 16:
        return values, np.ones(len(values))
    ends = (values[0], values[-1] if values[-1] > values[0] else values[0] + 1)
    counts, _ = np.histogram(values, 1 << 16, ends)
    sums, _ = np.histogram(values, 1 << 16, ends, weights=values)
    return sums[counts > 0] / counts[counts > 0], counts[counts > 0].astype(np.float64)


def rounding_error(values, counts, low, high, integers=255, power=2):
    """The cost of 8 bits between these ends, by ONNX's formulas: the mean of the errors to this
    power.
    """
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    scale = (high - low) / integers
    if scale < 1.2e-38:
        return float(np.average(np.abs(values) ** power, weights=counts))
    zero = round(-low / scale)
    found = (np.clip(np.round(values / scale) + zero, 0, integers) - zero) * scale
    return float(np.average(np.abs(values - found) ** power, weights=counts))


def recorded_only(found):
    """Without the sums: a Relu's zeros plus 1 are one value many times, whose place in its bin no histogram tells."""
    return {name: ends for name, ends in found.items() if name[0] == "t"}


@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_mse_is_as_good_as_the_best_of_many_ranges(name, probes, program, tmp_path):
    model, samples = probes(name)
    minmax = ours(program, model, "minmax", tmp_path)
    for tensor, ends in recorded_only(ours(program, model, "mse", tmp_path)).items():
        values, counts = weighed(values_of(samples, tensor))
        low, high = (float(v) for v in minmax[tensor])
        whole, mine = rounding_error(values, counts, low, high), rounding_error(values, counts, *ends)
        if len(np.unique(values)) < 200:
            # If values take few positions, a bin does not show where on the steps they are.
            assert mine <= whole * 1.1 + 1e-75, (tensor, ends, mine, whole)
            continue
        parts = np.linspace(0.05, 1, 20)
        lows, highs = (low * parts if low < 0 else [low]), (high * parts if high > 0 else [high])
        best = min(rounding_error(values, counts, a, b) for a in lows for b in highs)
        assert mine <= best * 1.05 + 1e-75, (tensor, ends, mine, best)


@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_mse_power_of_two_has_such_scales_and_the_best_of_them(name, probes, program, tmp_path):
    model, samples = probes(name)
    options = ["--activations", "i8", "--symmetric-activations"]
    for tensor, (low, high) in recorded_only(
        ours(program, model, "mse-power-of-two", tmp_path, *options)
    ).items():
        values, counts = weighed(values_of(samples, tensor))
        if not values.any():
            continue
        scale = (float(high) - float(low)) / 254
        mantissa, exponent = np.frexp(scale)
        assert mantissa == 0.5 and low == -high, (tensor, low, high)

        def cost(exponent, values=values, counts=counts):
            step = 2.0**exponent
            return np.average((values - np.clip(np.round(values / step), -127, 127) * step) ** 2, weights=counts)

        best = min(cost(e) for e in range(exponent - 5, exponent + 4))
        assert cost(exponent - 1) <= best * 1.03 + 1e-75, (tensor, scale)


@pytest.mark.parametrize("measure", ["mae", "mse"])
@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_layerwise_percentile_is_the_one_of_three_with_the_least_error(name, measure, probes, program, tmp_path):
    model, samples = probes(name)
    percents = ["99.99", "99.999", "99.99999"]
    three = [ours(program, model, f"percentile:{percent}", tmp_path) for percent in percents]
    power = {"mae": 1, "mse": 2}[measure]
    for tensor, ends in recorded_only(ours(program, model, f"layerwise-percentile:{measure}", tmp_path)).items():
        candidates = [found[tensor] for found in three]
        assert any(np.array_equal(ends, candidate) for candidate in candidates), (tensor, ends, candidates)
        values, counts = weighed(values_of(samples, tensor))
        if len(np.unique(values)) < 200:
            continue  # Where values stand on few places, no bin tells where on the steps they fall.
        mine, *errors = (rounding_error(values, counts, *pair, power=power) for pair in (ends, *candidates))
        assert mine <= min(errors) * 1.05 + 1e-75, (tensor, mine, errors)


def half(values):
    """The width of the shortest interval that holds half of the values."""
    count = -(-len(values) // 2)
    return float((values[count - 1 :].astype(np.float64) - values[: len(values) - count + 1]).min())


@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_auto_is_the_widest_range_that_costs_hardly_more_than_the_best(name, probes, program, tmp_path):
    model, samples = probes(name)
    methods = ["minmax", "mse", *(f"percentile:{percent}" for percent in ("99.9", "99.99", "99.999", "99.9999"))]
    others = [ours(program, model, method, tmp_path) for method in methods]
    judged = 0
    for tensor, ends in recorded_only(ours(program, model, "auto", tmp_path)).items():
        all_values = values_of(samples, tensor)
        values, counts = weighed(all_values)
        if len(np.unique(values)) < 200:
            continue
        judged += 1

        def width(pair):
            low, high = covered(pair)
            return high - low

        def allowed(pair, bulk=half(all_values)):
            return 1.5 if bulk * 255 >= 20 * width(pair) else 1.1

        candidates = [found[tensor] for found in others]
        costs = [rounding_error(values, counts, *pair) for pair in candidates]
        least = min(costs)
        mine = rounding_error(values, counts, *ends)
        assert mine <= 1.05 * allowed(ends) * least + 1e-75, (tensor, ends, mine, least)
        # A clearly sufficient range is not widened: a histogram determines costs to a few
        # hundredths.
        good = [pair for pair, cost in zip(candidates, costs) if cost * 1.05 <= allowed(pair) * least]
        assert all(width(pair) <= width(ends) * 1.001 for pair in good), (tensor, ends, good)
    assert judged > 5


def divergence(counts, start, end, levels):
    """Information lost in bits with this many levels from bin `start` to before `end`, by the
    definition, corrected for chance (Miller and Madow).
    """
    kept = counts[start:end].copy()
    told = kept.copy()
    told[0] += counts[:start].sum()
    told[-1] += counts[end:].sum()
    levels = min(levels, len(kept))
    edges = [level * len(kept) // levels for level in range(levels)]
    filled = np.add.reduceat((kept > 0).astype(float), edges)
    shares = np.divide(np.add.reduceat(kept, edges), filled, out=np.zeros(levels), where=filled > 0)
    spread = np.repeat(shares, np.diff([*edges, len(kept)])) * (kept > 0)
    there = told > 0
    p, q = told[there] / told.sum(), spread[there] / spread.sum()
    by_chance = (filled.sum() - (filled > 0).sum()) / (2 * told.sum() * np.log(2))
    return float((p * np.log2(p / q)).sum() - by_chance)


@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_entropy_loses_no_more_than_the_best_of_many_ranges(name, probes, program, tmp_path):
    model, samples = probes(name)
    judged = 0
    for tensor, ends in recorded_only(ours(program, model, "entropy", tmp_path)).items():
        values = values_of(samples, tensor)
        width, values = bin_width(values), values[values != 0].astype(np.float64)
        if len(np.unique(values)) < 200:
            continue
        judged += 1
        places = np.floor(values / width).astype(int)
        counts = np.bincount(places - places[0]).astype(float)
        inside = np.cumsum(counts)
        # Our ends are edges of bins, or the outermost values.
        start = max(0, round(float(ends[0]) / width) - places[0]) if ends[0] > values[0] else 0
        end = min(len(counts), round(float(ends[1]) / width) - places[0]) if ends[1] < values[-1] else len(counts)
        mine = divergence(counts, start, end, 256)
        filled = np.flatnonzero(counts)
        below = filled if values[0] < 0 < values[-1] else filled[:1]
        starts = sorted({0, *below[:: max(1, len(below) // 12)]})
        tops = [*filled[:: max(1, len(filled) // 80)], filled[-1]]
        best = min(
            divergence(counts, low, top + 1, 256) for low in starts for top in tops
            if top - low >= 256 and 2 * counts[low : top + 1].sum() >= inside[-1])
        whole = divergence(counts, 0, len(counts), 256)
        # Ours moves one end at a time, and may miss the best pair of ends by a little.
        assert mine <= best + 0.05 * abs(best) + 0.02 * (whole - best) + 1e-6, (tensor, ends, mine, best, whole)
    assert judged > 5
