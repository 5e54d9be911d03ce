"""What the oracle's tests share: the corpus, the command line under test, one quantization a model."""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnxruntime
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from corpus import Corpus  # noqa: E402

onnxruntime.set_default_logger_severity(3)


def octet():
    """The command line under test, from $OCTET. Not having one is a failure, not a reason to skip."""
    program = os.environ.get("OCTET")
    if not program or not Path(program).exists():
        pytest.fail(f"OCTET must name the built command line; it is {program!r}. scripts/oracle.sh sets it.")
    return Path(program)


@dataclass(frozen=True)
class Quantized:
    """One run of `octet quantize` with its defaults."""

    source: Path
    samples: Path
    model: Path
    report: Path
    status: int
    errors: str


@pytest.fixture(scope="session")
def corpus():
    return Corpus()


@pytest.fixture(scope="session")
def program():
    return octet()


@pytest.fixture(scope="session")
def quantized(corpus, program, tmp_path_factory):
    """A function from a model's name to its quantization, run once."""

    @cache
    def run(name):
        source, samples = corpus.model(name), corpus.samples(name)
        if not any(samples.glob("*.npz")):
            samples = corpus.samples("ppocr_rec")  # for a model that is refused before any sample is read
        folder = tmp_path_factory.mktemp(name)
        model, report = folder / "quantized.onnx", folder / "report.yaml"
        done = subprocess.run(
            [program, "quantize", source, "--calib", samples, "--out", model, "--report", report, "--threads", "2"],
            capture_output=True, text=True, check=False)
        return Quantized(source, samples, model, report, done.returncode, done.stderr)

    return run
