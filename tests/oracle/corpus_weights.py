"""Converts the weight files of two trained networks to ONNX.

An untrusted pickle could name any function; ours may only build arrays and dictionaries. The graphs
follow the published architectures. `test_corpus.py` compares their top-1 on labelled photos with
the published figure, so a wrong stride or padding is found.
"""

import collections
import io
import pickle
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class CorpusError(Exception):
    """An error with its context and advice."""


# --- reading -------------------------------------------------------------------------------------


_Storage = collections.namedtuple("_Storage", "key dtype count")


class _Restricted(pickle.Unpickler):
    """Resolves only the given names; any other is an error."""

    def __init__(self, file, allowed):
        super().__init__(file, encoding="latin1")
        self._allowed = allowed

    def find_class(self, module, name):
        try:
            return self._allowed[module, name]
        except KeyError:
            raise CorpusError(
                f"the weights' pickle asks for {module}.{name}, which is not needed for arrays: "
                "it is not the file we know, so it is not loaded") from None

    def persistent_load(self, pid):
        kind, dtype, key, _device, count = pid[:5]
        if kind != "storage":
            raise CorpusError(f"the weights' pickle refers to a {kind!r}, not to a storage")
        return _Storage(key, dtype, count)


def read_torch_weights(data):
    """Tensors by name from a checkpoint in torch's older format: five pickles, then raw storages."""
    allowed = {
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): lambda storage, offset, size, stride, *_: (
            storage, offset, size, stride),
        ("torch", "FloatStorage"): np.dtype("<f4"),
        ("torch", "LongStorage"): np.dtype("<i8"),
    }
    file = io.BytesIO(data)

    def load():
        return _Restricted(file, allowed).load()

    magic, protocol, system = load(), load(), load()
    if magic != 0x1950A86A20F9469CFC6C or protocol != 1001 or not system["little_endian"]:
        raise CorpusError("the weights are not a little-endian torch checkpoint of protocol 1001")
    described, keys = load(), load()
    dtypes = {tensor[0].key: tensor[0].dtype for tensor in described.values()}
    storages = {}
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        dtype = dtypes[key]
        storages[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    weights = {}
    for name, (storage, offset, size, stride) in described.items():
        values = storages[storage.key][offset:]
        strides = [step * storage.dtype.itemsize for step in stride]
        last = sum((length - 1) * step for length, step in zip(size, stride))
        if last >= len(values):
            raise CorpusError(f"tensor {name} reaches beyond its storage")
        weights[name] = np.ascontiguousarray(np.lib.stride_tricks.as_strided(values, size, strides))
    return weights


def read_array_pickle(data):
    """A pickled dictionary of lists of numpy arrays."""
    from numpy._core.multiarray import _reconstruct

    module = "numpy.core.multiarray"  # as numpy 1 wrote it
    allowed = {
        (module, "_reconstruct"): _reconstruct,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }
    return _Restricted(io.BytesIO(data), allowed).load()


# --- building ------------------------------------------------------------------------------------


class _Builder:
    def __init__(self):
        self.nodes, self.initializers = [], []

    def weight(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def node(self, operator, inputs, name, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [name + "_out"], name, **attributes))
        return name + "_out"

    def model(self, name, source, shape, output):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, name,
            [value("input", TensorProto.FLOAT, shape)], [value(output, TensorProto.FLOAT, [1, 1000])],
            self.initializers)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
            producer_name="octet corpus", doc_string=source)
        onnx.checker.check_model(model, full_check=True)
        return model


def same_padding(size, kernel, stride):
    """TensorFlow's "same" padding: for ceil(size/stride) windows, with the odd pixel at the end."""
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return missing // 2, missing - missing // 2


# (blocks, kernel, stride of the first block, expansion, output channels) of each stage
EFFICIENTNET_STAGES = [
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320),
]


def efficientnet_lite0(data):
    """EfficientNet-Lite0: MobileNetV2's blocks with ReLU6, batch norms (epsilon 1e-3) left as nodes."""
    weights = read_torch_weights(data)
    b = _Builder()
    zero, six = b.weight("relu6_min", np.float32(0)), b.weight("relu6_max", np.float32(6))

    def conv(x, name, norm, size, kernel=1, stride=1, group=1, act=True):
        begin, end = same_padding(size, kernel, stride)
        x = b.node("Conv", [x, b.weight(name + ".weight", weights[name + ".weight"])], name,
                   kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[begin, begin, end, end], group=group)
        parts = [b.weight(f"{norm}.{part}", weights[f"{norm}.{part}"])
                 for part in ("weight", "bias", "running_mean", "running_var")]
        x = b.node("BatchNormalization", [x, *parts], norm, epsilon=1e-3)
        return b.node("Clip", [x, zero, six], norm + ".relu6") if act else x

    size, channels, index = 224, 32, 0
    x = conv("input", "_conv_stem", "_bn0", size, 3, 2)
    size = 112
    for blocks, kernel, first_stride, expansion, out in EFFICIENTNET_STAGES:
        for block in range(blocks):
            name, stride, shortcut = f"_blocks.{index}", first_stride if block == 0 else 1, x
            inner = channels * expansion
            if expansion != 1:
                x = conv(x, name + "._expand_conv", name + "._bn0", size)
            x = conv(x, name + "._depthwise_conv", name + "._bn1", size, kernel, stride, inner)
            size = -(-size // stride)
            x = conv(x, name + "._project_conv", name + "._bn2", size, act=False)
            if stride == 1 and channels == out:
                x = b.node("Add", [x, shortcut], name + ".add")
            channels, index = out, index + 1
    x = conv(x, "_conv_head", "_bn1", size)
    x = b.node("GlobalAveragePool", [x], "pool")
    x = b.node("Flatten", [x], "flatten")
    x = b.node("Gemm", [x, b.weight("_fc.weight", weights["_fc.weight"]), b.weight("_fc.bias", weights["_fc.bias"])],
               "_fc", transB=1)
    return b.model("efficientnet_lite0", "EfficientNet-Lite0, ImageNet, RGB (x-127)/128", [1, 3, 224, 224], x)


def squeezenet(data):
    """SqueezeNet 1.1 for 227 x 227 BGR, mean subtracted; the pickle's kernels are height, width, in, out."""
    weights = read_array_pickle(data)
    b = _Builder()

    def conv(x, name, **attributes):
        kernel, bias = weights[name]
        name = name.replace("/", ".")
        inputs = [x, b.weight(name + ".weight", np.transpose(kernel, (3, 2, 0, 1))), b.weight(name + ".bias", bias)]
        x = b.node("Conv", inputs, name, kernel_shape=list(kernel.shape[:2]), **attributes)
        return b.node("Relu", [x], name + ".relu")

    def fire(x, name):
        x = conv(x, name + "/squeeze1x1")
        parts = [conv(x, name + "/expand1x1"), conv(x, name + "/expand3x3", pads=[1, 1, 1, 1])]
        return b.node("Concat", parts, name + ".concat", axis=1)

    def pool(x, name):
        return b.node("MaxPool", [x], name, kernel_shape=[3, 3], strides=[2, 2])

    x = pool(conv("input", "conv1", strides=[2, 2]), "pool1")
    x = pool(fire(fire(x, "fire2"), "fire3"), "pool3")
    x = pool(fire(fire(x, "fire4"), "fire5"), "pool5")
    for name in ("fire6", "fire7", "fire8", "fire9"):
        x = fire(x, name)
    x = conv(x, "conv10")
    x = b.node("GlobalAveragePool", [x], "pool10")
    x = b.node("Flatten", [x], "flatten")
    x = b.node("Softmax", [x], "softmax", axis=1)
    return b.model("squeezenet", "SqueezeNet 1.1, ImageNet, BGR minus (104, 117, 123)", [1, 3, 227, 227], x)
