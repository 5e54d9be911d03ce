"""Every operator that ONNX Runtime quantizes, alone: our model is theirs, whatever the settings.

`operator_models.py` has the models; the check is that of `test_same_as_onnxruntime.py`. All that is quantized and
how is in the graph: the names of its constants and nodes, scales, zero points, integers.
"""

import operator_models
import pytest
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry
from test_same_as_onnxruntime import check_same, find_ranges, run_octet, theirs

# (activations, symmetric activations, per channel, reduce range)
SETTINGS = [
    (activations, symmetric, per_channel, False)
    for activations in ("u8", "i8") for symmetric in (False, True) for per_channel in (True, False)
]  # fmt: skip


def test_every_operator_of_onnx_runtimes_list_has_a_model():
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
    assert done.returncode == 2 and "what it reads is not quantized" in done.stderr, done.stderr


def test_the_embedding_of_onnx_runtimes_own_is_refused_by_name(tmp_path):
    # They quantize the tables of EmbedLayerNormalization; our engine has no such operator to calibrate with.
    done = run_octet(operator_models.embedding(), {}, SETTINGS[0], tmp_path)
    assert done.returncode == 2 and "no operator EmbedLayerNormalization" in done.stderr, done.stderr
