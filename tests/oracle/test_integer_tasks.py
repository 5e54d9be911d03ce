"""What quantized models are for is done on our integers exactly as well as in ONNX Runtime: on labelled tasks, as many answers
are right of one file in both, and of ours made by us as of theirs made by ONNX Runtime's quantizer.
"""

import subprocess

import judge
import numpy as np
import pytest
from tasks import TASKS
from test_integers import run_all

# A text is right if each of its letters is. In one of sixty, ONNX Runtime itself gives two letters the same integer for a score, with
# optimisation or without, and the first in the list wins (in two of three such lines, its answer with optimisation is ours, without it another).
TEXTS = ("ppocr_det", "ppocr_rec", "captcha_crnn", "ddddocr")


@pytest.fixture(scope="module", params=TASKS)
def task(request, corpus, program, tmp_path_factory):
    """A model's name, samples and what is right of them, what counts as right, and both quantized forms of it."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    made = TASKS[name](corpus)
    fold = made.folds[0]
    samples = folder / "samples"
    samples.mkdir()
    for index, sample in enumerate(fold.calibration):
        np.savez(samples / f"{index:02}.npz", **sample)
    ours, prepared, theirs = folder / "octet.onnx", folder / "prepared.onnx", folder / "theirs.onnx"
    options = ["--out", ours, "--save-prepared", prepared, "--calib", samples, "--threads", "2"]
    subprocess.run([program, "quantize", corpus.model(name), *options], check=True, capture_output=True)
    judge.ort_quantize_or_prepared(corpus.model(name), prepared, theirs, fold.calibration)
    return name, fold.judged, fold.truths, made.right, {"octet": ours, "theirs": theirs}


@pytest.mark.parametrize("whose", ["octet", "theirs"])
def test_as_many_answers_are_right_as_in_onnx_runtime(task, whose, tmp_path):
    name, judged, truths, right, paths = task
    expected, of = right(judge.run(paths[whose], judged, optimize=False), truths)
    found, _ = right(run_all(paths[whose], judged, tmp_path, "--threads", "2"), truths)
    print(f"{name} {whose}: {found} right, in ONNX Runtime {expected}, of {of}")
    assert abs(found - expected) <= (name in TEXTS), f"{found} of {of} answers are right, in ONNX Runtime {expected}"
