"""Reading a file and writing it again changes nothing: every model of the corpus, field by field."""

import subprocess

import onnx
import pytest
from corpus_manifest import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_a_model_written_again_is_the_same(corpus, program, tmp_path, name):
    example = program.parent / "examples" / "round_trip"
    assert example.exists(), f"{example} is missing: `cargo build --release --features cli --example round_trip` makes it"
    source, copy = corpus.model(name), tmp_path / "copy.onnx"
    subprocess.run([example, source, copy], check=True)
    before, after = onnx.ModelProto(), onnx.ModelProto()
    before.ParseFromString(source.read_bytes())
    after.ParseFromString(copy.read_bytes())
    assert before == after
    # Equality ignores fields that the onnx package doesn't know; their bytes are kept by it and show here.
    assert before.SerializeToString(deterministic=True) == after.SerializeToString(deterministic=True)
