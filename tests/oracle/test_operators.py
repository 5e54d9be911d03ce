"""Every operator alone. If ONNX Runtime quantizes it, our model equals theirs for all settings.
Otherwise ours is quantized and close to the float model.

`operator_models.py` has the models; the check is that of `test_same_as_onnxruntime.py`. All that is quantized and
how is in the graph: the names of its constants and nodes, scales, zero points, integers.
"""

import subprocess

import exact_products
import reference_runtimes
import numpy as np
import onnx
import operator_models
import pytest
import small_models
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry
from test_same_as_onnxruntime import check_same, find_ranges, run_octet, theirs

# (activations, symmetric activations, per channel, reduce range)
SETTINGS = [
    (activations, symmetric, per_channel, False)
    for activations in ("u8", "i8") for symmetric in (False, True) for per_channel in (True, False)
]  # fmt: skip


def test_every_operator_of_onnx_runtimes_list_has_a_model():
    # EmbedLayerNormalization is not ONNX's: test_embedding.py has it.
    listed = {*QDQRegistry, *QLinearOpsRegistry} - {"EmbedLayerNormalization"}
    assert listed == {name.split(":")[0] for name in operator_models.MODELS}


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", operator_models.MODELS)
def test_an_operator_comes_out_the_same(name, settings, tmp_path):
    check_same(operator_models.build(name), settings, tmp_path)


@pytest.mark.parametrize("name", operator_models.ALONE)
def test_what_follows_nothing_quantized_is_left_and_we_say_so(name, tmp_path):
    model = operator_models.build(name, operator_models.ALONE)
    ranges = find_ranges(model)
    left = theirs(model, ranges, SETTINGS[0], tmp_path / "theirs.onnx")
    assert [node.op_type for node in left.graph.node] == [name]
    done = run_octet(model, ranges, SETTINGS[0], tmp_path)
    assert done.returncode == 3 and "its input is not quantized" in done.stderr, done.stderr


def samples(model):
    random = np.random.default_rng(3)
    return [{port.name: random.standard_normal([d.dim_value for d in port.type.tensor_type.shape.dim]).astype(np.float32)
             for port in model.graph.input} for _ in range(4)]


@pytest.mark.parametrize("activations", ["u8", "i8", "i16"])
@pytest.mark.parametrize("name", operator_models.OURS)
def test_what_onnx_runtime_leaves_in_float_is_quantized_here(name, activations, program, tmp_path):
    operator = name.split(":")[0]
    opset = 21 if activations == "i16" or operator in ("Gelu", "GroupNormalization", "ReduceMax", "ReduceMean", "ReduceMin") else small_models.OPSET
    model = operator_models.build(name, operator_models.OURS, opset=opset)
    source, target = tmp_path / "float.onnx", tmp_path / "octet.onnx"
    onnx.save(model, source)
    given = samples(model)
    calibration = reference_runtimes.save_samples(tmp_path / "samples", given)
    command = [program, "quantize", source, "--calib", calibration, "--method", "minmax", "--out", target, "--no-guard",
               "--activations", activations]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = onnx.load(target)
    onnx.checker.check_model(made, full_check=True)
    maker = {output: node for node in made.graph.node for output in node.output}
    [node] = [node for node in made.graph.node if node.op_type == operator]
    assert maker[node.input[0]].op_type == "DequantizeLinear"
    assert maker["y"].op_type == "DequantizeLinear", "what it makes is not quantized"
    wanted, found = (reference_runtimes.run(path, given, optimize=False) for path in (source, target))
    quality = min(reference_runtimes.sqnr(a["y"], b["y"]) for a, b in zip(wanted, found))
    assert quality > (50 if activations == "i16" else 25), f"{quality:.1f} dB"


@pytest.mark.parametrize("activations, weights", [("u8", "i8"), ("u8", "u8"), ("i8", "i8"), ("u8", "i16"), ("u16", "i8")])
@pytest.mark.parametrize("name", ["MatMul", "MatMul:stacked weight", "MatMul:constant first"])
def test_onnx_runtime_multiplies_by_any_constant_factor_when_it_fuses(name, activations, weights, program, tmp_path):
    # Its QLinearMatMul takes scales by channel of single matrices on the right only; a model by its own quantizer fails as it runs.
    source, target = tmp_path / "float.onnx", tmp_path / "octet.onnx"
    onnx.save(operator_models.build(name, opset=21), source)
    given = samples(onnx.load(source))
    calibration = reference_runtimes.save_samples(tmp_path / "samples", given)
    subprocess.run([program, "quantize", source, "--calib", calibration, "--method", "minmax", "--out", target, "--no-guard",
                    "--activations", activations, "--weights", weights], check=True, capture_output=True)  # fmt: skip
    constant = next(t for t in onnx.load(source).graph.initializer)
    scales = next(t for t in onnx.load(target).graph.initializer if t.name == f"{constant.name}_scale")
    assert list(scales.dims) == {"MatMul": [5], "MatMul:stacked weight": [5][: weights == "i16"],
                                 "MatMul:constant first": [5][: weights == "i16"]}[name]  # fmt: skip
    wanted, literal, fused = reference_runtimes.run(source, given), reference_runtimes.run(target, given, optimize=False), reference_runtimes.run(target, given)
    assert min(reference_runtimes.sqnr(a["y"], b["y"]) for a, b in zip(wanted, literal)) > 33
    # Its optimizer makes u8 of i8 activations, whose products by i8 it doesn't hold exactly on some processors.
    if not exact_products.saturates() or (name, activations) != ("MatMul", "i8"):
        assert min(reference_runtimes.sqnr(a["y"], b["y"]) for a, b in zip(literal, fused)) > 45


@pytest.mark.parametrize("activations", ["u4", "i4"])
@pytest.mark.parametrize("opset", [17, 21])
def test_onnx_runtime_loads_a_pool_beside_four_bits(opset, activations, program, tmp_path):
    # It moves a MaxPool between the integers, and takes none of four bits there.
    source, target, report = (tmp_path / name for name in ("float.onnx", "octet.onnx", "report.yaml"))
    onnx.save(operator_models.build("MaxPool", opset=opset), source)
    given = samples(onnx.load(source))
    calibration = reference_runtimes.save_samples(tmp_path / "samples", given)
    subprocess.run([program, "quantize", source, "--calib", calibration, "--method", "minmax", "--out", target, "--no-guard", "--report", report,
                    "--activations", activations], check=True, capture_output=True)  # fmt: skip
    literal, fused = reference_runtimes.run(target, given, optimize=False), reference_runtimes.run(target, given)
    assert min(reference_runtimes.sqnr(a["y"], b["y"]) for a, b in zip(literal, fused)) > 40
    assert any(node.op_type == "QuantizeLinear" for node in onnx.load(target).graph.node)
    assert "stays float: ONNX Runtime would run the MaxPool" in report.read_text()
