"""AWQ and GPTQ of blocks on a decoder with texts as samples: the outputs come closer to float, and
AWQ's scales leave the float function as it was.
"""

import json
import subprocess

import numpy as np
import onnx
import pytest
from llama_graph import Shape, write_llama
from onnx import numpy_helper
from reference_runtimes import session, sqnr
from text_tokenizers import TEXTS, TRAINED


def sources(folder):
    """A decoder whose norms have channels far from 1, as trained ones have, and a tokenizer."""
    tokenizer = next(iter(TRAINED.values()))()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    shape = Shape(layers=2, width=64, heads=4, kv_heads=2, inner=128, vocabulary=tokenizer.get_vocab_size(), tied=False)

    def weight(name, dims):
        random = np.random.default_rng(sum(map(ord, name)))
        if "norm" in name:
            yield np.where(random.random(dims) < 0.06, 12, 0.6 + 0.3 * random.random(dims)).astype(np.float32)
        else:
            yield (random.standard_normal(dims) / np.sqrt(dims[0])).astype(np.float32)

    write_llama(folder / "m.onnx", shape, weight)
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    ids = [tokenizer.encode(text).ids[:32] for text in TEXTS]
    return folder / "m.onnx", [np.array([one]) for one in ids if len(one) > 4]


def quantized(program, source, out, method, form="matmul_nbits"):
    settings = {"scheme": "blocks", "blocks": {"method": method, "form": form}}
    samples = ["--samples", source.with_name("texts.jsonl")] if method in ("awq", "gptq") else []
    command = [program, "quantize", source, "--config", json.dumps(settings), *samples, "--out", out, "--verbose"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out, done.stderr + done.stdout


def logits(path, ids):
    running = session(path)
    return [running.run(None, {"input_ids": one})[0].astype(np.float64) for one in ids]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return sources(tmp_path_factory.mktemp("decoder"))


@pytest.mark.parametrize("method", ["awq", "gptq"])
def test_methods_with_texts_come_closer_to_float(program, made, tmp_path, method):
    source, ids = made
    wanted = logits(source, ids)
    plain, _ = quantized(program, source, tmp_path / "rtn.onnx", "rtn")
    better, said = quantized(program, source, tmp_path / "better.onnx", method)
    before, after = (sqnr(wanted, logits(path, ids)) for path in (plain, better))
    assert after > before + 0.5, (before, after)
    onnx.checker.check_model(better)
    if method == "awq":
        # Queries, keys and values; gates and up; down: of two layers, and the head.
        assert "of 7 groups" in said and "2 of 15 products" in said, said


def test_awq_in_the_other_form_has_the_same_scales(program, made, tmp_path):
    source, _ = made
    files = [quantized(program, source, tmp_path / f"{form}.onnx", "awq", form)[0] for form in ("matmul_nbits", "dequantize")]
    one, other = ({t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer} for path in files)
    norms = [name for name in one if "norm" in name]
    assert len(norms) == 5
    for name in norms:
        np.testing.assert_array_equal(one[name], other[name])


def test_scales_of_awq_leave_the_float_function(program, made, tmp_path):
    """With the folded constants, dequantized weights divided by the scales are near the source's."""
    source, _ = made
    path, _ = quantized(program, source, tmp_path / "q.onnx", "awq", "dequantize")
    before, after = ({t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer} for path in (source, path))
    norms = [name for name in before if "layernorm" in name and name in after]
    assert norms and any(np.abs(before[name] / after[name] - 1).max() > 0.1 for name in norms)
    names = [name for name in before if name.endswith(("q_proj.weight", "gate_proj.weight"))]
    for name in names:
        norm = name.rpartition(".self_attn" if "self_attn" in name else ".mlp")[0]
        norm += ".input_layernorm.weight" if "self_attn" in name else ".post_attention_layernorm.weight"
        scales = before[norm] / after[norm]
        integers = next(value for key, value in after.items() if key.startswith(name) and value.shape == before[name].shape)
        steps = next(value for key, value in after.items() if key.startswith(name) and key.endswith("scale") or key.startswith(name) and "scale" in key)
        weights = integers.astype(np.float64) * np.repeat(steps, 32, 0) / scales[:, None]
        assert sqnr([before[name].astype(np.float64)], [weights]) > 12
