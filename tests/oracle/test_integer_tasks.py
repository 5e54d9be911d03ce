"""Labelled tasks: models quantized with `auto` answer like the float model, in ONNX Runtime and on
our integers, with less noise than ONNX Runtime's quantizer. Each of our integers follows from
its inputs.
"""

import reference_runtimes
import onnx
import pytest
from run_model import run_all
from tasks import TASKS, first
from integer_checks import hold

# Its noise comes from two lines of which the float model is not sure, and insignificant changes
# move it between 28 and 40 dB (docs/accuracy.md). So it is not compared with ONNX Runtime's.
BY_CHANCE = ("ppocr_cls",)


@pytest.mark.parametrize("name", TASKS)
def test_answers_are_those_of_the_float_model_in_both_engines(name, corpus, program, task, ort_quantized, tmp_path):
    task, source = task(name), corpus.model(name)
    fold = task.folds[0]
    reference = reference_runtimes.run(source, fold.judged)
    known, of = task.right(reference, fold.truths)
    floats = [first(outputs) for outputs in reference]
    noise, moves = {}, {}
    for whose in "octet", "theirs":
        folder = tmp_path / whose
        folder.mkdir()
        path = ort_quantized(name)
        if whose == "octet":
            _, path = reference_runtimes.quantize(program, folder, source, fold.calibration, "--threads", "2", "--method", "auto")
            held = hold(onnx.load(path), fold.judged[0], folder)
            assert not held.wrong, held.wrong
        answers = reference_runtimes.run(path, fold.judged, optimize=False)
        expected, _ = task.right(answers, fold.truths)
        ours, _ = run_all(path, fold.judged, folder, "--threads", "2")
        found, _ = task.right(ours, fold.truths)
        answers, ours = ([first(outputs) for outputs in each] for each in (answers, ours))
        noise[whose], moves[whose] = reference_runtimes.sqnr(floats, answers), reference_runtimes.may_move(floats, answers, ours)
        print(f"{name} {whose}: {found} right, in ONNX Runtime {expected}, float {known}, of {of}; {noise[whose]:.1f} dB ± {moves[whose]:.1f}")
        if whose == "octet":
            # Quantization may cost one correct answer.
            least = known - 1 - reference_runtimes.by_chance(of)
            assert min(found, expected) >= least, f"{expected} and {found} of {of} answers are right, of the float model {known}"
    least = 25 if name in BY_CHANCE else noise["theirs"] - moves["theirs"]
    assert noise["octet"] + moves["octet"] >= least, f"{noise} dB"
