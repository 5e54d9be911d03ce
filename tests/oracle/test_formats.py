"""The other formats of a quantized model agree with the QDQ format.

With integer operators, the result may differ by one integer step per operator; with float weights
it is equal. All run without graph optimisation, so ONNX Runtime computes the file literally.
"""

import os
import subprocess
from collections import Counter
from pathlib import Path

import reference_runtimes
import numpy as np
import onnx
import operator_models
import pytest
import small_models
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat
from test_same_as_onnxruntime import SETTINGS, find_ranges, ours, parts, theirs

# The integer form of an operator; those not named keep their name.
INTEGER = {
    "Add": "QLinearAdd", "AveragePool": "QLinearAveragePool", "Concat": "QLinearConcat", "Conv": "QLinearConv",
    "Gemm": "QGemm", "GlobalAveragePool": "QLinearGlobalAveragePool", "LeakyRelu": "QLinearLeakyRelu",
    "MatMul": "QLinearMatMul", "Mul": "QLinearMul", "Sigmoid": "QLinearSigmoid", "Softmax": "QLinearSoftmax",
    "Where": "QLinearWhere",
}  # fmt: skip
# Operators without an equivalent integer kernel keep their pairs. (src/quantize/qoperator/ explains
# why.)
KEPT = {
    "AveragePool:hanging over", "BatchNormalization", "ConvTranspose", "ConvTranspose:no bias", "CumSum",
    "InstanceNormalization", "LayerNormalization", "LayerNormalization:no shift", "Pad:filled", "Resize:cubic",
    "Resize:linear",
    "Where:constant",  # Of which only one branch is quantized.
}  # fmt: skip
# A Relu or Clip is folded into the node before it, unless activations are symmetric.
CLAMPS = {"Relu", "Clip"}


def form(name, *paths):
    """Writes another format with the example program beside the command line."""
    example = Path(os.environ["OCTET"]).parent / "examples" / "forms"
    assert example.exists(), f"{example} is missing: `cargo build --release --features cli --example forms` makes it"
    done = subprocess.run([example, name, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def all_forms(model, settings, folder):
    """Paths of the QDQ format, of that with integer operators, and of that with float weights."""
    prepared = folder / "prepared.onnx"
    ours(model, find_ranges(model), settings, folder, "--save-prepared", prepared)
    qdq, integers, floats = (folder / f"{name}.onnx" for name in ("octet", "integers", "floats"))
    form("qoperator", qdq, integers)
    form("simulated", qdq, prepared, floats)
    for path in (integers, floats):
        onnx.checker.check_model(str(path), full_check=True)
    return qdq, integers, floats


def noise(path, seed=1):
    random = np.random.default_rng(seed)
    shapes = {v.name: [d if isinstance(d, int) else 1 for d in v.shape] for v in reference_runtimes.session(path).get_inputs()}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def integer_values(path, sample):
    """Every value that is 8-bit integers when the model runs literally."""
    model = onnx.load(path)
    made = {o for node in model.graph.node for o in node.output if o}
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {v.name: v.type.tensor_type.elem_type for v in inferred.graph.value_info}
    quantized = {n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear"}
    names = [n for n in sorted(made) if types.get(n) in (TensorProto.UINT8, TensorProto.INT8) or n in quantized]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names)
    probe = Path(path).with_suffix(".probe.onnx")
    onnx.save(model, probe)
    return dict(reference_runtimes.run(probe, [sample], optimize=False)[0])


def operators(path):
    return [node.op_type for node in onnx.load(path).graph.node]


def check_result(qdq, other, steps):
    """Outputs of two formats, at most `steps` integer steps apart."""
    sample = noise(qdq)
    scales = {}
    for node in (model := onnx.load(qdq)).graph.node:
        if node.op_type == "DequantizeLinear":
            constant = next(t for t in model.graph.initializer if t.name == node.input[1])
            scales[node.output[0]] = float(numpy_helper.to_array(constant).max())
    before, after = (reference_runtimes.run(path, [sample], optimize=False)[0] for path in (qdq, other))
    for name, values in before.items():
        if steps == 0 or name not in scales:
            np.testing.assert_array_equal(after[name], values, err_msg=name)
        else:
            # Half a step more, for the rounding of floats.
            apart = np.abs(after[name] - values).max(initial=0) / scales[name]
            assert apart < steps + 0.5, f"{name} is {apart} steps apart"


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", operator_models.MODELS)
def test_an_operator_works_on_integers_or_keeps_its_pairs(name, settings, tmp_path):
    activations, symmetric, per_channel, _ = settings
    qdq, integers, floats = all_forms(operator_models.build(name), settings, tmp_path)
    operator = name.split(":")[0]
    # A weight with a scale a channel: not along the rows of a stack; a signed first factor: not with unsigned results.
    kept = name in KEPT or (name == "MatMul:stacked weight" and per_channel)
    kept |= name == "MatMul:constant first" and (per_channel or activations == "u8")
    kept |= operator in CLAMPS and symmetric
    found = operators(integers)
    if operator in CLAMPS and not symmetric:
        assert operator not in found
    elif kept:
        assert operator in found
    else:
        assert INTEGER.get(operator, operator) in found
        # Only the pairs between integers and the model's inputs and outputs are left.
        model = onnx.load(integers)
        ends = {v.name for v in [*model.graph.input, *model.graph.output]}
        for node in model.graph.node:
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                assert ends & {*node.input, *node.output}, node
    check_result(qdq, integers, 1)
    check_result(qdq, floats, 0)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", small_models.MODELS)
def test_a_small_model_says_the_same_in_every_form(name, settings, tmp_path):
    qdq, integers, floats = all_forms(small_models.build(name), settings, tmp_path)
    check_result(qdq, floats, 0)
    sample = noise(qdq)
    before, after = integer_values(qdq, sample), integer_values(integers, sample)
    common = before.keys() & after.keys()
    assert common
    for value in common:
        apart = np.abs(before[value].astype(int) - after[value].astype(int))
        # Steps add up from one operator to the next.
        assert not apart.size or apart.mean() <= 1, f"{value}: {apart.mean()} steps on average, {apart.max()} at most"


def nearly(constant, other):
    """True if two constants have equal 8-bit integers, scales equal up to the last bits, or biases
    of such scales.

    In this format ONNX Runtime rounds a scale's range differently than in the QDQ format.
    """
    kind, _, data = constant
    if kind != other[0] or len(data) != len(other[2]):
        return False
    values, reference = (np.frombuffer(d, helper.tensor_dtype_to_np_dtype(kind)).astype(float) for d in (data, other[2]))
    byte = kind in (TensorProto.INT8, TensorProto.UINT8)
    return np.allclose(values, reference, rtol=0 if byte else 2e-6, atol=1 if kind == TensorProto.INT32 else 0)


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", ["efficientnet_lite0", "squeezenet", "ppocr_cls"])
def test_a_real_model_has_the_integer_operators_that_onnx_runtime_writes(name, settings, corpus, tmp_path):
    qdq, integers, floats = all_forms(onnx.load(corpus.model(name)), settings, tmp_path)
    prepared = onnx.load(tmp_path / "prepared.onnx")
    found, reference = onnx.load(integers), theirs(
        prepared, find_ranges(prepared), settings, tmp_path / "theirs.onnx", QuantFormat.QOperator)  # fmt: skip
    mine, other = (Counter(node.op_type for node in model.graph.node) for model in (found, reference))
    for operator, count in other.items():
        # Operators that they leave float may be integer here, as they quantize an average only
        # after a quantized value.
        if operator.startswith("Q") and operator != "QuantizeLinear":
            assert mine[operator] >= count, operator
    # Theirs has 7 bits for the weights of a MatMul, 1/256 for the scale of a Softmax, and for the constants of an Add
    # or Mul what weights have, whatever is asked for.
    slots = {"QLinearMatMul": range(3, 6), "QLinearSoftmax": range(3, 5), "QLinearAdd": range(6), "QLinearMul": range(6)}
    constants = {tensor.name for tensor in reference.graph.initializer}
    otherwise = set()
    for node in reference.graph.node:
        inputs = [node.input[slot] for slot in slots.get(node.op_type, [])]
        pairs = zip(inputs[::3], inputs[1::3]) if len(inputs) == 6 else [(n, n) for n in inputs]
        otherwise |= {n for integers_of, scale in pairs if integers_of in constants for n in (integers_of, scale)}
    ours_by_name, theirs_by_name = parts(found)[0], parts(reference)[0]
    common = {n for n in ours_by_name.keys() & theirs_by_name.keys() - otherwise if "_quantized" in n or "_scale" in n}
    assert len(common) > 2 * other["QLinearConv"]
    differ = [constant for constant in common if not nearly(ours_by_name[constant], theirs_by_name[constant])]
    assert not differ, differ
    sample = noise(integers)
    native, web = reference_runtimes.run(integers, [sample])[0], reference_runtimes.run_web(integers, sample)
    for output, values in native.items():
        assert reference_runtimes.sqnr([values], [web[output]]) >= 60, output
    check_result(qdq, floats, 0)
