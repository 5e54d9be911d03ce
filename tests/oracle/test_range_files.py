"""Files of ranges: ONNX Runtime reads what Octet writes, and Octet reads what ONNX Runtime writes."""

import json
import struct
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable
from onnxruntime.quantization.calibrate import TensorData, TensorsData, load_tensors_data, save_tensors_data
from onnxruntime.quantization.quant_utils import write_calibration_table
from reference_runtimes import save_samples
from schemes import build, node, weight

MODEL = build(
    [node("Conv", ["x", "w", "b"], "c", pads=[1, 1, 1, 1]), node("Relu", ["c"], "r"), node("Flatten", ["r"], "f"),
     node("Gemm", ["f", "v"], "y")],
    [weight("w", 4, 3, 3, 3), weight("b", 4), weight("v", 64, 5)], [("x", [1, 3, 4, 4])], [("y", [1, 5])],
)  # fmt: skip


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(MODEL, path)
    random = np.random.default_rng(5)
    save_samples(tmp_path / "samples", [{"x": random.standard_normal((1, 3, 4, 4)).astype(np.float32)} for _ in range(4)])
    return path


def quantized(program, source, out, *options):
    """The quantized file, and what was said."""
    command = [program, "quantize", source, "--method", "minmax", "--out", out, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out.read_bytes(), done.stderr


def saved(program, source, name, *options):
    """A file of ranges, the quantized model, and what was said."""
    path = source.with_name(name)
    bytes, said = quantized(program, source, source.with_name("q.onnx"), "--samples", source.with_name("samples"), "--save-ranges", path, *options)
    return path, bytes, said


def test_onnxruntime_quantizes_with_the_ranges_of_octet(program, source):
    path, _, said = saved(program, source, "cache.json", "--ranges-format", "onnxruntime")
    assert "symmetric" not in said
    own, _, _ = saved(program, source, "own.json")
    ranges = json.loads(own.read_text())
    data = load_tensors_data(path)
    # Only the Relu reads c, so it has the range of the Relu's output.
    for name, wanted in {**ranges, "c": ranges["r"]}.items():
        np.testing.assert_array_equal([data[name].lowest, data[name].highest], np.float32(wanted))
    # ONNX Runtime takes the file in place of samples; its scales follow from these ranges.
    out = source.with_name("theirs.onnx")
    quantize_static(source, out, None, quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=CalibrationMethod.MinMax, calibration_cache_path=path)  # fmt: skip
    constants = {one.name: numpy_helper.to_array(one) for one in onnx.load(out).graph.initializer}
    low, high = ranges["x"]
    assert constants["x_scale"] == pytest.approx((max(high, 0) - min(low, 0)) / 255)


def test_octet_quantizes_with_the_ranges_of_onnxruntime(program, source):
    own, wanted, _ = saved(program, source, "own.json")
    ranges = {name: TensorData(lowest=np.float32(low), highest=np.float32(high)) for name, (low, high) in json.loads(own.read_text()).items()}
    path = source.with_name("theirs.json")
    save_tensors_data(TensorsData(CalibrationMethod.MinMax, ranges), path)
    made, _ = quantized(program, source, source.with_name("again.onnx"), "--ranges", path)
    assert made == wanted


def test_tables_for_tensorrt_go_both_ways(program, source):
    own, _, _ = saved(program, source, "own.json")
    ranges = json.loads(own.read_text())
    # ONNX Runtime's writer takes the larger end; for ranges that are symmetric, that is the magnitude.
    largest = {name: np.float32(max(-low, high)) for name, (low, high) in {**ranges, "c": ranges["r"]}.items()}
    symmetric = {name: TensorData(lowest=-one, highest=one) for name, one in largest.items()}
    write_calibration_table(symmetric, source.parent)
    mirrored = source.with_name("symmetric.json")
    mirrored.write_text(json.dumps({name: [-float(one), float(one)] for name, one in largest.items()}))
    wanted, _ = quantized(program, source, source.with_name("wanted.onnx"), "--ranges", mirrored)
    for name in ["calibration.json", "calibration.flatbuffers", "calibration.cache"]:
        made, said = quantized(program, source, source.with_name("again.onnx"), "--ranges", source.with_name(name))
        assert made == wanted, name
        assert ("no minimum" in said) == (name != "calibration.json"), said
    table, _, said = saved(program, source, "octet.flatbuffers")
    assert "not symmetric" in said
    read = TrtTable.GetRootAs(table.read_bytes(), 0)
    entries = [read.Dict(place) for place in range(read.DictLength())]
    assert {one.Key().decode(): float(one.Value()) for one in entries} == pytest.approx(largest)
    table, _, _ = saved(program, source, "octet.cache")
    head, *lines = table.read_text().splitlines()
    assert head.startswith("TRT-")
    scales = {name: struct.unpack(">f", bytes.fromhex(bits))[0] for name, bits in (line.rsplit(": ", 1) for line in lines)}
    assert scales == pytest.approx({name: one / 127 for name, one in largest.items()})


@pytest.mark.parametrize("format, version", [("aimet", "1.0.0"), ("aimet-0.6.1", "0.6.1")])
def test_encodings_of_aimet_give_the_reals_of_the_model_and_make_it_again(program, source, format, version):
    settings = ["--config", '{"weights": {"per_channel": false}}']
    path, wanted, _ = saved(program, source, "m.encodings", "--ranges-format", format, *settings)
    document = json.loads(path.read_text())
    assert document["version"] == version
    model = onnx.ModelProto.FromString(wanted)
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    if version == "1.0.0":
        found = {one["name"]: (one["bw"], one["scale"][0], one["offset"][0]) for part in ("activation", "param") for one in document[f"{part}_encodings"]}
    else:
        found = {name: (one[0]["bitwidth"], one[0]["scale"], one[0]["offset"])
                 for part in ("activation", "param") for name, one in document[f"{part}_encodings"].items()}  # fmt: skip
    pairs = [one for one in model.graph.node if one.op_type in ("QuantizeLinear", "DequantizeLinear")]
    assert {"x", "w", "v"} <= set(found) and len(found) >= 6
    for tensor, place in [("x", 0), ("w", 0), ("v", 0)]:
        pair = next(one for one in pairs if one.input[place].startswith(tensor))
        scale, zero = constants[pair.input[1]], constants[pair.input[2]]
        bits, written, offset = found[tensor]
        assert bits == 8 and written == pytest.approx(float(scale))
        # real = scale * (unsigned integer + offset)
        assert offset == -(int(zero) + (128 if zero.dtype == np.int8 else 0))
    made, _ = quantized(program, source, source.with_name("again.onnx"), "--ranges", path, *settings)
    again = {one.name: numpy_helper.to_array(one) for one in onnx.ModelProto.FromString(made).graph.initializer}
    assert set(again) == set(constants)
    for name, values in constants.items():
        np.testing.assert_allclose(again[name].astype(np.float64), values.astype(np.float64), rtol=1e-6, atol=1e-7)
