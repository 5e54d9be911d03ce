"""Whole quantized models end where ONNX Runtime ends with graph optimisation off.

It adds reals up in floats there, in the order of its kernels; ours are sums of integers. A value that lies between two
integers becomes one in one and the other in the other, and what that changes adds up over the layers: no two engines end
in the same integers. ONNX Runtime doesn't either: its own integer kernels (graph optimisation on) are as far away from what it
computes in floats. So that is what ours are held to. Single operators are held to one step in test_every_operator.
"""

import judge
import numpy as np
import onnx
import pytest
from corpus_manifest import FILES
from test_integers import run, steps_apart

# An error that is a hundredth of the signal is far below what quantizing itself did to any of them (10 to 56 dB).
ENOUGH = 40.0


@pytest.mark.parametrize("name, whose", FILES)
def test_a_whole_model_ends_as_near_as_onnx_runtimes_own_kernels(name, whose, corpus, quantized, ort_quantized, tmp_path):
    path = quantized(name).model if whose == "octet" else ort_quantized(name)
    samples, model = judge.load_samples(corpus.samples(name))[:4], onnx.load(path)
    literal, fused = judge.run(path, samples, optimize=False), judge.run(path, samples)
    ours, told = zip(*(run(path, sample, tmp_path, "--threads", "2") for sample in samples))
    heavy = [node for node in told[0]["nodes"] if node["operator"] in ("Conv", "Gemm", "MatMul")]
    on_integers = [node for node in heavy if node["region"] is not None]
    assert len(on_integers) >= 0.8 * len(heavy), f"{len(on_integers)} of {len(heavy)} products on integers"
    for output in literal[0]:
        expected = [outputs[output] for outputs in literal]
        if expected[0].dtype.kind != "f":
            assert all(np.array_equal(a, found[output]) for a, found in zip(expected, ours)), output
            continue
        apart, share = zip(*(steps_apart(model, outputs, found)[output] for outputs, found in zip(literal, ours)))
        noise, their_noise = (judge.sqnr(expected, [found[output] for found in runs]) for runs in (ours, fused))
        print(f"{name} {whose} {output}: {max(apart):.0f} steps, {np.mean(share):.4f} equal, {noise:.1f} dB; its own {their_noise:.1f} dB")
        assert max(apart) < 1.1 or noise >= min(their_noise - 6, ENOUGH), f"{output}: {noise:.1f} dB, its own {their_noise:.1f} dB"
