"""YOLOv8n: the detector's backbone, its neck of three scales, and its decoupled heads.

At 640×640 the output has 8400 cells: four numbers of the box (centre, width and height) and 80
scores. With dynamic axes, the centres of the cells follow from the sizes of the three maps.
Batch normalization is folded.
"""

import numpy as np
from onnx import TensorProto, helper

from .network import NEAREST, Network
from .shape_arithmetic import reshape, size, vector

SIDE, STRIDES, CLASSES = 640, (8, 16, 32), 80
BIAS = 0.5  # the standard deviation of the biases
PRIOR = -3.0  # the mean bias of the scores' logits: most cells see nothing
BINS = 16  # a box's side is the mean of a distribution over so many distances
CELLS = sum((SIDE // stride) ** 2 for stride in STRIDES)
# Fan-in times the variance of the weights, of each convolution in order. With these, the results of
# each have a standard deviation of about 1 for pictures of coarse and fine noise, as batch
# normalization would see to it, and the scores' logits one of 2. No rule does that through sixty
# layers: under SiLU, small values grow ever smaller and large ones larger.
# fmt: off
GAINS = (
    3.0, 5.3, 2.8, 6.6, 2.6, 4.9, 2.1, 3.7, 1.8, 3.6, 1.0, 4.2, 1.2, 1.6, 2.1, 1.6,
    2.8, 1.1, 3.2, 1.4, 1.5, 2.1, 1.8, 2.8, 1.9, 2.6, 1.2, 1.4, 1.3, 2.1, 3.1, 2.4,
    2.6, 3.3, 2.0, 3.1, 2.3, 4.0, 2.1, 1.9, 1.8, 2.4, 2.5, 2.5, 3.2, 2.8, 2.5, 1.4,
    3.2, 1.6, 7.6, 1.8, 2.6, 1.6, 2.2, 2.2, 12.0, 3.7, 2.0, 2.3, 2.1, 2.2, 16.0,
)
# fmt: on


class Detector(Network):
    """A network whose convolutions take their gains from a list.

    Biases as large as a trained network's keep small changes of the input small.
    """

    def __init__(self, name, gains):
        super().__init__(name)
        self._gains = iter(gains)

    def conv(self, *arguments, **options):
        return super().conv(*arguments, gain=next(self._gains), bias_std=BIAS, **options)


def yolo8n_640():
    return yolo8n("yolo8n_640", [1, 3, SIDE, SIDE], [1, 4 + CLASSES, CELLS], fixed_cells)


def yolo8n_dynamic():
    """Batch, height and width are dynamic; the metadata is that of the published exporter."""
    shape = ["batch", 3, "height", "width"]
    model = yolo8n("yolo8n_dynamic", shape, ["batch", 4 + CLASSES, "cells"], traced_cells)
    names = {index: f"class {index}" for index in range(CLASSES)}
    properties = {"task": "detect", "stride": "32", "imgsz": f"[{SIDE}, {SIDE}]"}
    helper.set_model_props(model, {**properties, "names": str(names)})
    return model


def yolo8n(name, shape, result, cells):
    network = Detector(name, GAINS)
    x = network.input("images", shape)
    x = unit(network, x, 3, 16, 3, "stem.0", stride=2)
    x = unit(network, x, 16, 32, 3, "stem.1", stride=2)
    x = c2f(network, x, 32, 32, 1, "stem.2", residual=True)
    x = unit(network, x, 32, 64, 3, "to8.0", stride=2)
    at8 = c2f(network, x, 64, 64, 2, "to8.1", residual=True)
    x = unit(network, at8, 64, 128, 3, "to16.0", stride=2)
    at16 = c2f(network, x, 128, 128, 2, "to16.1", residual=True)
    x = unit(network, at16, 128, 256, 3, "to32.0", stride=2)
    x = c2f(network, x, 256, 256, 1, "to32.1", residual=True)
    at32 = pyramid_pooling(network, x, 256, "to32.2")

    top16 = c2f(network, joined(network, doubled(network, at32), at16), 384, 128, 1, "td16")
    out8 = c2f(network, joined(network, doubled(network, top16), at8), 192, 64, 1, "td8")
    x = unit(network, out8, 64, 64, 3, "down8", stride=2)
    out16 = c2f(network, joined(network, x, top16), 192, 128, 1, "bu16")
    x = unit(network, out16, 128, 128, 3, "down16", stride=2)
    out32 = c2f(network, joined(network, x, at32), 384, 256, 1, "bu32")
    maps = (out8, 64), (out16, 128), (out32, 256)
    with network.scope("heads"):
        sides, scores = heads(network, maps)
        centres, strides = cells(network, [x for x, _ in maps])
        found = boxes(network, sides, centres, strides)
    network.output(joined(network, found, scores), "output0", result)
    return network.finish()


def unit(network, x, channels, filters, kernel, name, stride=1):
    """A convolution and SiLU."""
    with network.scope(name):
        y = network.conv(x, channels, filters, kernel, stride=stride)
        return network.node("Mul", [y, network.node("Sigmoid", [y])])


def c2f(network, x, channels, filters, count, name, residual=False):
    """Half of the channels goes through a chain of bottlenecks; all results leave together."""
    half = filters // 2
    with network.scope(name):
        x = unit(network, x, channels, filters, 1, "enter")
        parts = network.node("Split", [x, network.constant([half, half])], {"axis": 1}, outputs=2)
        for index in range(count):
            with network.scope(f"chain.{index}"):
                y = unit(network, parts[-1], half, half, 3, "a")
                y = unit(network, y, half, half, 3, "b")
                parts.append(network.node("Add", [parts[-1], y]) if residual else y)
        return unit(network, joined(network, *parts), (2 + count) * half, filters, 1, "leave")


def pyramid_pooling(network, x, channels, name):
    """The largest values of growing neighbourhoods, beside the values themselves."""
    with network.scope(name):
        parts = [unit(network, x, channels, channels // 2, 1, "enter")]
        for _ in range(3):
            attributes = {"kernel_shape": [5, 5], "pads": [2] * 4, "strides": [1, 1]}
            parts.append(network.node("MaxPool", [parts[-1]], attributes))
        return unit(network, joined(network, *parts), 2 * channels, channels, 1, "leave")


def doubled(network, x):
    return network.node("Resize", [x, "", network.constant([1, 1, 2, 2], np.float32)], NEAREST)


def joined(network, *parts, axis=1):
    return network.node("Concat", parts, {"axis": axis})


def heads(network, maps):
    """The distances to the boxes' sides and the scores of all cells of the three scales."""
    flat = []
    for index, (x, channels) in enumerate(maps):
        both = [
            branch(network, x, channels, 64, 4 * BINS, 0.0, f"box.{index}"),
            branch(network, x, channels, CLASSES, CLASSES, PRIOR, f"cls.{index}"),
        ]
        shape = network.constant([0, 4 * BINS + CLASSES, -1])
        flat.append(network.node("Reshape", [joined(network, *both), shape]))
    x, sizes = joined(network, *flat, axis=2), network.constant([4 * BINS, CLASSES])
    sides, scores = network.node("Split", [x, sizes], {"axis": 1}, outputs=2)
    return sides, network.node("Sigmoid", [scores])


def branch(network, x, channels, width, outputs, bias, name):
    with network.scope(name):
        x = unit(network, x, channels, width, 3, "0")
        x = unit(network, x, width, width, 3, "1")
        return network.conv(x, width, outputs, 1, bias_mean=bias, name="2")


def boxes(network, sides, centres, strides):
    """Centre, width and height in pixels, of distributions over the distances to the four sides."""
    x = network.node("Reshape", [sides, network.constant([0, 4, BINS, -1])])
    x = network.node("Transpose", [x], {"perm": [0, 2, 1, 3]})
    x = network.node("Softmax", [x], {"axis": 1})
    bins = network.parameter("dfl.weight", np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
    x = network.node("Conv", [x, bins], {"kernel_shape": [1, 1]}, name="dfl/Conv")
    x = network.node("Reshape", [x, network.constant([0, 4, -1])])
    halves = network.constant([2, 2])
    left_top, right_bottom = network.node("Split", [x, halves], {"axis": 1}, outputs=2)
    first = network.node("Sub", [centres, left_top])
    last = network.node("Add", [centres, right_bottom])
    both = network.node("Add", [first, last])
    middle = network.node("Div", [both, network.constant(2, np.float32)])
    extent = network.node("Sub", [last, first])
    return network.node("Mul", [joined(network, middle, extent), strides])


def fixed_cells(network, maps):
    """The centres of all cells at 640×640, in units of their strides, and the strides."""
    sides = [SIDE // stride for stride in STRIDES]
    grids = [np.stack(np.meshgrid(*[np.arange(side) + 0.5] * 2)).reshape(2, -1) for side in sides]
    centres = np.concatenate(grids, axis=1)[None]
    strides = np.repeat(STRIDES, np.square(sides))[None]
    centres, strides = centres.astype(np.float32), strides.astype(np.float32)
    return network.parameter("centres", centres), network.parameter("strides", strides)


def traced_cells(network, maps):
    """Both as nodes that read the sizes of the maps."""
    centres, strides = [], []
    for x, stride in zip(maps, STRIDES):
        rows, columns = size(network, x, 2), size(network, x, 3)
        both = vector(network, [rows, columns])
        across = network.node("Expand", [places(network, columns), both])
        down = reshape(network, places(network, rows), [-1, 1])
        down = network.node("Expand", [down, both])
        flat = [reshape(network, one, [1, 1, -1]) for one in (across, down)]
        centres.append(joined(network, *flat))
        ones = network.node("Shape", [flat[0]])
        factor = network.constant([[[stride]]], np.float32)
        strides.append(network.node("Expand", [factor, ones]))
    return joined(network, *centres, axis=2), joined(network, *strides, axis=2)


def places(network, count):
    """The middles of so many cells in a row: 0.5, 1.5 …"""
    steps = network.node("Range", [network.constant(0), count, network.constant(1)])
    steps = network.node("Cast", [steps], {"to": TensorProto.FLOAT})
    return network.node("Add", [steps, network.constant(0.5, np.float32)])
