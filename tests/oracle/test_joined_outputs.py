"""A Concat of boxes and scores: each part is compared by itself, with ONNX Runtime's result beside
it.

The model is YOLOv8n with random weights. Its boxes span 0 to 640 pixels and more, its scores 0 to
1. One scale of eight bits for both has steps of more than two, so that every score rounds to 0.
The noise over all values doesn't show it.
"""

import subprocess

import reference_runtimes
import numpy as np
import onnx
import pytest
from architectures import build
from architectures.network import save
from onnx import TensorProto, helper

BOXES, SIDE = 4, 640
PARTS = {"boxes": slice(0, BOXES), "scores": slice(BOXES, None), "both at once": slice(None)}


def noise(random):
    """A picture of coarse to fine noise, so that cells of every size see something."""
    layers = [random.random((1, 3, SIDE // size, SIDE // size)) for size in (64, 8, 1)]
    grown = [np.kron(layer, np.ones((size, size))) for layer, size in zip(layers, (64, 8, 1))]
    return (sum(grown) / 3).astype(np.float32)


@pytest.fixture(scope="module")
def detector(tmp_path_factory):
    """The model, samples to calibrate with, one to judge by and the float output for it."""
    folder = tmp_path_factory.mktemp("joined")
    source, samples = folder / "yolo.onnx", folder / "samples"
    save(build("yolo8n_640"), source)
    random = np.random.default_rng(2)
    made = [{"images": noise(random)} for _ in range(4)]
    reference_runtimes.save_samples(samples, made[:3])
    reference = reference_runtimes.run(source, made[3:])[0]["output0"]
    boxes, scores = reference[:, PARTS["boxes"]], reference[:, PARTS["scores"]]
    assert boxes.max() > 2.2 * 255, "a step of the common scale must be more than two"
    assert 0 <= scores.min() < 0.01 and 0.9 < scores.max() <= 1
    return source, samples, made, reference


def quantized(program, source, samples, out, *options):
    """The report of octet; the file is `out`."""
    command = [program, "quantize", source, "--calib", samples, "--method", "minmax", "--out", out, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def in_two(source, out):
    """The model with two outputs, the boxes and the scores, instead of the Concat."""
    model = onnx.load(source)
    last = model.graph.node.pop()
    assert last.op_type == "Concat" and len(last.input) == 2
    del model.graph.output[:]
    for name in last.input:
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    onnx.save(model, out)
    return out


def per_part(reference, found):
    """SQNR of each part in dB."""
    pairs = {name: ([reference[:, part]], [found[:, part]]) for name, part in PARTS.items()}
    return {name: float(reference_runtimes.sqnr(*pair)) for name, pair in pairs.items()}


def wide(reference):
    """SQNR of the scores in dB, rounded to 16 bits of the range of all values."""
    scores, step = reference[:, PARTS["scores"]], np.ptp(reference) / 65535
    return float(reference_runtimes.sqnr([scores], [np.round(scores / step) * step]))


def test_boxes_do_not_cost_the_scores(detector, program, tmp_path):
    source, samples, made, reference = detector
    outputs = {}
    for name, options in {"guarded": [], "not guarded": ["--no-guard"]}.items():
        out = tmp_path / f"{name}.onnx"
        said = quantized(program, source, samples, out, *options)
        if name == "guarded":
            assert "`output0`" in said, "the choice is not reported"
        outputs[name] = reference_runtimes.run(out, made[3:])[0]["output0"]
    theirs = tmp_path / "theirs.onnx"
    reference_runtimes.ort_quantize(source, theirs, made[:3])
    outputs["ONNX Runtime"] = reference_runtimes.run(theirs, made[3:])[0]["output0"]
    apart = tmp_path / "apart.onnx"
    quantized(program, in_two(source, tmp_path / "two.onnx"), samples, apart)
    outputs["apart"] = np.concatenate(list(reference_runtimes.run(apart, made[3:])[0].values()), axis=1)
    figures = {name: per_part(reference, found) for name, found in outputs.items()}
    for name, parts in figures.items():
        print(f"{name}: " + ", ".join(f"{part} {value:.1f} dB" for part, value in parts.items()))
    # Over both parts together, ONNX Runtime's figure is good although the scores are lost.
    assert figures["ONNX Runtime"]["both at once"] > 20
    assert not outputs["ONNX Runtime"][:, PARTS["scores"]].any()
    # Ours keeps what the other layers leave of the scores, but for the noise of 16 bits.
    noises = [10 ** (-value / 10) for value in (figures["apart"]["scores"], wide(reference))]
    assert figures["apart"]["scores"] > 20
    assert figures["guarded"]["scores"] > -10 * np.log10(sum(noises)) - 1
    assert figures["guarded"]["boxes"] >= figures["ONNX Runtime"]["boxes"] - 0.5
