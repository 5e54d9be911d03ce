#!/usr/bin/env python3
"""Times the peer, ONNX Runtime's quantize_static in Python, with minmax and otherwise Octet's
default settings.

    peer.py MODEL.onnx SAMPLES OUT.onnx [--count N]

Prints one JSON object: `seconds` of the call on the same file that Octet gets, and `peak_bytes` of
the process. The imports (half a second) are not counted.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
import reference_runtimes  # noqa: E402
import onnxruntime  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("samples")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int)
    parser.add_argument("--method", choices=["minmax", "percentile", "entropy"], default="minmax")
    args = parser.parse_args()

    onnxruntime.set_default_logger_severity(3)
    samples = reference_runtimes.load_samples(args.samples)[: args.count]
    began = time.perf_counter()
    reference_runtimes.ort_quantize(args.model, args.out, samples, args.method)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    told = {"seconds": seconds, "peak_bytes": peak, "samples": len(samples)}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
