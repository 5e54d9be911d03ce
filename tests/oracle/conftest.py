"""Shared fixtures of the oracle: the corpus, the command line under test, one quantization per
model.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnxruntime
import pytest
from xdist.scheduler import LoadScopeScheduling

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference_runtimes  # noqa: E402
from corpus import Corpus  # noqa: E402
from corpus_manifest import MODELS  # noqa: E402
from tasks import TASKS  # noqa: E402

onnxruntime.set_default_logger_severity(3)


# Long tests run first and the many short ones last, so that no worker idles at the end.
LONGEST = ["sam2_image_encoder_dynshape", "captcha_crnn", "ppocr_det", "ppocr_rec", "ddddocr_det", "ddddocr", "resnet50"]
LONGEST += [name for name in MODELS if name not in LONGEST]


def model_of(nodeid):
    """The corpus model of a test, from its parameters."""
    _, _, parameters = nodeid.rstrip("]").rpartition("[")
    return next((name for name in parameters.split("-") if name in MODELS), None)


class ByModel(LoadScopeScheduling):
    """Two workers share the tests; those of one model go to the same worker, which caches its
    results.
    """

    def _split_scope(self, nodeid):
        return model_of(nodeid) or nodeid


def pytest_xdist_make_scheduler(config, log):
    # xdist's groups are marks in a field that pytest 9.2 does not read.
    return ByModel(config, log)


def pytest_collection_modifyitems(items):
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(model_of(item.nodeid), len(rank)))


def octet():
    """The command line under test, from $OCTET. If it is missing, tests fail instead of being
    skipped.
    """
    program = os.environ.get("OCTET")
    if not program or not Path(program).exists():
        pytest.fail(f"OCTET must name the built command line; it is {program!r}. scripts/oracle.sh sets it.")
    return Path(program)


@dataclass(frozen=True)
class Quantized:
    """One run of `octet quantize` with minmax, as ONNX Runtime quantizes."""

    source: Path
    samples: Path
    model: Path
    prepared: Path
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
        model, prepared, report = folder / "quantized.onnx", folder / "prepared.onnx", folder / "report.yaml"
        made = ["--out", model, "--save-prepared", prepared, "--report", report]
        done = subprocess.run(
            [program, "quantize", source, "--calib", samples, *made, "--method", "minmax", "--threads", "2"], capture_output=True, text=True, check=False)
        return Quantized(source, samples, model, prepared, report, done.returncode, done.stderr)

    return run


@pytest.fixture(scope="session")
def task(corpus):
    """A function from a model's name to its task, made once."""
    return cache(lambda name: TASKS[name](corpus))


@pytest.fixture(scope="session")
def ort_quantized(corpus, quantized, task, tmp_path_factory):
    """Maps a model's name to ONNX Runtime's quantization of it, cached. The samples are those of
    its task, or two.
    """

    @cache
    def run(name):
        samples = task(name).folds[0].calibration if name in TASKS else reference_runtimes.load_samples(corpus.samples(name))[:2]
        out = tmp_path_factory.mktemp(name) / "theirs.onnx"
        reference_runtimes.ort_quantize_or_prepared(corpus.model(name), quantized(name).prepared, out, samples)
        return out

    return run


@pytest.fixture(scope="session")
def file_by(quantized, ort_quantized):
    """Maps a model's name and a quantizer, "octet" or "theirs", to the quantized file."""

    def find(name, whose):
        if whose == "theirs":
            return ort_quantized(name)
        result = quantized(name)
        assert result.status == 0, result.errors
        return result.model

    return find
