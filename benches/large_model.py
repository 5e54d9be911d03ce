#!/usr/bin/env python3
"""Memory and speed of streamed conversions of large models.

    large_model.py [GB...]      converts synthetic models of so many GB (3 6); 12.9 has 28 layers
    --form FORM                 only q4 or fp16; otherwise both
    --rounds N                  of pump and conversion in turn (default: 3); the median ratio counts
    --method METHOD             of blocks: rtn (default), search, hqq
    --folder DIR                for the models, which are deleted after (default: the cache)
    --json FILE                 writes the rows for scripts/bench.mjs
    --write DIR                 only writes the model there, as m.onnx, and converts nothing

The speed is compared with a pump: it reads the same slices and writes as many bytes as the result
has, without arithmetic. Pumps and conversions alternate. The source is dropped from the page cache
before each, because a model of this size is read once.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "oracle"))
from corpus import cache_folder  # noqa: E402
from large_llama import layers_of, shape, write_large  # noqa: E402
from process_use import measured  # noqa: E402

SLICE = 8 << 20  # octet_quantize::recipe::SLICE
PEAK_MIB, SPREAD = 350, 1.05


def drop(file):
    """Drops a file from the page cache."""
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def pump(source, out, size):
    """Seconds for reading a file in slices while a file of `size` bytes is written, with its sync."""
    total, read, written = source.stat().st_size, 0, 0
    buffer = memoryview(bytearray(SLICE))
    drop(source)
    began = time.perf_counter()
    with open(source, "rb", buffering=0) as before, open(out, "wb", buffering=0) as after:
        after.truncate(size)
        while count := before.readinto(buffer):
            read += count
            due = size * read // total - written
            written += after.write(buffer[:due])
        os.fsync(after.fileno())
    seconds = time.perf_counter() - began
    assert written == size, f"{written} of {size} bytes were written"
    out.unlink()
    return seconds


def settings_of(form, method):
    if form == "fp16":
        return {"scheme": "float16"}
    return {"scheme": "blocks", "blocks": {"bits": 4, "size": 32, "embeddings": True, "method": method}}


def convert(form, method, rounds, folder):
    """Converts the model of the folder; returns the median round."""
    source, out = folder / "m.onnx", folder / "q.onnx"
    data, result = source.with_name("m.onnx_data"), out.with_name("q.onnx_data")
    settings = json.dumps(settings_of(form, method))
    size = data.stat().st_size
    made = []
    for _ in range(rounds):
        # What is written is known beforehand: halves, or four bits and a scale of 32 a block.
        pumped = pump(data, folder / "pumped", size // 2 if form == "fp16" else size * 5 // 32)
        drop(data)
        used, _ = measured([os.environ["OCTET"], "quantize", source, "--stream", "--config", settings, "--out", out])
        bytes_out = result.stat().st_size
        out.unlink()
        result.unlink()
        made.append({
            "form": form, "gigabytes": size / 1e9, "bytes_out": bytes_out, "peak_mib": used["peak_bytes"] / 2**20, "seconds": used["seconds"],
            "pump_seconds": pumped, "speed": pumped / used["seconds"], "user_per_gb": used["user_seconds"] / (size / 1e9),
            "system_per_gb": used["system_seconds"] / (size / 1e9),
        })  # fmt: skip
    median = statistics.median_low(row["speed"] for row in made)
    row = next(row for row in made if row["speed"] == median)
    return {**row, "peak_mib": max(one["peak_mib"] for one in made)}


def line(row):
    """A row of the table."""
    return (
        f"| {row['form']} | {row['gigabytes']:.1f} GB | {row['bytes_out'] / 1e9:.2f} GB | {row['peak_mib']:.0f} MiB | {row['seconds']:.1f} s | {row['pump_seconds']:.1f} s "
        f"| {row['speed']:.2f} | {row['user_per_gb']:.2f} s/GB | {row['system_per_gb']:.2f} s/GB |"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=float, metavar="GB")
    parser.add_argument("--form", choices=["q4", "fp16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--method", choices=["rtn", "search", "hqq"], default="rtn")
    parser.add_argument("--folder", type=Path, default=cache_folder())
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path, metavar="DIR")
    args = parser.parse_args()
    if args.write:
        [gigabytes] = args.sizes
        write_large(args.write / "m.onnx", shape(layers_of(gigabytes)))
        return
    rows = []
    print("| form | source | result | peak memory | time | pump | speed of the pump | user time | system time |\n|---|---|---|---|---|---|---|---|---|")
    for gigabytes in args.sizes or [3, 6]:
        needed = 1.8e9 * gigabytes
        if shutil.disk_usage(args.folder).free < needed:
            sys.exit(f"{args.folder} has no room for {needed / 1e9:.0f} GB: choose another --folder or smaller sizes")
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            write_large(Path(folder) / "m.onnx", shape(layers_of(gigabytes)))
            for form in [args.form] if args.form else ["q4", "fp16"]:
                row = convert(form, args.method, args.rounds, Path(folder))
                rows.append(row)
                print(line(row), flush=True)
    for form in dict.fromkeys(row["form"] for row in rows):
        peaks = [row["peak_mib"] for row in rows if row["form"] == form]
        print(f"{form}: peak at most {PEAK_MIB} MiB: {max(peaks) <= PEAK_MIB}; within {SPREAD}: {max(peaks) / min(peaks):.3f}")
    if args.json:
        args.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
