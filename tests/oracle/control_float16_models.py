"""Models with float16 values and subgraphs: some mix them with float32, others are float16
throughout.

`HALVES` lists the former by name; `halved` makes the latter.
"""

import numpy as np
import onnx
from control_models import model, rows
from onnx import numpy_helper


def half_carried():
    """Float16 in a float32 model: one value is carried, another is kept, and a body reads one of
    the outer graph.
    """
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      h = Cast <to=10> (a)
      n = Constant <value = int64 {2}> ()
      l, k = Loop <body = turn (int64 i, bool c, float16[] v) => (bool c2, float16[] v2, float16[] k1) {
        s = Add(v, h)
        v2 = Tanh(s)
        w = Cast <to=1> (v2)
        d = MatMul(w, m1)
        k1 = Cast <to=10> (d)
        c2 = Identity(c)
      }> (n, "", h)
      m = ReduceMax <axes=[0], keepdims=0> (k)
      e = Add(l, m)
      g = Cast <to=1> (e)
      y = MatMul(g, m2)
    }"""), rows(2, 3, 2)


def half_branches():
    """Float16 outputs of both branches of an If, and in a Scan's inputs and outputs."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      h = Cast <to=10> (a)
      top = ReduceMax <keepdims=0> (x)
      limit = Constant <value = float {1.8}> ()
      found = Greater(top, limit)
      z = If <
        then_branch = some () => (float16[] p) { p = Relu(h) },
        else_branch = none () => (float16[] q) { q = Add(h, h) }
      > (found)
      start = Constant <value = float16[8] {0,0,0,0,0,0,0,0}> ()
      last, all = Scan <num_scan_inputs=1, body = turn (float16[8] s, float16[8] u) => (float16[8] s2, float16[8] k) {
        s2 = Add(s, u)
        k = Tanh(s2)
      }> (start, z)
      g = Cast <to=1> (all)
      b = MatMul(g, m1)
      r = Relu(b)
      y = MatMul(r, m2)
    }"""), rows(2, 3, 6, 2)


def halved(made, element=onnx.TensorProto.FLOAT16):
    """A model with only float16 floats, in its subgraphs, too, and its samples rounded to float16.
    """
    model, samples = made

    def narrow(graph):
        for value in [*graph.input, *graph.output]:
            if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
                value.type.tensor_type.elem_type = element
        tensors = list(graph.initializer)
        for node in graph.node:
            for attribute in node.attribute:
                narrow(attribute.g)
                tensors.append(attribute.t)
                if node.op_type == "Cast" and attribute.i == onnx.TensorProto.FLOAT:
                    attribute.i = element
        for tensor in tensors:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                numbers = numpy_helper.to_array(tensor)
                tensor.CopyFrom(onnx.helper.make_tensor(tensor.name, element, numbers.shape, numbers.ravel()))

    narrow(model.graph)
    kind = np.float16 if element == onnx.TensorProto.FLOAT16 else np.float32
    return model, [{name: v.astype(kind) if v.dtype == np.float32 else v for name, v in sample.items()} for sample in samples]


# Float32 models with some float16 values.
HALVES = {"half carried": half_carried, "half branches": half_branches}
