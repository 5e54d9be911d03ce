"""ONNX's own test cases of every operator: Octet's float engine agrees with ONNX Runtime, or
refuses the case with an error that is listed here.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import reference_runtimes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from run_model import launch

KINDS = "fiub"

# Operators that the engine lacks: none of their cases runs.
UNKNOWN = {
    "BitCast", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "TensorScatter", "TfIdfVectorizer",
    "ai.onnx.ml::Binarizer", "ai.onnx.ml::TreeEnsemble",
}  # fmt: skip

# Unsupported variants: a part of the case's name, and of the error.
REFUSED = {
    "batchnorm_epsilon_training_mode": "another number of outputs than the model names",
    "batchnorm_example_training_mode": "another number of outputs than the model names",
    "reduce_max_bool_inputs": "Bool is not a number",
    "reduce_min_bool_inputs": "Bool is not a number",
    "scan_sum": "Scan had another form before opset 9",
}

# Cases with other values, with the reason.
OTHER = {
    "reduce_max_empty_set": "tract begins with the least number",
    "reduce_min_empty_set": "tract begins with the largest number",
    "resize_downsample_scales_linear_align_corners": "ONNX's, of the size before it is rounded",
    "resize_downsample_scales_cubic_align_corners": "ONNX's, of the size before it is rounded",
    "qk_matmul_bias_3d_mask_causal": "what is hidden is -∞ among the scores, where ONNX Runtime has the least number",
    "qk_matmul_bias_4d_mask_causal": "what is hidden is -∞ among the scores, where ONNX Runtime has the least number",
}


def plain(value):
    return isinstance(value, np.ndarray) and value.dtype.kind in KINDS and value.dtype.name in np.sctypeDict


def cases():
    """Cases with plain tensors, without function bodies."""
    for case in load_model_tests(kind="node"):
        ports = [*case.model.graph.input, *case.model.graph.output]
        tensors = all(port.type.HasField("tensor_type") for port in ports)
        values = [value for values in case.data_sets[0] for value in values]
        if tensors and all(map(plain, values)) and "_expanded" not in case.name:
            yield case


def as_models_have_it(case):
    """Axes, sizes and types that no sample can hold are constants; other inputs are fed."""
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
    """`None` if ONNX Runtime can't run it or nothing is fed; otherwise true if ours agrees, or the
    reason.
    """
    model, given = as_models_have_it(case)
    try:
        session = reference_runtimes.session(case.model, optimize=False)
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


def expected(case):
    """The expected outcome of a case."""
    operators = {f"{node.domain}::{node.op_type}" if node.domain else node.op_type for node in case.model.graph.node}
    listed = [error for name, error in REFUSED.items() if name in case.name]
    if operators & UNKNOWN or listed:
        return listed[0] if listed else "UnknownOperators"
    return "wrong" if any(name in case.name for name in OTHER) else "right"


def test_every_case_of_onnx_gives_onnx_runtimes_values_or_is_listed():
    every = list(cases())
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(outcome, every))
    judged = [(case, expected(case), it) for case, it in zip(every, found) if it is not None]
    other = {case.name: (it, wanted) for case, wanted, it in judged if wanted not in it}
    assert not other, other
    assert sum(it == "right" for _, _, it in judged) > 800
    names = " ".join(case.name for case, _, _ in judged)
    operators = {node.op_type for case, _, _ in judged for node in case.model.graph.node}
    gone = [name for name in [*REFUSED, *OTHER] if name not in names]
    gone += [name for name in UNKNOWN if name.rpartition("::")[2] not in operators]
    assert not gone, f"no case is about {gone}"
