"""Layer normalizations, GELUs and gates exported as chains of operators, against the single
operators.

Each network is built twice: from LayerNormalization (and Gelu, if ONNX Runtime has it), and from
chains. Octet quantizes the chains like ONNX Runtime the operators, and is closer to the float model
than ONNX Runtime with the chains.
"""

import subprocess

import reference_runtimes
import numpy as np
import onnx
import pytest
from small_models import Builder

WIDTH = 48


def layer_norm(b, x, name, composed, twice=False, moments=False, dropped=False):
    gamma, beta = b.weight(f"{name}_gamma", [WIDTH], 0.2, 1.0), b.weight(f"{name}_beta", [WIDTH], 0.2)
    if not composed:
        return b.node("LayerNormalization", [x, gamma, beta], f"{name}_out", axis=-1, epsilon=1e-5)
    mean = b.node("ReduceMean", [x], axes=[-1])
    if dropped:
        # As exported from Flax through TensorFlow: reductions drop the axis, which is restored
        # before broadcasting.
        axes, share = b.constant(f"{name}_axes", np.array([-1])), b.constant(f"{name}_share", np.float32(1 / WIDTH))
        back, wide = b.constant(f"{name}_back", np.array([1, 20, 1])), b.constant(f"{name}_wide", np.array([1, 20, WIDTH]))
        spread = lambda value: b.node("Expand", [b.node("Reshape", [value, back]), wide])  # noqa: E731
        mean = b.node("Mul", [b.node("ReduceSum", [x, axes], keepdims=0), share])
        squares = b.node("Mul", [b.node("ReduceSum", [b.node("Mul", [x, x]), axes], keepdims=0), share])
        variance = b.node("Sub", [squares, b.node("Mul", [mean, mean])])
        variance = spread(b.node("Max", [b.constant(f"{name}_nothing", np.float32(0)), variance]))
        more = b.node("Add", [variance, b.constant(f"{name}_epsilon", np.float32(1e-5))])
        factor = b.node("Mul", [b.node("Reciprocal", [b.node("Sqrt", [more])]), gamma])
        return b.node("Add", [b.node("Mul", [b.node("Sub", [x, spread(mean)]), factor]), beta], f"{name}_out")
    if moments:
        # As Flax writes it.
        squares = b.node("ReduceMean", [b.node("Mul", [x, x])], axes=[-1])
        variance = b.node("Sub", [squares, b.node("Mul", [mean, mean])])
        variance = b.node("Max", [b.constant(f"{name}_nothing", np.float32(0)), variance])
        more = b.node("Add", [variance, b.constant(f"{name}_epsilon", np.float32(1e-5))])
        factor = b.node("Mul", [b.node("Reciprocal", [b.node("Sqrt", [more])]), gamma])
        return b.node("Add", [b.node("Mul", [b.node("Sub", [x, mean]), factor]), beta], f"{name}_out")
    apart = b.node("Sub", [x, mean])
    again = b.node("Sub", [x, mean]) if twice else apart
    squared = b.node("Pow", [again, b.constant(f"{name}_two", np.float32(2))])
    variance = b.node("Add", [b.node("ReduceMean", [squared], axes=[-1]), b.constant(f"{name}_epsilon", np.float32(1e-5))])
    normal = b.node("Div", [apart, b.node("Sqrt", [variance])])
    return b.node("Add", [b.node("Mul", [normal, gamma]), beta], f"{name}_out")


def gelu_by_tanh(b, x, name, power):
    if power:
        cube = b.node("Mul", [b.node("Pow", [x, b.constant(f"{name}_three", np.float32(3))]), b.constant(f"{name}_c", np.float32(0.044715))])
    else:
        cube = b.node("Mul", [x, b.node("Mul", [x, b.node("Mul", [b.constant(f"{name}_c", np.float32(0.044715)), x])])])
    inner = b.node("Mul", [b.constant(f"{name}_root", np.float32(np.sqrt(2 / np.pi))), b.node("Add", [x, cube])])
    more = b.node("Add", [b.constant(f"{name}_one", np.float32(1)), b.node("Tanh", [inner])])
    half = b.constant(f"{name}_half", np.float32(0.5))
    if power:
        return b.node("Mul", [b.node("Mul", [half, x]), more], f"{name}_out")
    return b.node("Mul", [x, b.node("Mul", [half, more])], f"{name}_out")


def gelu(b, x, name):
    inner = b.node("Erf", [b.node("Div", [x, b.constant(f"{name}_root", np.float32(np.sqrt(2)))])])
    more = b.node("Add", [inner, b.constant(f"{name}_one", np.float32(1))])
    return b.node("Mul", [b.node("Mul", [x, more]), b.constant(f"{name}_half", np.float32(0.5))], f"{name}_out")


def network(composed, tanh=None, **written):
    """Two transformer blocks without attention; channels of the residual stream differ in size."""
    b = Builder(np.random.default_rng(5))
    x = b.input("x", [1, 20, WIDTH])
    for block in ("one", "two"):
        normal = layer_norm(b, x, f"{block}_norm", composed, **written)
        wide = b.node("MatMul", [normal, b.weight(f"{block}_up", [WIDTH, 96], 0.3)], f"{block}_wide")
        of_wide = (b, wide, f"{block}_gelu")
        active = gelu(*of_wide) if tanh is None else gelu_by_tanh(*of_wide, tanh == "power")
        x = b.node("Add", [x, b.node("MatMul", [active, b.weight(f"{block}_down", [96, WIDTH], 0.3)], f"{block}_back")],
                   f"{block}_sum")
    layer_norm(b, x, "last", composed, **written)
    b.output("last_out")
    return b.model()


def samples(count=8):
    random = np.random.default_rng(1)
    sizes = np.exp(random.standard_normal(WIDTH)).astype(np.float32)
    return [{"x": random.standard_normal([1, 20, WIDTH]).astype(np.float32) * sizes} for _ in range(count)]


def ours(program, source, folder, *options):
    calibration = reference_runtimes.save_samples(folder / "samples", samples())
    out = folder / "ours.onnx"
    done = subprocess.run([program, "quantize", source, "--calib", calibration, "--method", "minmax", "--out", out, *options],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def quantized_values(path):
    """The names of the quantized activations."""
    nodes = onnx.load(path).graph.node
    return {node.input[0].removesuffix("_QuantizeLinear_Input") for node in nodes if node.op_type == "QuantizeLinear"}


WRITTEN = {
    "one difference": {},
    "two differences": {"twice": True},
    "moments": {"moments": True},
    "moments without their axis": {"dropped": True},
    "tanh of a power": {"tanh": "power"},
    "tanh of products": {"tanh": "products", "moments": True},
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_chains_are_quantized_as_the_operators_they_are(program, tmp_path, written):
    of_operators, of_chains, theirs = (tmp_path / f"{name}.onnx" for name in ("operators", "chains", "theirs"))
    onnx.save(network(composed=False), of_operators)
    onnx.save(network(composed=True, **written), of_chains)
    mine = ours(program, of_chains, tmp_path, "--no-guard")
    onnx.checker.check_model(str(mine), full_check=True)
    reference_runtimes.ort_quantize(of_operators, theirs, samples())
    # ONNX Runtime quantizes inside the GELU, which it does not recognize.
    inside = {name for name in quantized_values(theirs) if name.startswith("v")}
    assert quantized_values(mine) == quantized_values(theirs) - inside
    assert inside and "one_norm_out" in quantized_values(mine) and "one_gelu_out" in quantized_values(mine)


def test_chains_lose_less_than_operator_by_operator(program, tmp_path):
    source, theirs = tmp_path / "chains.onnx", tmp_path / "theirs.onnx"
    onnx.save(network(composed=True), source)
    reference_runtimes.ort_quantize(source, theirs, samples())
    reference = [o["last_out"] for o in reference_runtimes.run(source, samples())]
    mine = reference_runtimes.sqnr(reference, [o["last_out"] for o in reference_runtimes.run(ours(program, source, tmp_path, "--no-guard"), samples())])
    other = reference_runtimes.sqnr(reference, [o["last_out"] for o in reference_runtimes.run(theirs, samples())])
    print(f"chains: {mine:.1f} dB, ONNX Runtime's {other:.1f} dB")
    assert mine > other + 0.5


def test_settings_know_a_chain_as_the_operator_it_is(program, tmp_path):
    source, config = tmp_path / "chains.onnx", tmp_path / "settings.yaml"
    onnx.save(network(composed=True), source)
    config.write_text("by_operator: {LayerNormalization: {activations: {type: u16}}, Gelu: {float: true}, Add: {activations: {type: i8}}}")
    made = onnx.load(ours(program, source, tmp_path, "--no-guard", "--config", config))
    kinds = {tensor.name: tensor.data_type for tensor in made.graph.initializer}
    quantizers = {node.input[0]: kinds[node.input[2]] for node in made.graph.node if node.op_type == "QuantizeLinear"}
    # The last node of each is a Mul or an Add, to which the settings don't apply.
    of = {name.removesuffix("_QuantizeLinear_Input"): kind for name, kind in quantizers.items()}
    assert of["one_norm_out"] == of["last_out"] == onnx.TensorProto.UINT16
    assert "one_gelu_out" not in of or of["one_gelu_out"] != onnx.TensorProto.UINT16


def swish(b, x, name):
    return b.node("Mul", [x, b.node("Sigmoid", [x])], f"{name}_out")


def hard_swish(b, x, name):
    return b.node("Mul", [b.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5), x], f"{name}_out")


def hard_swish_by_clip(b, x, name, of_product=True, divided=True):
    number = lambda value: b.constant(f"{name}_{len(b.constants)}", np.float32(value))  # noqa: E731
    sixth = (lambda value, out=None: b.node("Div", [value, number(6)], out)) if divided else (
        lambda value, out=None: b.node("Mul", [number(1 / 6), value], out))
    clipped = b.node("Clip", [b.node("Add", [x, number(3)]), number(0), number(6)])
    if of_product:
        return sixth(b.node("Mul", [x, clipped]), f"{name}_out")
    return b.node("Mul", [sixth(clipped), x], f"{name}_out")


def mish(b, x, name):
    return b.node("Mul", [x, b.node("Tanh", [b.node("Softplus", [x])])], f"{name}_out")


GATES = {
    "swish": swish,
    "hard swish by its gate": hard_swish,
    "hard swish, the product divided": hard_swish_by_clip,
    "hard swish, the clip divided": lambda *of: hard_swish_by_clip(*of, of_product=False),
    "hard swish, the product times a sixth": lambda *of: hard_swish_by_clip(*of, divided=False),
    "hard swish, the clip times a sixth": lambda *of: hard_swish_by_clip(*of, of_product=False, divided=False),
    "mish": mish,
}


def gated(gate):
    """Two products with a gate after each."""
    b = Builder(np.random.default_rng(6))
    x = b.input("x", [1, 20, WIDTH])
    for block in ("one", "two"):
        wide = b.node("MatMul", [x, b.weight(f"{block}_up", [WIDTH, WIDTH], 0.3)], f"{block}_wide")
        x = gate(b, wide, block)
    b.output("two_out")
    return b.model()


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_gates_are_rounded_before_and_behind_but_not_inside(program, tmp_path, gate):
    source, theirs = tmp_path / "gates.onnx", tmp_path / "theirs.onnx"
    onnx.save(gated(gate), source)
    mine = ours(program, source, tmp_path, "--no-guard")
    onnx.checker.check_model(str(mine), full_check=True)
    assert quantized_values(mine) == {"x", "one_wide", "one_out", "two_wide", "two_out"}
    reference_runtimes.ort_quantize(source, theirs, samples())
    reference = [o["two_out"] for o in reference_runtimes.run(source, samples())]
    mine, other = (reference_runtimes.sqnr(reference, [o["two_out"] for o in reference_runtimes.run(path, samples())]) for path in (mine, theirs))
    print(f"gates: {mine:.1f} dB, ONNX Runtime's {other:.1f} dB")
    assert mine >= other - 0.05
    # Similar chains that are no such operator are quantized operator by operator.
    gate_of_another = gated(lambda b, x, name: b.node("Mul", [b.node("Sigmoid", [x]), b.node("Tanh", [x])], f"{name}_out"))
    onnx.save(gate_of_another, source)
    assert len(quantized_values(ours(program, source, tmp_path, "--no-guard"))) > 5
