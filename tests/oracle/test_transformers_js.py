"""A folder for transformers.js: names, settings and card, and greedy generation by transformers.js in
Node, which equals that of ONNX Runtime on the same file.
"""

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from llama_graph import Shape, write_llama
from onnx import TensorProto, helper, numpy_helper
from reference_runtimes import session, sqnr
from schemes import node

WORDS, WIDTH, HEADS, HEAD, KV = 2400, 128, 4, 32, 2
FORMS = {"fp16": "_fp16", "q8": "_quantized", "q4": "_q4", "q4f16": "_q4f16"}
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "num_attention_heads": HEADS,
    "num_key_value_heads": KV, "head_dim": HEAD, "num_hidden_layers": 2, "vocab_size": WORDS, "eos_token_id": WORDS - 1,
}  # fmt: skip


def decoder(path):
    """Two layers with ONNX Runtime's attention and caches, as exporters for transformers.js write them."""
    random = np.random.default_rng(11)

    def weight(name, *shape, scale=0.15):
        return numpy_helper.from_array((random.standard_normal(shape) * scale).astype(np.float32), name)

    ms, real, integer = {"domain": "com.microsoft"}, TensorProto.FLOAT, TensorProto.INT64
    weights = [weight("table", WORDS, WIDTH, scale=1), weight("head", WIDTH, WORDS)]
    weights += [numpy_helper.from_array(np.array(v), n) for n, v in (("one", [1]), ("minus", 1), ("index", 1))]
    nodes = [
        node("ReduceSum", ["attention_mask", "one"], "counts", keepdims=0), node("Sub", ["counts", "minus"], "lasts"),
        node("Cast", ["lasts"], "last", to=TensorProto.INT32), node("Shape", ["attention_mask"], "sizes"),
        node("Gather", ["sizes", "index"], "size"), node("Cast", ["size"], "total", to=TensorProto.INT32),
        node("Gather", ["table", "input_ids"], "x0"),
    ]  # fmt: skip
    declared, value, caches = [], helper.make_tensor_value_info, []
    for layer in range(2):
        at = lambda name, layer=layer: f"{name}.{layer}"  # noqa: E731
        weights += [weight(at("norm"), WIDTH, scale=1), weight(at("post"), WIDTH, scale=1), weight(at("q"), WIDTH, WIDTH)]
        weights += [weight(at(n), WIDTH, KV * HEAD) for n in "kv"]
        weights += [weight(at("o"), WIDTH, WIDTH), weight(at("up"), WIDTH, 384), weight(at("down"), 384, WIDTH)]
        keys = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        x = f"x{layer}"
        nodes += [
            node("SimplifiedLayerNormalization", [x, at("norm")], at("n"), epsilon=1e-5, axis=-1),
            *(node("MatMul", [at("n"), at(n)], at(f"{n}_out")) for n in "qkv"),
            helper.make_node("GroupQueryAttention", [at("q_out"), at("k_out"), at("v_out"), *keys, "last", "total"],
                             [at("mixed"), *present], at("attention"), num_heads=HEADS, kv_num_heads=KV, **ms),
            node("MatMul", [at("mixed"), at("o")], at("change")),
            helper.make_node("SkipSimplifiedLayerNormalization", [x, at("change"), at("post")], [at("m"), "", "", at("sum")], at("skip"), epsilon=1e-5, **ms),
            node("MatMul", [at("m"), at("up")], at("u")), node("Sigmoid", [at("u")], at("s")), node("Mul", [at("u"), at("s")], at("g")),
            node("MatMul", [at("g"), at("down")], at("d")), node("Add", [at("sum"), at("d")], f"x{layer + 1}"),
        ]  # fmt: skip
        declared += [value(at(n), real, ["batch_size", "sequence_length", WIDTH]) for n in ("n", "mixed", "m", "sum")]
        caches.append([(name, ["batch_size", KV, size, HEAD]) for names, size in ((keys, "past_sequence_length"), (present, "total_sequence_length")) for name in names])
    nodes.append(node("MatMul", ["x2", "head"], "logits"))
    ids = [value(n, integer, ["batch_size", size]) for n, size in (("input_ids", "sequence_length"), ("attention_mask", "total_sequence_length"))]
    inputs = ids + [value(n, real, s) for layer in caches for n, s in layer[:2]]
    outputs = [value("logits", real, ["batch_size", "sequence_length", WORDS])] + [value(n, real, s) for layer in caches for n, s in layer[2:]]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights, value_info=declared)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=8)
    onnx.save(made, path, save_as_external_data=True, size_threshold=1024, location=f"{path.name}_data")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoder")
    (folder / "onnx").mkdir()
    decoder(folder / "onnx" / "model.onnx")
    (folder / "config.json").write_text(json.dumps({**CONFIG, "transformers.js_config": {"device": "cpu"}}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": WORDS - 1}))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    (folder / "README.md").write_text("The model.")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def write(program, source, out, *options):
    command = [program, "quantize", source, "--for", "transformers.js", "--out", out, *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(program, source, tmp_path_factory):
    out = tmp_path_factory.mktemp("web") / "out"
    done = write(program, source, out, "--data-size", "1")
    assert done.returncode == 0, done.stderr
    return out


def test_the_folder_has_what_transformers_js_looks_for(source, folder):
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    beside = {"README.md", "README.source.md", "config.json", "generation_config.json", "tokenizer.json"}
    models = {f"onnx/model{ending}.onnx" for ending in FORMS.values()}
    data = names - beside - models
    assert beside | models <= names and not any(name.endswith("safetensors") for name in names)
    config = json.loads((folder / "config.json").read_text())
    ours = config.pop("transformers.js_config")
    assert config == CONFIG and ours["device"] == "cpu" and ours["dtype"] == "q4"
    assert ours["kv_cache_dtype"] == {"fp16": "float16", "q4f16": "float16"}
    counts = ours["use_external_data_format"]
    assert data == {f"onnx/{name}_data{f'_{at}' if at else ''}" for name, count in counts.items() for at in range(count)}
    assert counts["model_fp16.onnx"] > 1, "several files of weights"
    card = (folder / "README.md").read_text()
    for form, ending in FORMS.items():
        path = folder / "onnx" / f"model{ending}.onnx"
        whole = sum(p.stat().st_size for p in (path, *path.parent.glob(f"{path.name}_data*")))
        shown = f"{whole / 1e6:.1f} MB" if whole >= 1e6 else f"{whole / 1e3:.1f} kB"
        assert f"| `{form}` | `onnx/{path.name}` | {shown} |" in card
    assert "AutoModel.from_pretrained(" in card and "octet inspect onnx/model_" in card
    assert (folder / "README.source.md").read_text() == "The model."


def test_q8_is_unsigned_beside_attentions(folder):
    model = onnx.load(folder / "onnx" / "model_quantized.onnx")
    integers = {t.name: t.data_type for t in model.graph.initializer if t.name.endswith("_quantized")}
    assert len(integers) == 14 and set(integers.values()) == {TensorProto.UINT8}
    assert all(t.dims == [] for t in model.graph.initializer if t.name.endswith("_scale"))


def greedy(path, ids, count):
    """Ids by ONNX Runtime, one step after the other."""
    running = session(path)
    kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    caches = {i.name: np.zeros((1, KV, 0, HEAD), kinds[i.type]) for i in running.get_inputs() if i.name.startswith("past")}
    made, step = list(ids), list(ids)
    for _ in range(count):
        feeds = {"input_ids": np.array([step]), "attention_mask": np.ones((1, len(made)), np.int64), **caches}
        logits, *present = running.run(None, feeds)
        step = [int(logits[0, -1].argmax())]
        made += step
        caches = dict(zip(caches, present, strict=True))
        if step == [WORDS - 1]:
            break
    return made


PROMPT = [3, 77, 512, 9, 140]


@pytest.mark.parametrize("form", [*FORMS, "config"])
def test_transformers_js_generates_the_tokens_of_onnx_runtime(folder, form):
    script = Path(__file__).parent / "generate_web.mjs"
    command = ["node", script, folder, form, "12", *map(str, PROMPT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wanted = greedy(folder / "onnx" / f"model{FORMS.get(form, '_q4')}.onnx", PROMPT, 12)
    assert json.loads(done.stdout.splitlines()[-1]) == wanted and len(wanted) > len(PROMPT) + 3


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_transformers_js_in_a_page_generates_the_tokens_of_onnx_runtime(folder, browser):
    script = Path(__file__).parent / "generate_page.mjs"
    command = ["node", script, browser, folder, "8", ",".join(FORMS), *map(str, PROMPT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout.splitlines()[-1])
    assert list(made) == list(FORMS)
    for form, ids in made.items():
        assert ids == greedy(folder / "onnx" / f"model{FORMS[form]}.onnx", PROMPT, 8), form


def test_the_card_shows_the_error_of_models_that_octet_runs(program, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    random = np.random.default_rng(7)

    def values(name, dims):
        yield (random.standard_normal(dims) / np.sqrt(dims[0]) if "norm" not in name else np.ones(dims)).astype(np.float32)

    write_llama(source / "model.onnx", Shape(layers=2, width=128, heads=4, kv_heads=2, inner=256, vocabulary=500), values)
    ids = tmp_path / "ids.npz"
    np.savez(ids, input_ids=np.arange(12)[None] * 41 % 500)
    done = write(program, source, tmp_path / "out", "--samples", ids, "--json")
    assert done.returncode == 0, done.stderr
    assert [one["dtype"] for one in json.loads(done.stdout)["files"]] == list(FORMS)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "on 1 given samples" in card and "not measured" not in card
    exact = session(source / "model.onnx").run(None, dict(np.load(ids)))
    for form, ending in FORMS.items():
        found = session(tmp_path / "out" / "onnx" / f"model{ending}.onnx").run(None, dict(np.load(ids)))
        row = next(line for line in card.splitlines() if line.startswith(f"| `{form}`"))
        shown, actual = float(row.split("|")[5].split()[0]), sqnr(exact, found)
        print(f"{form}: {shown} dB in the card, {actual:.1f} in ONNX Runtime")
        assert shown > 8 and abs(shown - actual) < 3 or min(shown, actual) > 45


def test_the_card_judges_tokens_of_texts(program, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    random = np.random.default_rng(5)

    def values(name, dims):
        yield (random.standard_normal(dims) / np.sqrt(dims[0]) if "norm" not in name else np.ones(dims)).astype(np.float32)

    write_llama(source / "model.onnx", Shape(layers=1, width=128, heads=4, kv_heads=2, inner=256, vocabulary=64), values)
    words = {f"w{at}": at for at in range(64)}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "w0"}
    (source / "tokenizer.json").write_text(json.dumps({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model}))
    texts = tmp_path / "a.txt"
    texts.write_text("w3 w14 w15 w9 w26 w5\nw35 w8 w9 w7\n")
    done = write(program, source, tmp_path / "out", "--samples", texts, "--max-length", "5")
    assert done.returncode == 0, done.stderr
    card = (tmp_path / "out" / "README.md").read_text()
    assert "KL divergence" in card and "over 9 tokens of texts" in card, card
    rows = {line.split("|")[1].strip(" `"): [cell.strip() for cell in line.split("|")] for line in card.splitlines() if line.startswith("| `")}
    kl = {form: float(row[6]) for form, row in rows.items()}
    assert list(kl) == list(FORMS) and 0 <= kl["fp16"] < kl["q8"] < kl["q4"], card
    assert all(0 <= float(row[7].split()[0]) <= 100 for row in rows.values())
    # Random tokens are not judged.
    done = write(program, source, tmp_path / "random")
    assert done.returncode == 0 and "KL" not in (tmp_path / "random" / "README.md").read_text(), done.stderr


def test_unusable_folders_are_refused(program, source, tmp_path):
    (tmp_path / "empty").mkdir()
    for command, code, word in [
        ([tmp_path / "empty", tmp_path / "out"], 3, "no float model"),
        ([source, source], 2, "choose another one"),
        ([source, source / "config.json"], 2, "writes a folder"),
    ]:
        done = write(program, *command)
        assert done.returncode == code and word in done.stderr, done.stderr
    done = write(program, source, tmp_path / "out", "--scheme", "blocks")
    assert done.returncode == 2 and "--scheme" in done.stderr
    assert not (tmp_path / "out").exists()
