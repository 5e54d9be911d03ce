"""Models downloaded by the page's tests are accepted by other tools. Runs after those tests."""

import os
from pathlib import Path

import reference_runtimes
import onnx
from reports import check_quarks_part, checked


def test_models_that_the_page_made_are_accepted():
    folder = os.environ["OCTET_E2E_OUT"]
    models = sorted(Path(folder).rglob("*.onnx"))
    assert models, f"the page's tests left no model in {folder}"
    for path in models:
        onnx.checker.check_model(str(path), full_check=True)
        assert "QuantizeLinear" in [node.op_type for node in onnx.load(path).graph.node], path
        reference_runtimes.session(path)
    reports = sorted(Path(folder).rglob("*.yaml"))
    assert reports, f"the page's tests left no report in {folder}"
    for path in reports:
        steps = check_quarks_part(checked(path), disk=False)
        assert any(step.startswith("Memory grew from") for step in steps), path
