"""ONNX's own cases of every operator: what ONNX Runtime computes of one, so does Octet's engine in floats, or it refuses it by a name that is listed here."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory
from pathlib import Path

import judge
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from run_model import launch

KINDS = "fiub"
EIGHT_BYTES = 8


def plain(value):
    return isinstance(value, np.ndarray) and value.dtype.kind in KINDS and value.dtype.name in np.sctypeDict


def cases():
    """Those of plain tensors, without the bodies of functions."""
    for case in load_model_tests(kind="node"):
        ports = [*case.model.graph.input, *case.model.graph.output]
        tensors = all(port.type.HasField("tensor_type") for port in ports)
        values = [value for values in case.data_sets[0] for value in values]
        if tensors and all(map(plain, values)) and "_expanded" not in case.name:
            yield case


def as_models_have_it(case):
    """Axes, sizes and what no sample can hold are constants; the rest is fed."""
    model, given = onnx.ModelProto(), {}
    model.CopyFrom(case.model)
    for place, (port, value) in enumerate(zip(case.model.graph.input, case.data_sets[0][0])):
        if place and (value.dtype.kind in "iu" or value.ndim <= 1) or not np.isfinite(value).all():
            model.graph.initializer.append(numpy_helper.from_array(value, port.name))
            model.graph.input.remove(port)
        else:
            given[port.name] = value
    return model, given


def outcome(case):
    """`None` where ONNX Runtime can't run it or nothing is fed, else whether ours gives the same, or why not."""
    model, given = as_models_have_it(case)
    try:
        session = judge.session(case.model, optimize=False)
        fed = dict(zip([port.name for port in case.model.graph.input], case.data_sets[0][0]))
        expected = dict(zip([port.name for port in session.get_outputs()], session.run(None, fed)))
    except Exception:  # noqa: BLE001 - it has many kinds of errors
        return None
    if not given:
        return None
    with TemporaryDirectory() as folder:
        folder = Path(folder)
        onnx.save(model, folder / "model.onnx")
        np.savez(folder / "given.npz", **given)
        done = launch(folder / "model.onnx", folder / "given.npz", folder / "made.npz", "--float")
        if done.returncode:
            return done.stderr.strip()
        with np.load(folder / "made.npz") as made:
            return "right" if all(same(made[name], values) for name, values in expected.items()) else "wrong"


def same(found, expected):
    if found.shape != expected.shape or found.dtype != (np.float32 if expected.dtype == np.float16 else expected.dtype):
        return False
    expected, coarse = expected.astype(np.float64), expected.dtype == np.float16
    near = (1e-3 if coarse else 1e-6) * max(1, np.abs(expected[np.isfinite(expected)]).max(initial=0))
    return np.allclose(found.astype(np.float64), expected, rtol=1e-2 if coarse else 1e-4, atol=near, equal_nan=True)
