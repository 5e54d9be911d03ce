#!/usr/bin/env python3
"""Quality of quantized language models, ours and ONNX Runtime's, against the float model.

    language_model.py [WORD...]     prints the table; words select rows whose names contain one
    --tokens N                      judges on so many tokens (1536)
    --seed N                        permutes otherwise (0): the spread shows what a difference is worth
    --json FILE                     writes the rows for scripts/bench.mjs
    --write                         puts the table into docs/benches.md

The model is SmolLM2-135M-Instruct with permuted channels (tests/oracle/smollm.py), the text a book
of the King James Version, in windows of 256 tokens. All models run in ONNX Runtime with the same
options.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "oracle"))
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from corpus import Corpus, cache_folder  # noqa: E402
from llama_graph import reference_logits, write_llama  # noqa: E402
from process_use import measured  # noqa: E402
from smollm import SmolLm, text_of  # noqa: E402

WINDOW = 256
RECIPE = "1"  # raised when the models become others, so that cached ones are written again
BEGIN, END = "<!-- measured: benches/language_model.py --write -->\n", "<!-- end -->\n"
# Models by name: changes of the network's shape.
SOURCES = {
    "tied": {},
    "float16": {"element": "float16"},
    # ONNX Runtime's quantizer skips a head behind a Transpose, so it gets it as a matrix of its own.
    "untied": {"tied": False},
    "opset 21": {"tied": False, "opset": 21},
}
TABLE_OF_EIGHT = {"by_name": {name: {"blocks": {"bits": 8}} for name in ("/model/embed_tokens/Gather", "/lm_head/MatMul")}}
GATHER_OF_EIGHT = {"by_operator": {"Gather": {"blocks": {"bits": 8}}}}


def blocks(bits=4, more=None, **settings):
    return {"scheme": "blocks", "blocks": {"bits": bits, "size": 32, **settings}, **(more or {})}


# Rows by name: the source, and our settings or the peer's options.
OURS = {
    "Octet q4, RTN": ("tied", blocks()),
    "Octet q4, RTN, zero points": ("tied", blocks(symmetric=False)),
    "Octet q4, search": ("tied", blocks(method="search")),
    "Octet q4, search, zero points": ("tied", blocks(method="search", symmetric=False)),
    "Octet q4, HQQ": ("tied", blocks(method="hqq")),
    "Octet q4, k-quant": ("tied", blocks(method="k_quant")),
    "Octet mixed, RTN": ("tied", blocks(mixed="k_quant_mixed")),
    "Octet mixed, search, zero points": ("tied", blocks(method="search", symmetric=False, mixed="k_quant_mixed")),
    "Octet mixed, k-quant": ("tied", blocks(method="k_quant", mixed="k_quant_mixed")),
    "Octet q8, RTN": ("tied", blocks(8)),
    "Octet float16, q4, RTN": ("float16", blocks()),
    "Octet with embeddings, q4, RTN": ("tied", blocks(embeddings=True)),
    "Octet with embeddings, q4, search": ("tied", blocks(method="search", embeddings=True)),
    "Octet with embeddings of 8 bits, q4, RTN": ("tied", blocks(embeddings=True, more=GATHER_OF_EIGHT)),
    "Octet with one table of 8 bits, q4, RTN": ("tied", blocks(embeddings=True, more=TABLE_OF_EIGHT)),
    "Octet with embeddings, mixed, k-quant": ("tied", blocks(method="k_quant", embeddings=True, mixed="k_quant_mixed")),
    "Octet with embeddings, q8, RTN": ("tied", blocks(8, embeddings=True)),
}
# Rows whose methods need samples: windows of another book.
SAMPLED = {
    "Octet q4, AWQ": ("tied", blocks(method="awq")),
    "Octet q4, AWQ, zero points": ("tied", blocks(method="awq", symmetric=False)),
    "Octet q4, GPTQ": ("tied", blocks(method="gptq")),
}
SAMPLES, SAMPLE_TOKENS, SAMPLE_BOOK = 16, 128, "Genesis"
THEIRS = {
    "ORT q4": ("untied", []),
    "ORT q4, zero points": ("untied", ["--asymmetric"]),
    "ORT q4, k-quant": ("untied", ["--algorithm", "k_quant", "--asymmetric"]),
    "ORT q4, neural_compressor's RTN": ("untied", ["--algorithm", "rtn"]),
    "ORT q8": ("untied", ["--bits", "8"]),
    "ORT with embeddings, q4": ("opset 21", ["--embeddings"]),
    "ORT tied head, q4": ("tied", []),
}


def sources(network, names, seed):
    """Paths of the float models, written once into the cache; the graph is checked against numpy."""
    folder = cache_folder() / (f"language-{seed}" if seed else "language")
    mark = folder / ".recipe"
    if not mark.exists() or mark.read_text() != RECIPE:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        mark.write_text(RECIPE)
    paths = {name: folder / f"{name.replace(' ', '')}.onnx" for name in names}
    for name, path in paths.items():
        if not path.exists():
            scratch = folder / "writing"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            write_llama(scratch / path.name, replace(network.shape, **SOURCES[name]), network.weight)
            # The model last: its presence says that the weights are complete.
            for file in sorted(scratch.iterdir(), reverse=True):
                file.rename(folder / file.name)
            scratch.rmdir()
    check(network, paths["tied"])
    return paths


def check(network, model):
    """Fails if the permutation or the graph changed the function."""
    ids = np.array([0, *network.tokenizer.encode("And Ruth the Moabitess said unto Naomi,")])
    first, second = (reference_logits(network.shape, weights, ids) for weights in (network.original, network.weights))
    np.testing.assert_allclose(second, first, atol=1e-9)
    np.testing.assert_allclose(logits(session(model), ids), second, atol=2e-3)


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def logits(running, ids):
    return running.run(["logits"], {"input_ids": ids[None]})[0][0].astype(np.float32)


def log_probabilities(running, windows):
    """Arrays `[WINDOW, vocabulary]`, one after the other: of each token after those before it."""
    for ids in windows:
        values = logits(running, ids[:-1])
        values -= values.max(-1, keepdims=True)
        yield values - np.log(np.exp(values).sum(-1, keepdims=True, dtype=np.float64)).astype(np.float32)


def perplexity(predictions, windows):
    of_next = [values[np.arange(WINDOW), ids[1:]] for values, ids in zip(predictions, windows)]
    return float(np.exp(-np.mean(of_next, dtype=np.float64)))


def judged(model, windows, reference):
    """KL divergence in nats, share of equal first choices, perplexity."""
    divergence, same, predictions = [], [], []
    for values, exact in zip(log_probabilities(session(model), windows), reference):
        divergence.append(np.sum(np.exp(exact) * (exact - values), -1, dtype=np.float64))
        same.append(values.argmax(-1) == exact.argmax(-1))
        predictions.append(values)
    return {"kl": float(np.mean(divergence)), "top1": float(np.mean(same)), "perplexity": perplexity(predictions, windows)}


def size_of(model):
    return sum(path.stat().st_size for path in model.parent.glob(f"{model.name}*"))


def ours(source, out, settings, samples=None):
    how = ["--samples", samples] if samples else ["--stream"]
    used, _ = measured([os.environ["OCTET"], "quantize", source, *how, "--config", json.dumps(settings), "--out", out])
    return used


def write_samples(network, corpus, folder):
    """Windows of a text that is not the judged one, an `.npz` file each."""
    tokens = network.tokenizer.encode(text_of(corpus, SAMPLE_BOOK))
    folder.mkdir()
    for place in range(SAMPLES):
        # Windows at even distances in the book.
        at = place * (len(tokens) - SAMPLE_TOKENS) // SAMPLES
        np.savez(folder / f"{place:03}.npz", input_ids=np.array([[0, *tokens[at : at + SAMPLE_TOKENS - 1]]]))
    return folder


def theirs(source, out, options, wheels):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, wheels))}
    # The interpreter in between ignores the environment; the peer itself has it.
    used, lines = measured([sys.executable, CHECKOUT / "benches" / "language_peer.py", source, out, *options], env)
    return used | {"seconds": float(lines[-1])}


def line(row, float_perplexity):
    ratio = row["perplexity"] / float_perplexity
    cells = [row["name"], f"{row['kl']:.4f}", f"{100 * row['top1']:.1f} %", f"{row['perplexity']:.2f}", f"{ratio:.4f}", f"{row['bytes'] / 1e6:.0f} MB"]
    cells += [f"{row['seconds']:.1f} s", f"{row['peak_bytes'] / 2**20:.0f} MiB"] if "seconds" in row else ["", ""]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--tokens", type=int, default=1536)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    corpus = Corpus()
    network = SmolLm(corpus, args.seed)
    rows_by_name = OURS | SAMPLED | THEIRS
    names = [name for name in rows_by_name if not args.words or any(word in name for word in args.words)]
    if not names:
        parser.error(f"no row has one of these words; there are {', '.join(rows_by_name)}")
    paths = sources(network, {"tied", *(rows_by_name[name][0] for name in names)}, args.seed)
    wheels = [corpus.package(key) for key in ("onnx_ir", "sympy", "mpmath")]
    tokens = network.tokenizer.encode(text_of(corpus))[: args.tokens // WINDOW * WINDOW]
    # Each window begins as a document does in training.
    windows = [np.array([0, *tokens[at : at + WINDOW]]) for at in range(0, len(tokens), WINDOW)]
    reference = list(log_probabilities(session(paths["tied"]), windows))
    base = perplexity(reference, windows)
    rows = [{"name": "float32", "kl": 0.0, "top1": 1.0, "perplexity": base, "bytes": size_of(paths["tied"])}]
    lines = ["| model | KL | top-1 | perplexity | ratio | size | conversion | peak memory |", "|---|---|---|---|---|---|---|---|", line(rows[0], base)]
    print("\n".join(lines), flush=True)
    for name in names:
        with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
            out, (source, how) = Path(scratch) / "q.onnx", rows_by_name[name]
            if name in THEIRS:
                used = theirs(paths[source], out, how, wheels)
            else:
                samples = write_samples(network, corpus, Path(scratch) / "samples") if name in SAMPLED else None
                used = ours(paths[source], out, how, samples)
            rows.append({"name": name, **judged(out, windows, reference), "bytes": size_of(out), **used})
        lines.append(line(rows[-1], base))
        print(lines[-1], flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows))
    if args.write:
        page = CHECKOUT / "docs" / "benches.md"
        text = page.read_text()
        start = text.index(BEGIN) + len(BEGIN)
        page.write_text(text[:start] + "\n" + "\n".join(lines) + "\n\n" + text[text.index(END, start) :])


if __name__ == "__main__":
    main()
