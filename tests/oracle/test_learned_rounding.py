"""Learned rounding in ONNX Runtime: the file runs there, and its outputs are nearer to the float model's."""

import subprocess

import reference_runtimes
import numpy as np
import onnx
import pytest
from reference_runtimes import sqnr
from schemes import build, node, weight
from tasks import first


def network():
    """Convolutions with and without groups and a stride, and a product, with Relu, Clip and Sigmoid behind them."""
    nodes = [
        node("Conv", ["x", "w1", "b1"], "a", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["a"], "ar"),
        node("Conv", ["ar", "w2", "b2"], "d", pads=[1, 1, 1, 1], group=16),
        node("Clip", ["d", "low", "high"], "dc"),
        node("Conv", ["dc", "w3", "b3"], "e"),
        node("Add", ["e", "ar"], "sum"),
        node("GlobalAveragePool", ["sum"], "pooled"),
        node("Flatten", ["pooled"], "flat"),
        node("Gemm", ["flat", "w4", "b4"], "g", transB=1),
        node("Sigmoid", ["g"], "y"),
    ]
    ends = [onnx.numpy_helper.from_array(np.float32(value), name) for name, value in [("low", 0), ("high", 6)]]
    constants = [weight("w1", 16, 3, 3, 3), weight("b1", 16), weight("w2", 16, 1, 3, 3), weight("b2", 16),
                 weight("w3", 16, 16, 1, 1), weight("b3", 16), weight("w4", 10, 16), weight("b4", 10)]  # fmt: skip
    return build(nodes, constants + ends, [("x", [1, 3, 32, 32])], [("y", [1, 10])], 21)


def pictures(seeds):
    """Smooth pictures."""
    for seed in seeds:
        random = np.random.default_rng(seed)
        coarse = random.standard_normal((1, 3, 8, 8)).repeat(4, 2).repeat(4, 3)
        yield {"x": (coarse + 0.2 * random.standard_normal((1, 3, 32, 32))).astype(np.float32)}


@pytest.mark.parametrize("bits", ["i4", "i8"])
def test_learned_constants_run_and_are_nearer_to_the_float_model(program, tmp_path, bits):
    source = tmp_path / "float.onnx"
    onnx.save(network(), source)
    samples, judged = list(pictures(range(24))), list(pictures(range(100, 140)))
    before = [first(outputs) for outputs in reference_runtimes.run(source, judged)]
    plain = ["--method", "auto", "--weights", bits, "--no-guard"]
    noise = {}
    for name, options in {
        "nearest": [],
        "closed form": ["--rounding", "closed-form"],
        "adaround": ["--config", '{"finetune": {"num_iterations": 400}}'],
        "adaquant": ["--config", '{"finetune": {"algorithm": "adaquant", "num_iterations": 400, "learning_rate": 1e-3}}'],
    }.items():
        folder = tmp_path / name.replace(" ", "")
        folder.mkdir()
        _, target = reference_runtimes.quantize(program, folder, source, samples, *plain, *options)
        onnx.checker.check_model(onnx.load(target), full_check=True)
        noise[name] = sqnr(before, [first(outputs) for outputs in reference_runtimes.run(target, judged)])
    print(bits, noise)
    # The samples that judge within the run are others, so a little may be lost.
    assert noise["closed form"] > noise["nearest"] + (2 if bits == "i4" else -1)
    assert noise["adaround"] > noise["nearest"] + (1 if bits == "i4" else -1)
    assert noise["adaquant"] > noise["nearest"] - 0.5


def test_options_without_use_are_refused_by_name(program, tmp_path):
    source = tmp_path / "float.onnx"
    onnx.save(network(), source)
    for option in ["batch_size", "early_stop", "lr_adjust"]:
        config = f'{{"finetune": {{"{option}": 1}}}}'
        command = [program, "quantize", source, "--demo", "2", "--config", config, "--out", tmp_path / "out.onnx"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0 and f"`{option}`" in done.stderr
