"""Writes an ONNX image network as two .tflite files, float and full int8, for LiteRT.js.

    python benches/litert/tflite.py MODEL.onnx FLOAT.tflite INT8.tflite

The graph is computed in TensorFlow with the layout NHWC and the weights of the file; its converter
writes the files. Padding is TensorFlow's SAME, which costs no operator of its own. So values differ
from the ONNX model's at the border, and the multiplications are equal. The int8 file has a scale
per channel, and floats at its ends, as Octet's has.
"""

import sys

import numpy as np
import onnx
import tensorflow as tf
from onnx import numpy_helper

SAMPLES = 8


class Network(tf.Module):
    """The operators of image networks, on values by name."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        self.constants = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)

    def __call__(self, x):
        values = {self.graph.input[0].name: x}
        for node in self.graph.node:
            if node.op_type != "Constant":
                attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
                known = [values.get(name, self.constants.get(name)) for name in node.input]
                values[node.output[0]] = getattr(self, node.op_type)(attributes, *known)
        return values[self.graph.output[0].name]

    def Conv(self, attributes, x, weight, bias=None):
        strides = list(attributes.get("strides", [1, 1]))
        groups = attributes.get("group", 1)
        if groups == 1:
            y = tf.nn.conv2d(x, weight.transpose(2, 3, 1, 0), strides, "SAME")
        elif groups == weight.shape[0] and weight.shape[1] == 1:
            y = tf.nn.depthwise_conv2d(x, weight.transpose(2, 3, 0, 1), [1, *strides, 1], "SAME")
        else:
            raise ValueError(f"a Conv of {groups} groups is not written here")
        return y if bias is None else tf.nn.bias_add(y, bias)

    def BatchNormalization(self, attributes, x, scale, bias, mean, variance):
        factor = scale / np.sqrt(variance + attributes.get("epsilon", 1e-5))
        return tf.nn.bias_add(x * factor, bias - mean * factor)

    def Clip(self, attributes, x, low=None, high=None):
        bounds = attributes.get("min", low), attributes.get("max", high)
        low, high = (float(np.ravel(bound)[0]) for bound in bounds)
        return tf.nn.relu6(x) if (low, high) == (0, 6) else tf.clip_by_value(x, low, high)

    def Relu(self, _, x):
        return tf.nn.relu(x)

    def Add(self, _, x, y):
        return x + y

    def MaxPool(self, attributes, x):
        return tf.nn.max_pool2d(x, attributes["kernel_shape"], attributes["strides"], "SAME")

    def GlobalAveragePool(self, _, x):
        return tf.reduce_mean(x, [1, 2], keepdims=True)

    def Flatten(self, _, x):
        return tf.reshape(x, [1, -1])

    def Gemm(self, attributes, x, weight, bias):
        return tf.nn.bias_add(tf.matmul(x, weight.T if attributes.get("transB") else weight), bias)


def main(source, float_file, int8_file):
    network = Network(onnx.load(source).graph)
    _, channels, *sides = [d.dim_value for d in network.graph.input[0].type.tensor_type.shape.dim]
    shape = [1, *sides, channels]
    run = tf.function(network, autograph=False, input_signature=[tf.TensorSpec(shape, tf.float32)])
    random = np.random.default_rng(0)

    def samples():
        for _ in range(SAMPLES):
            yield [random.standard_normal(shape, np.float32)]

    for file, full in ((float_file, False), (int8_file, True)):
        functions = [run.get_concrete_function()]
        converter = tf.lite.TFLiteConverter.from_concrete_functions(functions, network)
        if full:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = samples
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        with open(file, "wb") as out:
            out.write(converter.convert())


if __name__ == "__main__":
    main(*sys.argv[1:])
