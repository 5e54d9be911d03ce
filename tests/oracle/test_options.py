"""Types of integers, and the options of ONNX Runtime's quantizer, each with the settings that docs/settings.md names for it: given the
same ranges, the same model comes out, to the byte.
"""

import reference_runtimes
import operator_models
import pytest
import small_models
import yaml
from test_same_as_onnxruntime import SETTINGS, check_same, find_ranges, ours

# Its options → our settings.
OPTIONS = {
    "MinimumRealRange": (
        {"MinimumRealRange": 20.0},
        {"activations": {"minimum_range": 20.0}, "weights": {"minimum_range": 20.0}},
    ),
    "ActivationRestrictedAsymmetric": ({"ActivationRestrictedAsymmetric": True}, {"activations": {"snap_zero": True}}),
    "restricted, with a minimum": (
        {"ActivationRestrictedAsymmetric": True, "MinimumRealRange": 20.0},
        {"activations": {"snap_zero": True, "minimum_range": 20.0}, "weights": {"minimum_range": 20.0}},
    ),
    "QuantizeBias": ({"QuantizeBias": False}, {"quantize_bias": False}),
    "QDQDisableWeightAdjustForInt32Bias": ({"QDQDisableWeightAdjustForInt32Bias": True}, {"fit_bias": False}),
    "OpTypesToExcludeOutputQuantization": (
        {"OpTypesToExcludeOutputQuantization": ["Conv", "Gemm", "Softmax", "MaxPool", "Reshape"]},
        {"by_operator": {name: {"float_output": True} for name in ("Conv", "Gemm", "Softmax", "MaxPool", "Reshape")}},
    ),
    "MatMulConstBOnly": ({"MatMulConstBOnly": True}, {"by_operator": {"MatMul": {"constant_only": True}}}),
    "ForceQuantizeNoInputCheck": ({"ForceQuantizeNoInputCheck": True}, {"by_name": {"": {"always": True}}}),
}
# Intended differences: a float bias keeps one name for all readers, and no scale grows for it; with
# pairs ONNX Runtime ignores MatMulConstBOnly.
OTHERWISE = [("shared_constants", "QuantizeBias"), ("bias_beyond_int32", "QuantizeBias"), ("matmul_ways", "MatMulConstBOnly")]
CASES = [(name, option) for name in small_models.MODELS for option in OPTIONS if (name, option) not in OTHERWISE]
# (activations, weights, per channel)
TYPES = [("u16", "i8", True), ("i16", "i8", True), ("u16", "i16", True), ("u8", "i16", True), ("u8", "u8", False), ("u8", "i4", True),
         ("u8", "i4", False), ("u8", "u4", False), ("i8", "u16", False), ("u4", "i8", True), ("i4", "i8", False)]  # fmt: skip


@pytest.mark.parametrize("name, option", CASES)
def test_an_option_of_onnx_runtimes_makes_the_same_model(name, option, tmp_path):
    extra, document = OPTIONS[option]
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump(document))
    check_same(small_models.build(name), SETTINGS[0], tmp_path, options=("--config", config), **extra)


def test_products_of_two_values_stay_float_where_only_constants_are_wanted(tmp_path):
    model = small_models.build("matmul_ways")
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(OPTIONS["MatMulConstBOnly"][1]))
    made = ours(model, find_ranges(model), SETTINGS[0], tmp_path, "--config", tmp_path / "settings.yaml")
    constants = {tensor.name for tensor in model.graph.initializer}
    for before in (node for node in model.graph.node if node.op_type == "MatMul"):
        [after] = [node for node in made.graph.node if node.name == before.name]
        # A value quantized for one reader is quantized for all, except constants and model inputs.
        own = [place for place, name in enumerate(before.input) if name in constants or name in ("x", "z")]
        is_float = all(after.input[place] == before.input[place] for place in own)
        assert is_float == (before.input[1] not in constants), before.name


# Each operator in some of the types, each type with some of the operators.
IN_TURNS = [(name, types) for index, name in enumerate(name for name in operator_models.MODELS if not name.endswith(":table"))
            for turn, types in enumerate(TYPES) if (index + turn) % 4 == 0]


@pytest.mark.parametrize("name, types", IN_TURNS, ids=["-".join(map(str, (name, *types))) for name, types in IN_TURNS])
def test_an_operator_in_any_type_comes_out_the_same(name, types, tmp_path):
    activations, weights, per_channel = types
    settings = (activations, False, per_channel, False)
    check_same(operator_models.build(name), settings, tmp_path, options=("--weights", weights), weights=weights)


@pytest.mark.parametrize("types", [("u8", "i8", True), *TYPES[:2], *TYPES[5:8]], ids=lambda types: "-".join(map(str, types)))
def test_onnxruntime_web_loads_every_operator(types, tmp_path):
    activations, weights, per_channel = types
    models = {name: operator_models.build(name) for name in operator_models.MODELS if not name.endswith(":table")}
    paths = []
    for index, (name, model) in enumerate(models.items()):
        folder = tmp_path / str(index)
        folder.mkdir()
        ours(model, find_ranges(model), (activations, False, per_channel, False), folder, "--weights", weights)
        paths.append(folder / "octet.onnx")
    told = reference_runtimes.load_web(paths)
    assert told == [[value.name for value in model.graph.output] for model in models.values()]
