"""Checks for every report: PyYAML reads it, it follows `docs/report.schema.json`, and its steps are
in order.
"""

import json
from pathlib import Path

import jsonschema
import yaml

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "report.schema.json").read_text())

# Quark's own keys in its order (AMD Quark 0.13); a browser leaves out the disk.
RECORD = ["step", "timestamp", "relative_time_secs", "cpu_memory_mb", "disk_read_mb", "disk_write_mb"]
SUMMARY = ["total_quantization_time_seconds", "peak_memory_mb", "total_disk_read_mb", "total_disk_write_mb",
           "peak_cache_dir_disk_usage_mb"]


def checked(path):
    """The report, checked against Quark's first line and the schema."""
    text = Path(path).read_text()
    assert text.startswith("# Quark Profiling Results")
    report = yaml.safe_load(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return report


def check_quarks_part(report, disk=True):
    """For a static run: Quark's keys in its order, and steps that each end after their start."""
    def here(keys):
        return [key for key in keys if disk or "disk_read" not in key and "disk_write" not in key]

    summary, records = here(SUMMARY), report["memory_usage"]
    assert list(report)[: 1 + len(summary)] == ["memory_usage", *summary]
    for key in summary:
        assert isinstance(report[key], float), key
    for record in records:
        assert list(record)[: len(here(RECORD))] == here(RECORD), record
    steps = [record["step"] for record in records]
    assert steps[0] == "Start" and steps[-1] == "End", steps
    for step in ("Pre-process", "Calibration", "Quantization (Static)"):
        assert steps.index(f"{step} Start") < steps.index(f"{step} End")
    times = [record["relative_time_secs"] for record in records]
    assert times == sorted(times)
    return steps
