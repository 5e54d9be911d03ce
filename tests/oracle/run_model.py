"""Runs models in Octet's engine with the example `run_model`, which is beside the command line.

`cargo build --release --features cli --example run_model` makes it.
"""

import json
import os
import subprocess
from pathlib import Path

import reference_runtimes
import numpy as np


def attempt(path, sample, folder, *options):
    """A run that may fail but not panic: its exit status and output file."""
    given, made = folder / "given.npz", folder / "made.npz"
    np.savez(given, **sample)
    return launch(path, given, made, *options), made


def launch(path, given, made, *options):
    example = Path(os.environ["OCTET"]).parent / "examples" / "run_model"
    assert example.exists(), f"{example} is missing: `cargo build --release --features cli --example run_model` makes it"
    done = subprocess.run([example, path, given, made, *options], capture_output=True, text=True, timeout=600)
    # A panic that the engine caught is an error called `Panicked`.
    assert "panicked" not in done.stderr.lower() and done.returncode in (0, 1), done.stderr
    return done


def run_all(path, samples, folder, *options):
    """Outputs of many samples by name, from one process, and the messages about the nodes."""
    given, made = reference_runtimes.save_samples(folder / "given", samples), folder / "made"
    made.mkdir()
    done = launch(path, given, made, *options)
    assert done.returncode == 0, done.stderr
    return reference_runtimes.load_samples(made), json.loads(done.stdout)


def run(path, sample, folder, *options):
    """Outputs of a sample by name, and the messages about the nodes."""
    done, made = attempt(path, sample, folder, *options)
    assert done.returncode == 0, done.stderr
    with np.load(made) as arrays:
        return {name: arrays[name] for name in arrays.files}, json.loads(done.stdout)
