"""Every report is read by PyYAML, follows `docs/report.schema.json`, and forecasts its result."""

import subprocess

import jsonschema
import pytest
from corpus_manifest import FLOAT
from reports import SCHEMA, check_quarks_part, checked


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", FLOAT)
def test_quarks_part_is_quarks_and_the_rest_is_as_the_schema_says(quantized, name):
    result = quantized(name)
    assert result.status == 0, result.errors
    check_quarks_part(checked(result.report))
    # Only strings are quoted, and numbers have Quark's decimals.
    line = next(line for line in result.report.read_text().splitlines() if line.startswith("- step"))
    assert line == '- step: "Start"'


@pytest.mark.parametrize("name", FLOAT)
def test_memory_and_size_are_forecast(quantized, name):
    told = checked(quantized(name).report)["forecast"]
    forecast, actual = told["forecast"], told["actual"]
    peak = forecast["peakBytes"] / actual["peakBytes"]
    size = forecast["outputBytes"] / actual["outputBytes"]
    print(f"{name}: peak {peak:.3f} of {actual['peakBytes'] / 2**20:.1f} MiB, size {size:.3f}")
    assert 0.85 <= peak <= 1.15, f"forecast {forecast['peakBytes']}, was {actual['peakBytes']}"
    assert 0.85 <= size <= 1.15, f"forecast {forecast['outputBytes']}, was {actual['outputBytes']}"
    parts = forecast["weightBytes"] + forecast["liveBytes"] + forecast["rangeBytes"]
    assert parts <= forecast["peakBytes"] * 1.001


def test_runs_and_comparisons_leave_such_reports_too(corpus, program, quantized, tmp_path):
    float_model, result = corpus.model("squeezenet"), quantized("squeezenet")
    sample = sorted(corpus.samples("squeezenet").glob("*.npz"))[0]
    for command in (["run", float_model, "--input", sample, "--runs", "1"],
                    ["compare", float_model, result.model, "--data", sample, "--profile"]):
        report = tmp_path / "report.yaml"
        done = subprocess.run([program, *command, "--report", report], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert checked(report)["profiles"]
