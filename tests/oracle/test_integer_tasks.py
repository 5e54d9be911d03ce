"""What models are for, on labelled tasks: quantized with `auto` they know what the float model knows, and on our integers a quantized model,
ours or ONNX Runtime's, has as many answers right as in ONNX Runtime.
"""

import judge
import pytest
from run_model import run_all
from tasks import TASKS, first

# A text is right if each of its letters is. In one of sixty two letters are so near each other that engines disagree; ONNX Runtime with
# itself, too, with optimisation and without.
TEXTS = ("ppocr_det", "ppocr_rec", "captcha_crnn", "ddddocr")
# How many answers fewer than the float model: one, but two or three of sixty lines here (docs/accuracy.md).
FEWER = {"ddddocr": 3}
# All its noise is two lines of which the float model itself is not sure, by changes that don't matter between 28 and 40 dB
# (docs/accuracy.md): nothing to compare with ONNX Runtime's.
BY_CHANCE = ("ppocr_cls",)


@pytest.mark.parametrize("name", TASKS)
def test_answers_are_those_of_the_float_model_and_the_same_in_both_engines(name, corpus, program, task, ort_quantized, tmp_path):
    task, source = task(name), corpus.model(name)
    fold = task.folds[0]
    reference = judge.run(source, fold.judged)
    known, of = task.right(reference, fold.truths)
    noise = {}
    for whose in "octet", "theirs":
        folder = tmp_path / whose
        folder.mkdir()
        path = ort_quantized(name)
        if whose == "octet":
            _, path = judge.quantize(program, folder, source, fold.calibration, "--threads", "2", "--method", "auto")
        answers = judge.run(path, fold.judged, optimize=False)
        expected, _ = task.right(answers, fold.truths)
        ours, _ = run_all(path, fold.judged, folder, "--threads", "2")
        found, _ = task.right(ours, fold.truths)
        noise[whose] = judge.sqnr([first(a) for a in reference], [first(a) for a in answers])
        print(f"{name} {whose}: {found} right, in ONNX Runtime {expected}, float {known}, of {of}; {noise[whose]:.1f} dB")
        if found != expected and task.unit == "photos":
            # A photo of two classes that the float model has 0.05 apart is as its sums are rounded: where ONNX Runtime with its optimisations
            # has another answer than without, ours may be either.
            again = judge.run(path, fold.judged)
            each = [[task.right([one], [truth])[0] for one, truth in zip(found, fold.truths)] for found in (ours, answers, again)]
            assert all(mine == literal or literal != fast for mine, literal, fast in zip(*each)), f"right are {each}"
        else:
            assert abs(found - expected) <= (name in TEXTS), f"{found} of {of} answers are right, in ONNX Runtime {expected}"
        if whose == "octet":
            least = known - FEWER.get(name, 1)
            assert min(found, expected) >= least, f"{expected} and {found} of {of} answers are right, of the float model {known}"
    least = 25 if name in BY_CHANCE else noise["theirs"]
    assert noise["octet"] >= least, f"{noise} dB"
