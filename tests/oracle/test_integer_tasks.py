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


@pytest.mark.parametrize("whose", ["octet", "theirs"])
@pytest.mark.parametrize("name", TASKS)
def test_as_many_answers_are_right_as_in_onnx_runtime(name, whose, corpus, program, quantized, tmp_path):
    task = TASKS[name](corpus)
    fold, path = task.folds[0], tmp_path / f"{whose}.onnx"
    if whose == "theirs":
        judge.ort_quantize_or_prepared(corpus.model(name), quantized(name).prepared, path, fold.calibration)
    else:
        samples = tmp_path / "samples"
        samples.mkdir()
        for index, sample in enumerate(fold.calibration):
            np.savez(samples / f"{index:02}.npz", **sample)
        options = ["--out", path, "--calib", samples, "--threads", "2"]
        subprocess.run([program, "quantize", corpus.model(name), *options], check=True, capture_output=True)
    expected, of = task.right(judge.run(path, fold.judged, optimize=False), fold.truths)
    found, _ = task.right(run_all(path, fold.judged, tmp_path, "--threads", "2"), fold.truths)
    print(f"{name} {whose}: {found} right, in ONNX Runtime {expected}, of {of}")
    assert abs(found - expected) <= (name in TEXTS), f"{found} of {of} answers are right, in ONNX Runtime {expected}"
