"""A Concat of boxes and scores: each part is judged by itself, with ONNX Runtime's beside it.

YOLOv8n without its trained weights; its head is given the cells and strides that were left out with them, halved, so that
boxes span 0 to 320, and scores that span 0 to 1. One scale for both leaves next to nothing of the scores, and the
noise over all values doesn't show it.
"""

import subprocess

import judge
import numpy as np
import onnx
import pytest
from corpus import inflate
from onnx import numpy_helper

BOXES, SIDE, STRIDES = 4, 640, (8, 16, 32)


def give_a_head(path):
    model = onnx.load(path)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}

    def put(name, values):
        constants[name].CopyFrom(numpy_helper.from_array(values.astype(np.float32), name))

    cells = [np.stack(np.meshgrid(*[np.arange(SIDE // stride) + 0.5] * 2)).reshape(2, -1) for stride in STRIDES]
    put("heads.centres", np.concatenate(cells, axis=1)[None])
    put("heads.scale", np.concatenate([np.full(found.shape[1], stride / 2) for found, stride in zip(cells, STRIDES)])[None])
    for head in range(3):
        weight, bias = (f"heads.cls.{head}.2.{part}" for part in ("weight", "bias"))
        put(weight, numpy_helper.to_array(constants[weight]) * 12)
        put(bias, numpy_helper.to_array(constants[bias]) - 3)
    onnx.save(model, path)


@pytest.fixture(scope="module")
def detector(tmp_path_factory):
    """The model, samples to calibrate with, one to judge by and the float output for it."""
    folder = tmp_path_factory.mktemp("joined")
    source, samples = folder / "yolo.onnx", folder / "samples"
    inflate("yolo8n_640.skeleton.onnx", source)
    give_a_head(source)
    random = np.random.default_rng(2)
    # Noise that is coarse to fine, so that cells of every size see something.
    made = [sum(np.kron(random.random((1, 3, SIDE // size, SIDE // size)), np.ones((size, size))) for size in (64, 8, 1)) / 3
            for _ in range(4)]
    made = [{"images": image.astype(np.float32)} for image in made]
    judge.save_samples(samples, made[:3])
    reference = judge.run(source, made[3:])[0]["output0"]
    assert -20 < reference[:, :BOXES].min() and 250 < reference[:, :BOXES].max() < 340
    assert reference[:, BOXES:].min() < 0.01 and reference[:, BOXES:].max() > 0.9
    return source, samples, made, reference


def per_part(path, made, reference):
    """Signal over noise in dB: of boxes, of scores, of both at once."""
    found = judge.run(path, made[3:])[0]["output0"]
    return tuple(float(judge.sqnr([reference[:, part]], [found[:, part]]))
                 for part in (slice(0, BOXES), slice(BOXES, None), slice(None)))


def test_boxes_do_not_cost_the_scores(detector, program, tmp_path):
    source, samples, made, reference = detector
    figures = {}
    for name, options in {"guarded": [], "not guarded": ["--no-guard"]}.items():
        out = tmp_path / "ours.onnx"
        done = subprocess.run([program, "quantize", source, "--calib", samples, "--out", out, *options],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        figures[name] = per_part(out, made, reference)
        if name == "guarded":
            assert "`output0`" in done.stdout + done.stderr, "the choice is not reported"
    theirs = tmp_path / "theirs.onnx"
    judge.ort_quantize(source, theirs, made[:3])
    figures["ONNX Runtime"] = per_part(theirs, made, reference)
    for name, (boxes, scores, both) in figures.items():
        print(f"{name}: boxes {boxes:.1f} dB, scores {scores:.1f} dB, both at once {both:.1f} dB")
    # Over both at once, ONNX Runtime's reads well although nothing is left of the scores.
    assert figures["ONNX Runtime"][2] > 20 and figures["ONNX Runtime"][1] < 3
    assert figures["guarded"][1] > figures["ONNX Runtime"][1] + 8
    assert figures["guarded"][0] >= figures["ONNX Runtime"][0] - 0.5
