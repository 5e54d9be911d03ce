#!/usr/bin/env python3
"""The peer: ONNX Runtime's quantize_static in Python, timed on the settings that are Octet's defaults.

    peer.py MODEL.onnx SAMPLES OUT.onnx [--count N]

Prints one JSON object: `seconds` of the call alone (the imports, and the preparation of the model that
its authors recommend, are not counted) and `peak_bytes`, the largest the process was.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
import judge  # noqa: E402
import onnxruntime  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("samples")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int)
    args = parser.parse_args()

    onnxruntime.set_default_logger_severity(3)
    samples = judge.load_samples(args.samples)[: args.count]
    prepared = args.out.with_suffix(".prepared.onnx")
    judge.ort_prepare(args.model, prepared)
    began = time.perf_counter()
    judge.ort_quantize(prepared, args.out, samples)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "samples": len(samples)}))


if __name__ == "__main__":
    main()
