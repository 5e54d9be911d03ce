"""Texts as samples: their tokens equal those of Hugging Face's package, and a language model's KL
divergence, agreement and perplexity equal those computed from ONNX Runtime's logits.
"""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference_runtimes import session
from schemes import node
from text_tokenizers import TEXTS, TRAINED, gpt2, minilm, random_texts, smollm2, word_pieces
from tokenizers import Tokenizer


def language_model(path, table, length="sequence", types=False):
    """The logits of the next token depend on the token alone: a row of the table."""
    count = len(table)
    spread = np.eye(count, dtype=np.float32)
    nodes = [node("Gather", ["spread", "input_ids"], "x"), node("MatMul", ["x", "table"], "logits")]
    names = ["input_ids", "attention_mask", "position_ids"] + ["token_type_ids"] * types
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", length]) for name in names]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", length, count])]
    constants = [numpy_helper.from_array(spread, "spread"), numpy_helper.from_array(table, "table")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def called(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_json_lines(path, records):
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")


def tokens(program, folder, *options):
    """For each text the tokens, numbers, types and mask as the model receives them."""
    seen = called(program, "inspect", folder / "onnx" / "m.onnx", "--json", "--samples", *options)["samples"]
    seen.sort(key=lambda sample: int(sample["name"].rpartition(":")[2]))
    for sample in seen:
        (ids,) = [one["tokens"] for one in sample["inputs"] if one["input"] == "input_ids"]
        yield [[token[key] for token in ids] for key in ("token", "id", "typeId", "attended")]


def folder_with(tmp_path, tokenizer, **shape):
    """A folder as exporters write it: the tokenizer one folder above the model."""
    (tmp_path / "onnx").mkdir()
    language_model(tmp_path / "onnx" / "m.onnx", np.zeros((4, 4), np.float32), types=True, **shape)
    (tmp_path / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    return tmp_path


def check_tokens(program, folder, document, limit=None):
    theirs = Tokenizer.from_str(document)
    theirs.no_padding()
    theirs.enable_truncation(512)
    texts = TEXTS + random_texts(400)
    texts = [text for text in texts if text.strip()]
    write_json_lines(folder / "a.jsonl", [{"text": text} for text in texts])
    wanted = theirs.encode_batch(texts)
    # A text of which the normalizer leaves nothing is refused as a sample without tokens.
    assert all(one.ids for one in wanted)
    found = list(tokens(program, folder, folder / "a.jsonl", "--texts", 1000))
    assert len(found) == len(texts)
    for text, one, (spellings, ids, types, mask) in zip(texts, wanted, found):
        assert ids == one.ids, text
        assert spellings == one.tokens and types == one.type_ids and all(mask), text


@pytest.mark.parametrize("name", TRAINED)
def test_tokens_of_many_languages_equal_those_of_the_package(program, tmp_path, name):
    document = TRAINED[name]().to_str()
    check_tokens(program, folder_with(tmp_path, document), document)


@pytest.mark.parametrize("made", [minilm, smollm2])
def test_tokens_of_vocabularies_of_real_models_equal_those_of_the_package(program, corpus, tmp_path, made):
    document = made(corpus)
    check_tokens(program, folder_with(tmp_path, document), document)


@pytest.mark.parametrize("length", [8, 40])
def test_pairs_are_cut_and_padded_as_the_package_does(program, tmp_path, length):
    theirs = word_pieces()
    folder = folder_with(tmp_path, theirs.to_str(), length=length)
    pairs = list(zip(TEXTS, reversed(TEXTS)))
    write_json_lines(folder / "a.jsonl", [{"question": a, "answer": b} for a, b in pairs])
    theirs.enable_truncation(length)
    theirs.enable_padding(pad_id=3, pad_token="[PAD]", direction="left", length=length)
    found = list(tokens(program, folder, folder / "a.jsonl", "--text-field", "question,answer"))
    for pair, one, (_, ids, types, mask) in zip(pairs, theirs.encode_batch(pairs), found, strict=True):
        assert (ids, types, mask) == (one.ids, one.type_ids, [bool(x) for x in one.attention_mask]), pair


def bigrams(texts, count):
    """Logits of the next token after each token, from the texts."""
    table = np.full((count, count), 0.3)
    for text in texts:
        for before, after in zip(text, text[1:]):
            table[before, after] += 1
    table = np.log(table / table.sum(1, keepdims=True))
    return (table + np.random.default_rng(3).standard_normal(table.shape) * 0.3).astype(np.float32)


def log_softmax(logits):
    logits = logits.astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.parametrize("length", ["sequence", 24])
def test_a_language_model_is_judged_as_from_the_logits_of_onnxruntime(program, tmp_path, length):
    theirs = gpt2()
    (tmp_path / "tokenizer.json").write_text(theirs.to_str(), encoding="utf-8")
    theirs.enable_truncation(24)
    lines = [text for text in (" ".join(text.split()) for text in TEXTS) if len(theirs.encode(text).ids) > 2]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    texts = [one.ids for one in theirs.encode_batch(lines)]
    float_model, quantized = tmp_path / "m.onnx", tmp_path / "q.onnx"
    language_model(float_model, bigrams(texts, theirs.get_vocab_size()), length)
    options = ["--samples", tmp_path / "a.txt", "--max-length", 24]
    called(program, "quantize", float_model, "--out", quantized, "--json", "--per-tensor", "--method", "minmax", *options)
    report = tmp_path / "r.html"
    found = called(program, "compare", float_model, quantized, "--json", "--html", report, *options)
    (output,) = found["outputs"]
    assert found["samples"] == len(lines) and output["kind"] == "tokens"

    sessions = [session(path) for path in (float_model, quantized)]
    kl, same, nll = [], [], []
    for ids in texts:
        size = len(ids) if length == "sequence" else length
        row = np.array([ids + [0] * (size - len(ids))])
        feed = {"input_ids": row, "attention_mask": (row > -1).astype(np.int64), "position_ids": np.arange(size)[None]}
        p, q = (log_softmax(session.run(None, feed)[0][0, : len(ids)]) for session in sessions)
        kl += list((np.exp(p) * (p - q)).sum(-1))
        same += list(p.argmax(-1) == q.argmax(-1))
        nll += [(-p[at, after], -q[at, after]) for at, after in enumerate(ids[1:])]
    assert output["tokens"]["positions"] == len(kl) == sum(map(len, texts))
    assert output["tokens"]["kl"] == pytest.approx(np.mean(kl), rel=1e-3)
    assert output["tokens"]["kl"] > 1e-6
    assert output["tokens"]["perplexity"] == pytest.approx(np.exp(np.mean(nll, 0)), rel=1e-4)
    assert output["top1"] == pytest.approx(np.mean(same), abs=2 / len(same))
    page = report.read_text(encoding="utf-8")
    assert "KL divergence" in page and f"{output['tokens']['perplexity'][1]:.3f}" in page
