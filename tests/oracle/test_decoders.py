"""Decoders with caches, in the forms of several exporters: they run like in ONNX Runtime without and
with earlier tokens, and are calibrated, quantized and compared by layer.
"""

import json
import subprocess

import numpy as np
import onnx
import pytest
import reference_runtimes
from decoder_graph import FORMS, Decoder
from run_model import run


def tokens(seed, *shape):
    return np.random.default_rng(seed).integers(0, 50, shape)


def conversation(decoder, path, seed):
    """Samples: a prompt without earlier tokens, one token behind it, and a second prompt behind both."""
    samples, past = [], None
    for place, new in enumerate((5, 1, 3)):
        sample = decoder.sample(tokens(seed + place, 1, new), past)
        samples.append(sample)
        (past,) = reference_runtimes.run(path, [sample])
    return samples


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].shape == values.shape, name
        np.testing.assert_allclose(found[name], values, rtol=1e-3, atol=2e-4, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_gives_the_values_of_onnxruntime(form, tmp_path):
    decoder, path = Decoder(form), tmp_path / "decoder.onnx"
    onnx.save(decoder.model(), path)
    samples = conversation(decoder, path, 3)
    for sample, expected in zip(samples, reference_runtimes.run(path, samples)):
        same(run(path, sample, tmp_path)[0], expected)


@pytest.mark.parametrize("form", ["heads", "plain"])
def test_padded_sequences_give_the_values_of_onnxruntime(form, tmp_path):
    decoder, path = Decoder(form), tmp_path / "decoder.onnx"
    onnx.save(decoder.model(), path)
    prompt = decoder.sample(tokens(1, 2, 6), hidden=[0, 2])
    (past,) = reference_runtimes.run(path, [prompt])
    step = decoder.sample(tokens(2, 2, 1), past, hidden=[0, 2])
    for sample in prompt, step:
        (expected,) = reference_runtimes.run(path, [sample])
        same(run(path, sample, tmp_path)[0], expected)


def octet(program, *options):
    done = subprocess.run([program, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scheme", ["static", "blocks"])
def test_it_is_quantized_and_compared_by_layer(form, scheme, program, tmp_path):
    decoder, source, target = Decoder(form), tmp_path / "decoder.onnx", tmp_path / "quantized.onnx"
    onnx.save(decoder.model(), source)
    samples = [sample for seed in (3, 30, 300) for sample in conversation(decoder, source, seed)]
    folder = reference_runtimes.save_samples(tmp_path / "samples", samples)
    calibration = ["--calib", folder] if scheme == "static" else []
    octet(program, "quantize", source, "--scheme", scheme, *calibration, "--out", target)
    # The quantized model runs here as it does in ONNX Runtime.
    for sample in samples[:3]:
        (expected,) = reference_runtimes.run(target, [sample], optimize=False)
        found, _ = run(target, sample, tmp_path)
        assert reference_runtimes.sqnr([expected["logits"]], [found["logits"]]) > 25
    told = json.loads(octet(program, "compare", source, target, "--samples", folder, "--json"))
    layers = {layer["layer"] for layer in told["layers"]}
    assert told["layersFailed"] is None
    assert {f"/model/layers/{at}/mlp/down_proj/MatMul" for at in range(2)} <= {name.removesuffix("_Q4") for name in layers}
