"""Float operators against ONNX Runtime: variants that tract computes differently or lacks, and
variants that both refuse.
"""

import reference_runtimes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from qdq_models import Pairs
from run_model import attempt, run

PICTURE = [1, 4, 6, 6]


def one(operator, shape, *constants, opset=20, **attributes):
    """A model of one node: its inputs, then these constants; `None` is an omitted input."""
    pairs = Pairs(opset=opset)
    inputs = ["" if value is None else pairs.constant(np.asarray(value)) for value in constants]
    pairs.node(operator, [pairs.input("x", shape), *inputs], "y", **attributes)
    pairs.output("y")
    return pairs.model()


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def transposed(weight, shape=(1, 4, 8, 7), bias=False, **attributes):
    group = attributes.get("group", 1)
    constants = [floats(*weight)] + ([floats(weight[1] * group, seed=1)] if bias else [])
    return one("ConvTranspose", list(shape), *constants, **attributes)


def slices(starts, ends, axes, steps, shape=(7, 5)):
    return one("Slice", list(shape), ints(*starts), ints(*ends), ints(*axes), ints(*steps))


def padded(mode, pads, axes=None, shape=(3, 4, 5), value=2.5):
    more = [None if value is None else np.float32(value)] + ([ints(*axes)] if axes else [])
    return one("Pad", list(shape), ints(*pads), *more, mode=mode)


REGIONS = np.float32([[0, 0, 5, 5], [1.3, 0.2, 4.1, 3.9], [-3, 2, 9, 2.5], [3, 3, 3, 3], [7, 7, 9, 9]])


def aligned(opset=20, **attributes):
    return one("RoiAlign", [2, 4, 6, 6], REGIONS, ints(0, 1, 1, 0, 1), opset=opset, output_height=3, output_width=2, **attributes)


def pooled(scale):
    regions = np.concatenate([np.float32([[0], [1], [1], [0], [0]]), REGIONS], 1)
    return one("MaxRoiPool", [2, 4, 6, 6], regions, pooled_shape=[2, 3], spatial_scale=scale)


def moved(weight, moves, mask=None, bias=False, shape=(2, 4, 6, 6), **attributes):
    bias = floats(weight[0], seed=1) if bias else None
    mask = None if mask is None else floats(*mask, seed=2)
    return one("DeformConv", list(shape), floats(*weight), floats(*moves, seed=3), bias, mask, **attributes)


def backwards(operator, gates, layout=0, **attributes):
    """A recurrent operator that runs from the end to the front."""
    weights = floats(1, 3 * gates, 4), floats(1, 3 * gates, 3, seed=1)
    return one(operator, [5, 2, 4], *weights, direction="reverse", hidden_size=3, layout=layout, **attributes)


def heads(query, key, *more, opset=23, **attributes):
    return one("Attention", query, floats(*key), floats(*key, seed=1), *more, opset=opset, **attributes)


SEEN = np.random.default_rng(5).random((4, 6)) < 0.7
SEEN[:, 0] = True


def in_parts(split, axis, **attributes):
    """A split tensor: the last part comes first, all are concatenated again, one of them twice."""
    pairs = Pairs(opset=20)
    parts = pairs.node("SplitToSequence", [pairs.input("x", [4, 6]), *([pairs.constant(split)] if split is not None else [])], axis=axis, **attributes)
    last = pairs.node("SequenceAt", [parts, pairs.constant(np.int64(-1))])
    turned = pairs.node("SequenceInsert", [parts, last, pairs.constant(np.int64(0))])
    pairs.node("ConcatFromSequence", [turned], "y", axis=axis, new_axis=int(attributes.get("keepdims") == 0))
    pairs.output("y")
    return pairs.model()


SAME = {
    f"ConvTranspose {kernel} by {stride} {pad} {extra} {told}": transposed(
        [4, 3, kernel, kernel],
        strides=[stride, stride],
        **({"auto_pad": pad} if pad else {}),
        **({"output_padding": [extra, 0]} if extra else {}),
        **({"output_shape": told} if told else {}),
    )
    for kernel in (1, 2, 3, 4)
    for stride in (1, 2, 3)
    for pad in ("", "SAME_UPPER", "SAME_LOWER", "VALID")
    for extra in (0, 1)
    for told in (None, [8 * stride, 7 * stride])
    if extra < stride
}

FORMS = SAME | {
    "ConvTranspose groups, told": transposed([4, 2, 3, 3], bias=True, strides=[2, 2], output_shape=[16, 14], group=2),
    "ConvTranspose 1-D": transposed([4, 2, 4], [1, 4, 9], strides=[3], output_shape=[26], auto_pad="SAME_LOWER"),
    "ConvTranspose 3-D": transposed([4, 2, 2, 3, 3], [1, 4, 3, 4, 5], strides=[2, 1, 2], auto_pad="SAME_UPPER"),
    "ConvTranspose dilated": transposed([4, 2, 3, 3], strides=[2, 2], dilations=[2, 3], auto_pad="SAME_UPPER"),
    "Pad reflect with a constant": padded("reflect", [0, 1, 2, 0, 3, 1]),
    "Pad edge with a constant": padded("edge", [2, 1, 2, 0, 3, 1]),
    "Pad wrap": padded("wrap", [0, 1, 2, 1, 3, 5], value=None),
    "Pad of some axes": padded("constant", [1, 2, 3, 0], axes=[-1, 0]),
    "Pad that cuts": padded("constant", [0, -1, 2, 1, -2, -1]),
    "Pad that cuts and repeats": padded("edge", [0, -1, 2, 1, 2, -1]),
    "Pad that cuts and reflects": padded("reflect", [0, -1, 2, 1, 2, -1]),
    "Celu": one("Celu", [3, 40], alpha=0.7),
    "Celu of a large alpha": one("Celu", [3, 40], alpha=3.0),
    "Slice from before the front": slices([-9], [-99], [0], [-3]),
    "Slice backwards": slices([5, -1], [0, -99], [0, 1], [-2, -1]),
    "Slice of nothing": slices([6], [2], [0], [1]),
    "Slice of nothing backwards": slices([1], [3], [1], [-1]),
    "Slice beyond the end": slices([2, 9], [99, 99], [0, 1], [2, 1]),
    "Slice of an empty axis": slices([-1], [-99], [0], [-1], shape=(0, 3)),
    "RoiAlign": aligned(),
    "RoiAlign before opset 16": aligned(opset=13, spatial_scale=0.5),
    "RoiAlign of the largest": aligned(mode="max", sampling_ratio=2),
    "RoiAlign from the corners": aligned(coordinate_transformation_mode="output_half_pixel", sampling_ratio=3),
    "MaxRoiPool": pooled(1.0),
    "MaxRoiPool of a smaller picture": pooled(0.4),
    "ReverseSequence": one("ReverseSequence", [5, 3, 2], ints(5, 1, 3)),
    "ReverseSequence of rows": one("ReverseSequence", [3, 5], ints(5, 0, 3), batch_axis=0, time_axis=1),
    "LpPool": one("LpPool", PICTURE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
    "LpPool of ones": one("LpPool", PICTURE, kernel_shape=[2, 2], p=1, auto_pad="SAME_UPPER"),
    "LpPool of cubes": one("LpPool", [1, 3, 9], kernel_shape=[3], p=3, dilations=[2]),
    "DeformConv": moved([3, 4, 3, 3], [2, 18, 4, 4]),
    "DeformConv in groups": moved([6, 2, 2, 2], [2, 16, 4, 4], [2, 8, 4, 4], True, group=2, offset_group=2, strides=[2, 2], pads=[1, 1, 1, 1]),
    "Det": one("Det", [3, 5, 5]),
    "Col2Im": one("Col2Im", [2, 12, 6], ints(5, 6), ints(2, 3), dilations=[2, 1], pads=[0, 1, 0, 1], strides=[2, 2]),
    "AffineGrid": one("AffineGrid", [2, 2, 3], ints(2, 3, 4, 5)),
    "AffineGrid of planes": one("AffineGrid", [2, 3, 4], ints(2, 3, 2, 4, 1), align_corners=1),
    "CenterCropPad": one("CenterCropPad", [4, 7, 5], ints(7, 4, 5)),
    "CenterCropPad of some axes": one("CenterCropPad", [4, 7, 5], ints(2, 8), axes=[-1, 0]),
    "Swish": one("Swish", [3, 40], opset=24, alpha=0.6),
    "LSTM backwards": backwards("LSTM", 4),
    "GRU backwards": backwards("GRU", 3, linear_before_reset=1),
    "RNN backwards": backwards("RNN", 1),
    "Attention": heads([2, 3, 4, 8], [2, 3, 6, 8]),
    "Attention of shared heads": heads([2, 6, 4, 8], [2, 2, 6, 8], scale=0.3, softcap=2.0),
    "Attention in one": heads([2, 4, 24], [2, 6, 8], np.where(SEEN, np.float32(0), np.float32(-3)), q_num_heads=3, kv_num_heads=1),
    "Attention of what is seen": heads([2, 3, 4, 8], [2, 3, 6, 8], SEEN),
    "Attention of nothing": heads([2, 3, 4, 8], [2, 3, 6, 8], SEEN & (np.arange(4) != 2)[:, None]),
    "Attention of what came before": heads([2, 3, 6, 8], [2, 3, 6, 8], is_causal=1),
    "a sequence of parts": in_parts(ints(1, 3, 2), 1),
    "a sequence of even parts": in_parts(np.int64(4), 1),
    "a sequence of rows": in_parts(None, 0, keepdims=0),
    "OneHot of places outside": one("OneHot", [40], np.float32(2), np.float32([5, 7])),
    "OneHot in front": one("OneHot", [3, 7], np.float32(2), np.float32([0, 1]), axis=0),
    "MaxPool that pads by itself": one(
        "MaxPool", PICTURE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 1, 1], auto_pad="SAME_LOWER"
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_an_operator_in_floats_gives_what_onnx_runtime_gives(name, tmp_path):
    model = FORMS[name]
    path = tmp_path / "one.onnx"
    onnx.save(model, path)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    sample = {"x": floats(*shape, seed=2)}
    expected = reference_runtimes.run(path, [sample], optimize=False)[0]["y"]
    for options in ((), ("--float",), ("--threads", "2")):
        found = run(path, sample, tmp_path, *options)[0]["y"]
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def conv(**attributes):
    return lambda p, x: p.node("Conv", [x, p.weight([4, 4, 3, 3])], **attributes)


def back(**attributes):
    return lambda p, x: p.node("ConvTranspose", [x, p.weight([4, 4, 3, 3])], **attributes)


def node(operator, *constants, **attributes):
    def build(p, x):
        inputs = ["" if value is None else p.constant(np.asarray(value)) for value in constants]
        return p.node(operator, [x, *inputs], **attributes)

    return build


def scales(value):
    return node("Resize", None, np.float32([1, 1, value, 1]))


def pool(operator, **attributes):
    return node(operator, **attributes)


# A DepthToSpace by 2 ** 32 is none of them: ONNX Runtime divides by its square, which is zero, and ends the process.
REFUSED = {
    "Conv with pads without end": conv(pads=[1 << 40] * 4),
    "Conv with pads of fewer sides": conv(pads=[1, 1, 1]),
    "Conv with pads below zero": conv(pads=[-1, 0, 0, 0]),
    "Conv with one stride": conv(strides=[1]),
    "Conv of a stride of zero": conv(strides=[0, 1]),
    "Conv of another kernel": conv(kernel_shape=[5, 5]),
    "Conv of too many groups": conv(group=3),
    "Conv of no group": conv(group=0),
    "Conv that pads by a name": conv(auto_pad="FOO"),
    "Conv that pads in two ways": conv(auto_pad="SAME_UPPER", pads=[1, 1, 1, 1]),
    "Conv that pads in two ways by nothing": conv(auto_pad="VALID", pads=[0, 0, 0, 0]),
    "ConvTranspose that pads in two ways": back(auto_pad="SAME_LOWER", pads=[1, 1, 1, 1]),
    "Conv larger than its picture": conv(dilations=[9, 9]),
    "ConvTranspose that cuts all off": back(pads=[100] * 4),
    "ConvTranspose with rows without end": back(output_padding=[1 << 30, 1]),
    "ConvTranspose told a size without end": back(output_shape=[1 << 20, 1 << 20]),
    "ConvTranspose told no size": back(output_shape=[0, 0]),
    "ConvTranspose told one size": back(output_shape=[8]),
    "ConvTranspose of no group": back(group=0),
    "ConvTranspose of a stride of zero": back(strides=[0, 1]),
    "DeformConv of no group": node("DeformConv", floats(4, 4, 1, 1), floats(1, 2, 6, 6), group=0),
    "DeformConv of a stride of zero": node("DeformConv", floats(4, 4, 1, 1), floats(1, 2, 6, 6), strides=[0, 1]),
    "ReverseSequence of an axis beyond": node("ReverseSequence", ints(1, 1, 1, 1), time_axis=2),
    "ReverseSequence of one axis": node("ReverseSequence", ints(1, 1, 1, 1), time_axis=1),
    "RoiAlign without end": node("RoiAlign", np.float32([[0, 0, 5, 5]]), ints(0), output_height=1 << 40),
    "LpPool of a kernel of zero": pool("LpPool", kernel_shape=[0, 2]),
    "MaxPool with pads without end": pool("MaxPool", kernel_shape=[2, 2], pads=[1 << 30] * 4),
    "MaxPool with pads of its kernel": pool("MaxPool", kernel_shape=[2, 2], pads=[2, 2, 2, 2]),
    "MaxPool of a kernel of zero": pool("MaxPool", kernel_shape=[0, 2]),
    "MaxPool far larger than its picture": pool("MaxPool", kernel_shape=[9, 9]),
    "AveragePool with pads of its kernel": pool("AveragePool", kernel_shape=[2, 2], pads=[2, 0, 0, 0]),
    "Pad without end": node("Pad", ints(0, 0, 1 << 62, 0, 0, 0, 1 << 62, 0)),
    "Pad that cuts all off": node("Pad", ints(0, 0, -4, 0, 0, 0, -4, 0)),
    "Pad of fewer sides": node("Pad", ints(0, 0, 1)),
    "Pad that reflects too much": node("Pad", ints(0, 0, 9, 0, 0, 0, 0, 0), mode="reflect"),
    "Pad of another mode": node("Pad", ints(*[0] * 8), mode="foo"),
    "Slice by steps of zero": node("Slice", ints(0), ints(2), ints(1), ints(0)),
    "Slice of an axis beyond": node("Slice", ints(0), ints(2), ints(9)),
    "Slice of an axis twice": node("Slice", ints(0, 1), ints(2, 3), ints(2, 2)),
    "Transpose of an axis twice": node("Transpose", perm=[0, 0, 1, 2]),
    "Transpose of an axis beyond": node("Transpose", perm=[0, 1, 2, 9]),
    "Squeeze of an axis beyond": node("Squeeze", ints(9)),
    "Unsqueeze of an axis beyond": node("Unsqueeze", ints(19)),
    "Unsqueeze of an axis twice": node("Unsqueeze", ints(0, 0)),
    "Flatten behind all": node("Flatten", axis=9),
    "Softmax of an axis beyond": node("Softmax", axis=9),
    "Gather of an axis beyond": node("Gather", ints(0), axis=7),
    "ReduceMean of an axis beyond": node("ReduceMean", ints(9)),
    "DepthToSpace of nothing": node("DepthToSpace", blocksize=0),
    "DepthToSpace that doesn't fit": node("DepthToSpace", blocksize=3),
    "SpaceToDepth of nothing": node("SpaceToDepth", blocksize=0),
    "SpaceToDepth that doesn't fit": node("SpaceToDepth", blocksize=4),
    "MatMul with a number": node("MatMul", np.float32(2)),
    "Clip to no number": node("Clip", np.zeros(0, np.float32)),
    "CumSum along no axis": node("CumSum", np.zeros(0, np.int64)),
    "Trilu from no diagonal": node("Trilu", np.zeros(0, np.int64)),
    "Gather of a place outside": node("Gather", ints(0, 4), axis=1),
    "GatherND of a place outside": node("GatherND", ints(0, 4)),
    "GatherND of more axes than there are": node("GatherND", ints(0, 0, 0, 0, 0)),
    "GatherElements of a place outside": node("GatherElements", np.full(PICTURE, 6, np.int64), axis=2),
    "GatherElements of another shape": node("GatherElements", np.zeros([1, 5, 6, 6], np.int64), axis=2),
    "ReduceMean told as once": node("ReduceMean", axes=[1]),
    "Squeeze told as once": node("Squeeze", axes=[0]),
    "Expand to less than nothing": node("Expand", ints(1, -4, 6, 6)),
    "Tile less than never": node("Tile", ints(1, 1, -1, 1)),
    "Split in more parts": node("Split", ints(1, 3), axis=1),
    "Resize by zero": scales(0),
    "Resize by what is no number": scales(np.nan),
    "Resize by what has no end": scales(np.inf),
    "Resize beyond all memory": scales(1e9),
    "Resize to less than nothing": node("Resize", None, None, ints(1, 4, -3, 6)),
    "Resize to fewer sizes": node("Resize", None, None, ints(4, 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_in_words_by_the_node(name, tmp_path):
    pairs = Pairs(opset=20)
    value = REFUSED[name](pairs, pairs.pair(pairs.input("x", PICTURE)))
    pairs.nodes[-1].name = "the node"
    pairs.pair(value, 0.05, output="y")
    pairs.output("y")
    path = tmp_path / "refused.onnx"
    onnx.save(pairs.model(), path)
    sample = {"x": np.ones(PICTURE, np.float32)}
    with pytest.raises(Exception):  # noqa: B017, PT011 - it has many kinds of errors
        reference_runtimes.run(path, [sample], optimize=False)
    for options in ((), ("--float",)):
        done, _ = attempt(path, sample, tmp_path, *options)
        assert done.returncode == 1, done.stdout
        assert 'node: "the node"' in done.stderr, done.stderr
        assert name.split()[0] in done.stderr, done.stderr


def test_a_nearest_resize_takes_the_pixels_that_onnx_runtime_takes(tmp_path):
    """Many odd factors, where the last bits of a position decide. Each pixel holds its position."""
    random = np.random.default_rng(0)
    nodes, inputs, outputs, constants, sample = [], [], [], [], {}
    for index in range(1200):
        size = int(random.integers(2, 60))
        # Tenths, sevenths and arbitrary fractions.
        scale = [random.integers(7, 30) / 10, random.integers(4, 20) / 7, random.uniform(0.7, 3)][index % 3]
        attributes = {
            "coordinate_transformation_mode": str(random.choice(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])),
            "nearest_mode": str(random.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])),
        }
        given = ["", numpy_helper.from_array(np.array([1, 1, 1, int(size * scale)]), f"s{index}")]
        if index % 2:
            given = [numpy_helper.from_array(np.array([1, 1, 1, scale], np.float32), f"s{index}")]
        constants += [tensor for tensor in given if tensor]
        names = [f"x{size}", "", *(tensor and tensor.name for tensor in given)]
        nodes.append(helper.make_node("Resize", names, [f"y{index}"], mode="nearest", **attributes))
        outputs.append(helper.make_tensor_value_info(f"y{index}", TensorProto.FLOAT, None))
        if f"x{size}" not in sample:
            sample[f"x{size}"] = np.arange(2 * size, dtype=np.float32).reshape(1, 1, 2, size)
            inputs.append(helper.make_tensor_value_info(f"x{size}", TensorProto.FLOAT, [1, 1, 2, size]))
    graph = helper.make_graph(nodes, "resizes", inputs, outputs, constants)
    path = tmp_path / "resizes.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    (expected,) = reference_runtimes.run(path, [sample], optimize=False)
    found, _ = run(path, sample, tmp_path)
    other = [name for name, values in expected.items() if not np.array_equal(found[name], values)]
    assert not other, other
