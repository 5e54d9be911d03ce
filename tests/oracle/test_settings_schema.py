"""docs/settings.schema.json and the reader of settings take the same documents."""

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import operator_models
import onnx
import pytest

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "settings.schema.json").read_text())
TAKEN = ["minmax", "percentile", "percentile:0.5", "percentile:100", "percentile:100.0", "percentile:099.9", "percentile:99.", "percentile:.5",
         "ort-percentile:99.99", "layerwise-percentile:mse", "ort-entropy", "ort-entropy:2/2", "ort-entropy:2048/128", "ort-entropy:65536/65536",
         "ort-entropy:9999/100"]  # fmt: skip
REFUSED = ["percentile:0", "percentile:0.0", "percentile:.", "percentile:", "percentile:100.1", "percentile:101", "percentile:1000", "percentile:1e1",
           "percentile:+5", "percentile:1.2.3", "ort-percentile:0", "ort-entropy:1/1", "ort-entropy:128/1", "ort-entropy:128", "ort-entropy:65537/128",
           "ort-entropy:100000/128", "ort-entropy:+64/32", "mse:3", "layerwise-percentile:max", "median"]  # fmt: skip
DOCUMENTS = [
    *(({"method": method}, True) for method in TAKEN), *(({"method": method}, False) for method in REFUSED),
    ({}, True), ({"tensors": {"x": {"method": "mse", "per_channel": True}}}, True), ({"blocks": {"method": "hqq"}}, True),
    ({"blocks": {"method": "hqq", "symmetric": False}}, True), ([], False), ({"weights": []}, False), ({"tensors": {"x": []}}, False),
    ({"by_node": {"n": ["mse"]}}, False), ({"metod": "mse"}, False),
]  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "float.onnx"
    onnx.save(operator_models.build("Sigmoid"), path)
    return path


def is_read(document, source, folder):
    config = folder / "settings.json"
    config.write_text(json.dumps(document))
    # There are no samples: what can be read fails for that.
    command = [os.environ["OCTET"], "quantize", source, "--config", config, "--out", folder / "out.onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    return "settings.json:" not in done.stderr


@pytest.mark.parametrize("document, taken", DOCUMENTS, ids=[json.dumps(document) for document, _ in DOCUMENTS])
def test_what_the_schema_takes_is_read(document, taken, source, tmp_path):
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(document) == taken
    assert is_read(document, source, tmp_path) == taken


def test_a_pattern_can_not_compare_bins_and_levels(source, tmp_path):
    assert "at least as many bins as levels" in SCHEMA["$defs"]["Method"]["description"]
    assert not is_read({"method": "ort-entropy:128/256"}, source, tmp_path)
