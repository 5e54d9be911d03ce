"""GRU, LSTM and RNN in the variants that tract lacks, against ONNX Runtime: lengths of sequences, clips, other
activations, both directions with initial states, peepholes.
"""

import numpy as np
import onnx
import pytest
import reference_runtimes
from onnx import TensorProto, helper, numpy_helper
from run_model import attempt, run

STEPS, BATCH, INPUTS, HIDDEN = 7, 3, 5, 4
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
SIDES = {"forward": 1, "reverse": 1, "bidirectional": 2}
LENGTHS = [7, 1, 4]
ACTIVATIONS = {
    "GRU": ["HardSigmoid", "Softsign"],
    "LSTM": ["Sigmoid", "ScaledTanh", "LeakyRelu"],
    "RNN": ["Affine"],
}


def model(operator, direction, given=("lengths", "states"), **attributes):
    """A recurrence whose bias is given, and of `given` the other inputs. All of its outputs are outputs."""
    random = np.random.default_rng(4)
    sides, wide = SIDES[direction], GATES[operator] * HIDDEN
    constants = {
        "w": (sides, wide, INPUTS), "r": (sides, wide, HIDDEN), "b": (sides, 2 * wide),
        "h": (sides, BATCH, HIDDEN), "c": (sides, BATCH, HIDDEN), "p": (sides, 3 * HIDDEN),
    }  # fmt: skip
    tensors = [numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) * 0.7, name) for name, shape in constants.items()]
    inputs = ["x", "w", "r", "b", "lengths" if "lengths" in given else ""]
    if "states" in given:
        inputs += ["h", "c"] if operator == "LSTM" else ["h"]
    if "peepholes" in given:
        inputs += [""] * (7 - len(inputs)) + ["p"]
    outputs = ["y", "y_h", "y_c"][: 3 if operator == "LSTM" else 2]
    node = helper.make_node(operator, inputs, outputs, name="recurrence", direction=direction, hidden_size=HIDDEN, **attributes)
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCH, INPUTS])]
    if "lengths" in given:
        ports.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [BATCH]))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    used = [tensor for tensor in tensors if tensor.name in inputs]
    graph = helper.make_graph([node], "recurrences", ports, results, used)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def sample(lengths=None):
    values = {"x": np.random.default_rng(7).standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)}
    return values if lengths is None else values | {"lengths": np.array(lengths, np.int32)}


def answers(source, given, folder):
    """Outputs of ONNX Runtime and of Octet."""
    path = folder / "model.onnx"
    onnx.save(source, path)
    [expected] = reference_runtimes.run(path, [given])
    return expected, run(path, given, folder)[0]


def check(source, given, folder):
    expected, made = answers(source, given, folder)
    same(expected, made)


def same(expected, made):
    for name, value in expected.items():
        assert made[name].shape == value.shape, name
        np.testing.assert_allclose(made[name], value, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("lengths", [LENGTHS, [4, 0, 7]])
@pytest.mark.parametrize("direction", SIDES)
@pytest.mark.parametrize("operator", GATES)
def test_sequences_have_lengths_of_their_own(operator, direction, lengths, tmp_path):
    check(model(operator, direction), sample(lengths), tmp_path)


@pytest.mark.parametrize("operator", GATES)
def test_both_directions_begin_with_states(operator, tmp_path):
    check(model(operator, "bidirectional", ["states"]), sample(), tmp_path)


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_gates_have_other_functions_and_clips(operator, direction, tmp_path):
    names = ACTIVATIONS[operator] * SIDES[direction]
    parameters = {"activation_alpha": [0.3, 0.9] * SIDES[direction], "activation_beta": [0.4] * SIDES[direction]}
    check(model(operator, direction, activations=names, clip=0.8, **parameters), sample(LENGTHS), tmp_path)


@pytest.mark.parametrize("after", [0, 1])
def test_a_gru_resets_before_or_after_the_product(after, tmp_path):
    check(model("GRU", "bidirectional", linear_before_reset=after), sample(LENGTHS), tmp_path)


@pytest.mark.parametrize("attributes", [{}, {"input_forget": 1}, {"clip": 0.5}])
def test_an_lstm_has_peepholes_and_coupled_gates(attributes, tmp_path):
    check(model("LSTM", "bidirectional", ["lengths", "states", "peepholes"], **attributes), sample(LENGTHS), tmp_path)


def sequences_first(source):
    """The model with the layout that ONNX Runtime lacks: sequences come before steps and directions."""
    turned = onnx.ModelProto()
    turned.CopyFrom(source)
    [node] = turned.graph.node
    node.attribute.append(helper.make_attribute("layout", 1))
    for tensor in turned.graph.initializer:
        if tensor.name in ("h", "c"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).swapaxes(0, 1), tensor.name))
    sizes = turned.graph.input[0].type.tensor_type.shape.dim
    sizes[0].dim_value, sizes[1].dim_value = BATCH, STEPS
    return turned


@pytest.mark.parametrize("operator", GATES)
def test_sequences_come_first_in_the_other_layout(operator, tmp_path):
    source = model(operator, "bidirectional")
    expected, _ = answers(source, sample(LENGTHS), tmp_path)
    turned, path = sample(LENGTHS), tmp_path / "turned.onnx"
    turned["x"] = np.ascontiguousarray(turned["x"].swapaxes(0, 1))
    onnx.save(sequences_first(source), path)
    made, _ = run(path, turned, tmp_path)
    made = {name: value.transpose(1, 2, 0, 3) if name == "y" else value.swapaxes(0, 1) for name, value in made.items()}
    same(expected, made)


def test_a_negative_clip_is_refused_in_words(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model("RNN", "forward", clip=-1.0), path)
    done, _ = attempt(path, sample(LENGTHS), tmp_path)
    assert done.returncode == 1 and "its clip -1 is negative" in done.stderr, done.stderr


def test_a_length_beyond_the_steps_is_refused_in_words(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model("GRU", "forward"), path)
    done, _ = attempt(path, sample([7, 9, 1]), tmp_path)
    assert done.returncode == 1 and "lengths [7, 9, 1] do not fit 3 sequences of at most 7 steps" in done.stderr, done.stderr
