#!/usr/bin/env python3
"""Bytes that a training step keeps for its gradient, with fake quantization over without: Octet and PyTorch.

    python benches/training_memory.py --peer PYTHON

PYTHON is that of an environment with torch, such as the one of benches/fine_tuning.py. The network
is that of crates/training/examples/step_memory.rs. Nothing is timed, so the figures are the same on
every machine.
"""

import argparse
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
BATCH, SIDE, NARROW, WIDE = 4, 28, 32, 192


def kept_by_torch(rounded):
    """Bytes of the tensors that the gradient needs, besides the parameters themselves."""
    import torch
    from torch.nn import functional

    torch.manual_seed(0)
    shapes = [(WIDE, NARROW, 1, 1), (WIDE, 1, 3, 3), (NARROW, WIDE, 1, 1)]
    weights = [torch.randn(shape, requires_grad=True) for shape in shapes]
    kept = {weight.untyped_storage().data_ptr(): 0 for weight in weights}

    def keep(tensor):
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        first = value = rounded(functional.relu6(torch.randn(BATCH, NARROW, SIDE, SIDE)))
        for at, weight in enumerate(weights):
            groups = WIDE if at == 1 else 1
            value = functional.conv2d(value, rounded(weight), padding=weight.shape[2] // 2, groups=groups)
            value = rounded(functional.relu6(value) if at < 2 else value)
        value = rounded(value + first)
    value.sum().backward()
    return sum(kept.values())


def torch_rows():
    import torch
    from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver

    scale = torch.tensor([0.02], requires_grad=True)
    zero = torch.tensor([0.0], requires_grad=True)
    observed = {"observer": MovingAverageMinMaxObserver, "quant_min": -128, "quant_max": 127, "dtype": torch.qint8}
    ways = {
        "float": lambda x: x,
        "fake_quantize_per_tensor_affine": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.02, 0, -128, 127),
        "torch.ao FakeQuantize": lambda x: FakeQuantize(**observed)(x),
        "learned scales": lambda x: torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -128, 127, 1.0),
    }
    return [(f"PyTorch {torch.__version__}, {name}", kept_by_torch(way)) for name, way in ways.items()]


def octet_rows():
    command = ["cargo", "run", "--release", "--locked", "--quiet", "-p", "octet-training", "--example", "step_memory"]
    lines = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [(f"Octet, {name}", int(values) + int(masks)) for name, values, masks in (line.split("\t") for line in lines)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch:
        for name, size in torch_rows():
            print(f"{name}\t{size}")
        return
    if not args.peer:
        parser.error("--peer names the Python that has torch")
    lines = subprocess.run([args.peer, __file__, "--torch"], check=True, capture_output=True, text=True).stdout.splitlines()
    print("| step | kept | over float |\n|---|---|---|")
    for rows in (octet_rows(), [(name, int(size)) for name, size in (line.split("\t") for line in lines)]):
        plain = rows[0][1]
        for name, size in rows:
            print(f"| {name} | {size / 1e6:.2f} MB | {100 * (size / plain - 1):+.1f} % |")


if __name__ == "__main__":
    sys.exit(main())
