"""With equal ranges, our quantized model equals that of `onnxruntime.quantization.quantize_static`.

Not near: the same nodes, the same constants, the same bytes. The models here keep clear of what we do otherwise on
purpose, which the tests of `crates/quantize/` hold: a Gemm whose beta is not 1 (theirs adds the
bias whole), a Softmax that stays float (theirs has the range that was seen), a Clip that keeps zero out (theirs is folded away), constants shared between a quantized node and a float
one (theirs reads the rounded ones), infinite constants (theirs get an infinite scale). But for one thing: an output of the model that only a Relu or Clip reads has the range of what
that lets pass there, and its own here.
`scripts/oracle.sh` sets OCTET to the built command line.
"""

import json
import logging
import os
import subprocess
from unittest import mock

import reference_runtimes
import numpy as np
import onnx
import pytest
import small_models
from corpus_manifest import FLOAT, HUGE
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.calibrate import TensorData, TensorsData

TYPES = {"u8": QuantType.QUInt8, "i8": QuantType.QInt8, "u16": QuantType.QUInt16, "i16": QuantType.QInt16,
         "u4": QuantType.QUInt4, "i4": QuantType.QInt4}  # fmt: skip
# Common settings: (activations, symmetric activations, per channel, reduce range)
SETTINGS = [
    ("u8", False, True, False),
    ("i8", False, True, False),
    ("i8", True, True, False),
    ("u8", True, False, False),
    ("u8", False, False, True),
    ("u8", False, True, True),
]


def find_ranges(model, seed=0, samples=None):
    """The range of every float value, from running the model on these samples or on noise."""
    inferred = onnx.shape_inference.infer_shapes(model)
    known = {v.name: v for v in [*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input]}
    is_float = {n for n, v in known.items() if v.type.tensor_type.elem_type == TensorProto.FLOAT}
    made = [o for node in model.graph.node for o in node.output if o in is_float]
    probe = onnx.ModelProto.FromString(model.SerializeToString())
    present = {o.name for o in probe.graph.output}
    probe.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in made if n not in present)
    session = reference_runtimes.session(probe, optimize=False)
    random, ranges = np.random.default_rng(seed), {}

    def noise():
        shapes = {value.name: [d if isinstance(d, int) else 1 for d in value.shape] for value in session.get_inputs()}
        return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}

    for feeds in samples or [noise(), noise()]:
        seen = {**{n: a for n, a in feeds.items() if a.dtype == np.float32}, **dict(zip(made, session.run(made, feeds)))}
        for name, array in seen.items():
            low, high = ranges.get(name, (np.inf, -np.inf))
            array = array[np.isfinite(array)]
            if array.size:
                ranges[name] = (min(low, float(array.min())), max(high, float(array.max())))
            else:
                ranges.setdefault(name, (0.0, 0.0))
    return ranges


def theirs(model, ranges, settings, path, form=QuantFormat.QDQ, weights="i8", **extra):
    """ONNX Runtime's quantized model; `extra` are further options."""
    activations, symmetric, per_channel, reduce_range = settings
    tensors = {
        name: TensorData(lowest=np.float32(low), highest=np.float32(high)) for name, (low, high) in ranges.items()
    }
    calibrator = mock.Mock()
    calibrator.compute_data.return_value = TensorsData(CalibrationMethod.MinMax, tensors)
    logging.getLogger().setLevel(logging.ERROR)
    with mock.patch("onnxruntime.quantization.quantize.create_calibrator", return_value=calibrator):
        quantize_static(
            onnx.ModelProto.FromString(model.SerializeToString()), path, mock.Mock(), quant_format=form,
            activation_type=TYPES[activations], weight_type=TYPES[weights], per_channel=per_channel,
            reduce_range=reduce_range, extra_options={"ActivationSymmetric": symmetric, **extra},
        )  # fmt: skip
    return onnx.load(path)


def run_octet(model, ranges, settings, folder, *options):
    """Octet's run on the model, which leaves `octet.onnx` in the folder."""
    activations, symmetric, per_channel, reduce_range = settings
    source, target = folder / "float.onnx", folder / "octet.onnx"
    onnx.save(model, source)
    (folder / "ranges.json").write_text(json.dumps(ranges))
    command = [
        os.environ["OCTET"], "quantize", source, "--ranges", folder / "ranges.json", "--out", target,
        "--activations", activations, "--operators", "onnxruntime",
    ]  # fmt: skip
    chosen = {
        "--symmetric-activations": symmetric, "--per-tensor": not per_channel, "--reduce-range": reduce_range,
    }  # fmt: skip
    command += [*options, *(option for option, wanted in chosen.items() if wanted)]
    return subprocess.run(command, capture_output=True, text=True)


def ours(model, ranges, settings, folder, *options):
    """Octet's quantized model."""
    done = run_octet(model, ranges, settings, folder, *options)
    assert done.returncode == 0, done.stderr
    return onnx.load(folder / "octet.onnx")


def parts(model):
    """A graph as comparable parts: constants by name, nodes by what they make."""
    constants = {}
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        constants[tensor.name] = (tensor.data_type, tuple(tensor.dims), values.tobytes())
    nodes = {}
    for node in model.graph.node:
        # beta = 1 and axis = 1 say what is so without them.
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Gemm":
            attributes.setdefault("beta", 1.0)
        nodes[tuple(node.output)] = (node.op_type, node.name, tuple(node.input), str(sorted(attributes.items())))
    return constants, nodes


def show(tensor):
    kind, shape, data = tensor
    values = np.frombuffer(data, helper.tensor_dtype_to_np_dtype(kind))
    return f"{TensorProto.DataType.Name(kind)}{list(shape)} {values[:6]}"


def differences(our_model, their_model):
    """All differences, in words."""
    found = []
    for title, mine, other, word in zip(("constant", "node"), parts(our_model), parts(their_model), (show, str)):
        for name in sorted({*mine, *other}, key=str):
            if name not in other:
                found.append(f"{title} {name} is only ours: {word(mine[name])}")
            elif name not in mine:
                found.append(f"{title} {name} is only theirs: {word(other[name])}")
            elif mine[name] != other[name]:
                found.append(f"{title} {name}: ours {word(mine[name])}, theirs {word(other[name])}")
    return found


def clamped_outputs(model):
    """The outputs of the model that only a Relu or Clip reads."""
    readers = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node.op_type)
    return [value.name for value in model.graph.output if readers.get(value.name) in (["Relu"], ["Clip"])]


def check_same(model, settings, folder, seed=0, samples=None, options=(), **extra):
    """Checks that both quantize the model equally: ours with more `options` of the command line,
    theirs with `extra`.
    """
    # Octet folds what only scales and shifts before it quantizes: ONNX Runtime is given the model after that.
    prepared = folder / "prepared.onnx"
    ours(model, find_ranges(model, seed, samples), settings, folder, *options, "--save-prepared", prepared)
    model = onnx.load(prepared)
    ranges = find_ranges(model, seed, samples)
    mine = ours(model, ranges, settings, folder, *options)
    onnx.checker.check_model(mine, full_check=True)
    found = differences(mine, theirs(model, ranges, settings, folder / "theirs.onnx", **extra))
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in mine.graph.initializer}
    for name in (name for name in clamped_outputs(model) if f"{name}_scale" in constants):
        scale, zero_point = constants[f"{name}_scale"], constants[f"{name}_zero_point"]
        lowest = scale * (np.iinfo(zero_point.dtype).min - float(zero_point))
        assert lowest < ranges[name][0] + scale < 0, f"{name} ends at {lowest}"
        found = [line for line in found if not line.startswith((f"constant {name}_scale:", f"constant {name}_zero_point:"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s)))
@pytest.mark.parametrize("name", small_models.MODELS)
def test_a_small_model_comes_out_the_same(name, settings, tmp_path):
    check_same(small_models.build(name), settings, tmp_path)


@pytest.mark.parametrize("seed", range(24))
def test_a_random_network_comes_out_the_same(seed, tmp_path):
    check_same(small_models.random_network(seed), SETTINGS[seed % len(SETTINGS)], tmp_path, seed)


REAL = [name for name in FLOAT if name not in HUGE]
# Two in both types, the others in turns.
CASES = [(name, settings) for index, name in enumerate(REAL) for turn, settings in enumerate(SETTINGS[:2])
         if turn == index % 2 or name in ("efficientnet_lite0", "squeezenet")]


@pytest.mark.parametrize("name, settings", CASES, ids=[f"{name}-{settings[0]}" for name, settings in CASES])
def test_a_real_model_comes_out_the_same(name, settings, corpus, tmp_path):
    check_same(onnx.load(corpus.model(name)), settings, tmp_path, samples=reference_runtimes.load_samples(corpus.samples(name))[:2])
