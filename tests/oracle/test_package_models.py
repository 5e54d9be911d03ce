"""Models of packages that once broke: what went wrong then, and what ONNX Runtime says of the result
now.
"""

import subprocess

import numpy as np
import pytest
import reference_runtimes
from tasks import first

VOICE_ACTIVITY = ("silero_vad_v6", "silero_vad_legacy")


def octet(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def apart(source, target, samples):
    both = [[first(outputs) for outputs in reference_runtimes.run(model, samples)] for model in (source, target)]
    return reference_runtimes.sqnr(*both)


def test_spectra_as_convolutions_are_taken_for_sound_of_enough_values(corpus, program, tmp_path):
    source, target = corpus.model("wake_melspectrogram"), tmp_path / "quantized.onnx"
    told = octet(program, "inspect", source)
    assert "task: sound" in told.stdout, told.stdout
    tried = octet(program, "quantize", source, "--demo", 2, "--out", target)
    assert tried.returncode == 0, tried.stderr
    folder = corpus.samples("wake_melspectrogram")
    made = octet(program, "quantize", source, "--samples", folder, "--out", target)
    assert made.returncode == 0, made.stderr
    assert target.stat().st_size < 0.3 * source.stat().st_size
    noise = apart(source, target, reference_runtimes.load_samples(folder))
    assert noise > 30, f"{noise:.1f} dB"


@pytest.mark.parametrize("name", VOICE_ACTIVITY)
def test_weights_in_branches_are_refused_with_the_scheme_that_takes_them(name, corpus, program, tmp_path):
    source, target = corpus.model(name), tmp_path / "quantized.onnx"
    folder = corpus.samples(name)
    refused = octet(program, "quantize", source, "--samples", folder, "--out", target)
    assert refused.returncode == 3 and not target.exists()
    assert "(If)" in refused.stderr and "scheme dynamic" in refused.stderr, refused.stderr
    made = octet(program, "quantize", source, "--scheme", "dynamic", "--out", target)
    assert made.returncode == 0, made.stderr
    assert target.stat().st_size < 0.7 * source.stat().st_size
    samples = reference_runtimes.load_samples(folder)
    noise = apart(source, target, samples)
    assert noise > 12, f"{noise:.1f} dB"
    answers = [[bool(np.all(first(outputs) > 0.5)) for outputs in reference_runtimes.run(model, samples)] for model in (source, target)]
    assert answers[0] == answers[1]
