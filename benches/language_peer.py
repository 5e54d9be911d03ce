#!/usr/bin/env python3
"""The peer of language_model.py: ONNX Runtime's MatMulNBitsQuantizer.

    language_peer.py SOURCE.onnx OUT.onnx --algorithm default|rtn|k_quant --bits BITS --size BLOCK [--asymmetric] [--embeddings]

Prints the seconds from the loaded modules to the written file. onnx_ir, which the quantizer
imports, must be on PYTHONPATH. Its HQQ needs PyTorch and is left out.
"""

import argparse
import time

import onnx
from onnxruntime.quantization import matmul_nbits_quantizer as peer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--algorithm", choices=["default", "rtn", "k_quant"], default="default")
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--asymmetric", action="store_true")
    parser.add_argument("--embeddings", action="store_true")
    args = parser.parse_args()
    config = {"rtn": peer.RTNWeightOnlyQuantConfig, "k_quant": peer.KQuantWeightOnlyQuantConfig}.get(args.algorithm)
    more = {"op_types_to_quantize": ("MatMul", "Gather"), "quant_axes": (("MatMul", 0), ("Gather", 1))} if args.embeddings else {}
    began = time.perf_counter()
    quantizer = peer.MatMulNBitsQuantizer(
        onnx.load(args.source), bits=args.bits, block_size=args.size, is_symmetric=not args.asymmetric, algo_config=config and config(), **more)
    quantizer.process()
    quantizer.model.save_model_to_file(args.out, use_external_data_format=True)
    print(f"\n{time.perf_counter() - began}")  # behind a progress bar


if __name__ == "__main__":
    main()
