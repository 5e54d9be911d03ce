"""Builds one architecture and writes it: `python -m architectures NAME OUT.onnx`."""

import argparse
from pathlib import Path

from . import BUILDERS, build
from .network import save


def main():
    parser = argparse.ArgumentParser(
        prog="architectures",
        description="Build a published architecture with seeded random weights.",
    )
    parser.add_argument("name", choices=BUILDERS)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    save(build(args.name), args.out)
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
