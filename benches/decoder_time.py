#!/usr/bin/env python3
"""Times of a decoder in Octet and in ONNX Runtime, one thread each, one after the other.

    decoder_time.py [--runs N]      prints a line for each length; N timed runs of each (5)

The model is SmolLM2-135M-Instruct in float32 with the operators of onnxruntime-genai's export
(tests/oracle/decoder_graph.py). It gets a prompt of 128 tokens, and one token behind these.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "oracle"))
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import reference_runtimes  # noqa: E402
from corpus import Corpus  # noqa: E402
from decoder_graph import Decoder, Sizes  # noqa: E402
from smollm import SmolLm, text_of  # noqa: E402

PROMPT = 128


def decoder_of(network):
    shape = network.shape
    sizes = Sizes(shape.layers, shape.heads, shape.kv_heads, shape.head, shape.inner, shape.vocabulary, 2048)

    def weight(name, dims):
        (found,) = network.weight(name, dims)
        return found

    return Decoder("genai", sizes, weight, shape.theta, shape.epsilon)


def ours(program, model, sample, scratch, runs):
    np.savez(scratch / "sample.npz", **sample)
    command = [program, "run", model, "--samples", scratch / "sample.npz", "--threads", "1", "--runs", str(runs), "--warm-up", "1", "--profile"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    number, unit = re.search(r"([\d.]+) (m?s) per run", told.stdout).groups()
    return float(number) * (1000 if unit == "s" else 1)


def theirs(model, sample, runs):
    running, times = reference_runtimes.session(model), []
    for _ in range(runs + 1):
        start = time.perf_counter()
        running.run(None, sample)
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times[1:]))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--runs", type=int, default=5)
    args = arguments.parse_args()
    network = SmolLm(corpus := Corpus())
    decoder = decoder_of(network)
    tokens = np.array([[0, *network.tokenizer.encode(text_of(corpus))[:PROMPT]]])
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        model = scratch / "decoder.onnx"
        onnx.save(decoder.model(), model)
        prompt = decoder.sample(tokens[:, :PROMPT])
        (past,) = reference_runtimes.run(model, [prompt])
        samples = {f"{PROMPT} tokens": prompt, "1 token": decoder.sample(tokens[:, PROMPT:], past)}
        print("| input | Octet, ms | ONNX Runtime, ms | ratio |\n|---|---|---|---|")
        for name, sample in samples.items():
            mine, others = ours(os.environ["OCTET"], model, sample, scratch, args.runs), theirs(model, sample, args.runs)
            print(f"| {name} | {mine:.0f} | {others:.0f} | {mine / others:.2f} |", flush=True)


if __name__ == "__main__":
    main()
