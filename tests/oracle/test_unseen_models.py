"""Models that were not used in development: with default settings each answers like the float
model, in ONNX Runtime and on our integers, with less noise than ONNX Runtime's defaults. Each of
its integers follows from its inputs.
"""

import reference_runtimes
import numpy as np
import onnx
import pytest
from corpus_manifest import UNSEEN
from run_model import run_all
from audio_tasks import AUDIO_TASKS
from tasks import first
from integer_checks import hold, hold_measured

# ONNX Runtime's quantizer stops at a value of doubles (swift_f0), and writes what it can't load (basic_pitch; 1.31.1).
THEIRS_FAIL = ("swift_f0", "basic_pitch")


def test_all_of_them_have_a_task():
    assert list(AUDIO_TASKS) == UNSEEN


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("options", [(), ("--method", "auto"), ("--scheme", "dynamic")], ids=["minmax", "auto", "dynamic"])
def test_a_model_that_nobody_had_in_mind_is_not_destroyed(name, options, corpus, program, tmp_path):
    source, task = corpus.model(name), AUDIO_TASKS[name](corpus)
    fold = task.folds[0]
    reference = reference_runtimes.run(source, fold.judged)
    known, of = task.right(reference, fold.truths)
    calibration = [] if "dynamic" in options else fold.calibration
    prepared, path = reference_runtimes.quantize(program, tmp_path, source, calibration, *options)
    answers = reference_runtimes.run(path, fold.judged, optimize=False)
    ours, _ = run_all(path, fold.judged, tmp_path, "--threads", "2")
    expected, found = (task.right(outputs, fold.truths)[0] for outputs in (answers, ours))
    of_first = [[first(outputs) for outputs in all] for all in (reference, answers, ours)]
    noise, moves = reference_runtimes.sqnr(of_first[0], of_first[1]), reference_runtimes.may_move(*of_first)
    held = (hold_measured if "dynamic" in options else hold)(onnx.load(path), fold.judged[0], tmp_path)
    print(f"{name}: {found} right, in ONNX Runtime {expected}, float {known}, of {of}; {noise:.1f} dB ± {moves:.1f}; {held.integers} integers")
    assert not held.wrong, held.wrong
    least = known - 1 - reference_runtimes.by_chance(of)
    assert min(found, expected) >= least, f"{found} and {expected} of {of} answers are right, of the float model {known}"
    if options == () and name not in THEIRS_FAIL:
        theirs = tmp_path / "theirs.onnx"
        reference_runtimes.ort_quantize_or_prepared(source, prepared, theirs, fold.calibration)
        others = [first(outputs) for outputs in reference_runtimes.run(theirs, fold.judged, optimize=False)]
        assert noise + moves >= reference_runtimes.sqnr(of_first[0], others)


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("scheme", ["weights", "float16"])
def test_other_schemes_load_in_onnx_runtime_and_change_little(name, scheme, corpus, program, tmp_path):
    source, task = corpus.model(name), AUDIO_TASKS[name](corpus)
    fold = task.folds[0]
    _, path = reference_runtimes.quantize(program, tmp_path, source, [], "--scheme", scheme)
    known, of = task.right(reference_runtimes.run(source, fold.judged), fold.truths)
    right, _ = task.right(reference_runtimes.run(path, fold.judged), fold.truths)
    assert right >= known - 1 - reference_runtimes.by_chance(of)
    assert np.isfinite([np.sum(first(outputs)) for outputs in reference_runtimes.run(path, fold.judged)]).all()
