"""Models with subgraphs (If, Loop, Scan) between quantizable layers, in ONNX's text form.

`MODELS` lists them by name; each is a function that makes the model, and the inputs of a few samples.
"""

import numpy as np
import onnx
from onnx import numpy_helper

LAYER = "float[4,4,3,3]"


def floats(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


WEIGHTS = {
    "w0": floats(4, 3, 3, 3, seed=1, scale=0.3),
    "w1": floats(4, 4, 3, 3, seed=2, scale=0.2),
    "w2": floats(2, 4, 3, 3, seed=3, scale=0.2),
    "m0": floats(6, 8, seed=4, scale=0.4),
    "m1": floats(8, 8, seed=5, scale=0.2),
    "m2": floats(8, 3, seed=6, scale=0.4),
}


def model(text, opset=17):
    """A model from text, with the weights that it names."""
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    kept = [numpy_helper.from_array(values, name) for name, values in WEIGHTS.items() if name in text]
    made.graph.initializer.extend(kept)
    return made


def pictures(*sizes, **more):
    """Samples of these sizes, with further inputs that each sample has."""
    return [
        {"x": floats(1, 3, size, size, seed=10 + seed)} | {name: values[seed] for name, values in more.items()}
        for seed, size in enumerate(sizes)
    ]


def rows(*lengths, **more):
    return [
        {"x": floats(length, 6, seed=20 + seed)} | {name: values[seed] for name, values in more.items()}
        for seed, length in enumerate(lengths)
    ]


def for_loop():
    """Three iterations over an image, through a layer with weights of the outer graph."""
    return model("""picture (float[1,3,8,8] x) => (float[] y) {
      a = Conv <pads=[1,1,1,1]> (x, w0)
      r = Relu(a)
      n = Constant <value = int64 {3}> ()
      go = Constant <value = bool {1}> ()
      l = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2) {
        k = Conv <pads=[1,1,1,1]> (v, w1)
        t = Tanh(k)
        v2 = Add(t, r)
        c2 = Identity(c)
      }> (n, go, r)
      y = Conv(l, w2)
    }"""), pictures(8, 8, 8)


def while_loop():
    """Halves a value until it is small; the number of iterations depends on the sample."""
    return model("""rows (float[N,6] x) => (float[] y, int64 turns) {
      a = MatMul(x, m0)
      go = Constant <value = bool {1}> ()
      zero = Constant <value = int64 {0}> ()
      l, turns = Loop <body = turn (int64 i, bool c, float[] v, int64 n) => (bool c2, float[] v2, int64 n2) {
        half = Constant <value = float {0.5}> ()
        least = Constant <value = float {0.2}> ()
        one = Constant <value = int64 {1}> ()
        v2 = Mul(v, half)
        big = ReduceMax <keepdims=0> (v2)
        c2 = Greater(big, least)
        n2 = Add(n, one)
      }> ("", go, a, zero)
      b = MatMul(l, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(4, 4, 7)


def growing():
    """Appends a row per iteration, so that later shapes depend on the sample."""
    return model("""rows (float[N,6] x, int64 n) => (float[] y) {
      a = MatMul(x, m0)
      go = Constant <value = bool {1}> ()
      l = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2) {
        zero = Constant <value = int64[1] {0}> ()
        first = Gather <axis=0> (v, zero)
        step = MatMul(first, m1)
        soft = Tanh(step)
        v2 = Concat <axis=0> (soft, v)
        c2 = Identity(c)
      }> (n, go, a)
      b = MatMul(l, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(2, 3, 2, 2, n=[np.array(n) for n in (3, 4, 5, 0)])


def kept():
    """Scan outputs of the iterations in order, with a row of a captured value for each."""
    return model("""rows (float[N,6] x) => (float[] y, float[] last) {
      a = MatMul(x, m0)
      shape = Shape(x)
      zero = Constant <value = int64 {0}> ()
      n = Gather(shape, zero)
      row = Constant <value = int64[1] {0}> ()
      start = Gather <axis=0> (a, row)
      last, all = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2, float[1,8] k) {
        r = Gather <axis=0> (a, i)
        s = Add(v, r)
        v2 = Tanh(s)
        k = Identity(v2)
        c2 = Identity(c)
      }> (n, "", start)
      flat = Constant <value = int64[2] {-1, 8}> ()
      f = Reshape(all, flat)
      b = MatMul(f, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(5, 3, 5)


def nested():
    """A Loop in a Loop with an If inside; all of them read outer values."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      n = Constant <value = int64 {3}> ()
      go = Constant <value = bool {1}> ()
      l = Loop <body = outer (int64 i, bool c, float[] v) => (bool c2, float[] v2) {
        two = Constant <value = int64 {2}> ()
        inner = Loop <body = turn (int64 j, bool d, float[] u) => (bool d2, float[] u2) {
          odd = Mod(j, two)
          is = Cast <to=9> (odd)
          p = If <
            then_branch = yes () => (float[] p1) { q = MatMul(u, m1)  s = Add(q, a)  p1 = Tanh(s) },
            else_branch = no () => (float[] p2) { p2 = Sub(u, v) }
          > (is)
          half = Constant <value = float {0.7}> ()
          u2 = Mul(p, half)
          d2 = Identity(d)
        }> (two, c, v)
        v2 = Add(inner, a)
        c2 = Identity(c)
      }> (n, go, a)
      b = MatMul(l, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(3, 3, 2)


def shapes_from_turns():
    """The iteration number determines sizes and shapes, so no plan exists without it."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      n = Constant <value = int64 {3}> ()
      go = Constant <value = bool {1}> ()
      l = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2) {
        one = Constant <value = int64[1] {1}> ()
        zero = Constant <value = int64[1] {0}> ()
        at = Reshape(i, one)
        end = Add(at, one)
        cut = Slice(a, zero, end, one)
        all = Constant <value = int64[1] {-1}> ()
        flat = Concat <axis=0> (end, all)
        wide = Reshape(cut, flat)
        sum = ReduceSum <keepdims=1> (wide)
        v2 = Add(v, sum)
        c2 = Identity(c)
      }> (n, go, a)
      b = MatMul(l, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), [{"x": floats(2, 6, seed=seed)} for seed in range(3)]


def empty_or_not():
    """Like a detector's post-processing: the branches have different shapes, chosen by the result.
    """
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      r = Relu(a)
      top = ReduceMax <keepdims=0> (x)
      limit = Constant <value = float {2.2}> ()
      found = Greater(top, limit)
      z = If <
        then_branch = some () => (float[] some1) { some1 = Concat <axis=0> (r, a) },
        else_branch = none () => (float[] none1) { d = MatMul(a, m1)  none1 = Sigmoid(d) }
      > (found)
      b = MatMul(z, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(2, 2, 6, 2, 6, 3)


def choice():
    """A condition computed in the run; two outputs."""
    return model("""picture (float[1,3,8,8] x) => (float[] y, float[] z) {
      a = Conv <pads=[1,1,1,1]> (x, w0)
      r = Relu(a)
      zero = Constant <value = float {0}> ()
      least = ReduceMin <keepdims=0> (r)
      yes = GreaterOrEqual(least, zero)
      s, t = If <
        then_branch = one () => (float[] s1, float[] t1) { s1 = Conv <pads=[1,1,1,1]> (r, w1)  t1 = Tanh(r) },
        else_branch = two () => (float[] s2, float[] t2) { s2 = Identity(r)  t2 = Neg(r) }
      > (yes)
      y = Conv(s, w2)
      z = Conv(t, w2)
    }"""), pictures(8, 8)


def scan(axes="", opset=17, shape="N,6", states="a0", gru="r"):
    return model(f"""rows (float[N,6] x) => (float[] y, float[] last) {{
      a = MatMul(x, m0)
      t = Transpose <perm=[1,0]> (a)
      row = Constant <value = int64[1] {{0}}> ()
      start = Constant <value = float[8] {{0,0,0,0,0,0,0,0}}> ()
      last, all, back = Scan <num_scan_inputs=2, scan_input_axes=[0,1], scan_input_directions=[1,0],
        scan_output_axes=[0,-1], scan_output_directions=[0,1],
        body = turn (float[8] h, float[8] u, float[8] v) => (float[8] h2, float[8] k, float[8] b) {{
          s = Add(h, u)
          m = MatMul(s, m1)
          z = Mul(m, v)
          h2 = Tanh(z)
          k = Identity(h2)
          b = Sub(h2, u)
        }}> (start, a, t)
      f = Transpose <perm=[1,0]> (back)
      both = Add(all, f)
      d = MatMul(both, m1)
      h = Relu(d)
      y = MatMul(h, m2)
    }}""", opset), rows(5, 3, 5)


def pass_by():
    """Layers beside and after a Loop that share values, weights and computed shapes."""
    return model("""picture (float[1,3,H,W] x) => (float[] y, float[] z) {
      a = Conv <pads=[1,1,1,1]> (x, w0)
      r = Relu(a)
      side = Conv <pads=[1,1,1,1]> (r, w1)
      shape = Shape(r)
      n = Constant <value = int64 {2}> ()
      go = Constant <value = bool {1}> ()
      l, count = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2, int64 k) {
        same = Reshape(v, shape)
        t = Tanh(same)
        v2 = Add(t, side)
        k = Identity(i)
        c2 = Identity(c)
      }> (n, go, r)
      back = Reshape(l, shape)
      e = Add(back, r)
      y = Conv <pads=[1,1,1,1]> (e, w1)
      z = Conv(side, w2)
    }"""), pictures(8, 8, 10)


def no_turn():
    """A Loop without iterations passes its inputs on; its scan outputs are empty."""
    return model("""rows (float[N,6] x) => (float[] y, float[] k) {
      a = MatMul(x, m0)
      n = Constant <value = int64 {0}> ()
      l, k = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2, float[M,8] k1) {
        v2 = Tanh(v)
        k1 = Identity(v2)
        c2 = Identity(c)
      }> (n, "", a)
      b = MatMul(l, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(4, 3)


def own_condition():
    """No condition input, but the body computes one. By the specification it is ignored; ONNX
    Runtime obeys it.
    """
    return model("""rows (float[N,6] x) => (float[] y, int64[] turns) {
      a = MatMul(x, m0)
      n = Constant <value = int64 {9}> ()
      l, turns = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2, int64[] k) {
        two = Constant <value = int64 {2}> ()
        v2 = Tanh(v)
        c2 = Less(i, two)
        k = Identity(i)
      }> (n, "", a)
      b = MatMul(l, m1)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(4, 3)


def first_shape():
    """Trip counts and conditions as lists of one, as old exporters write them."""
    return model("""rows (float[N,6] x, int64[1] n, bool[1] go) => (float[] y) {
      l = Loop <body = turn (int64[1] i, bool[1] c, float[] v) => (bool[1] c2, float[] v2) {
        f = Cast <to=1> (i)
        v2 = Add(v, f)
        c2 = Identity(c)
      }> (n, go, x)
      b = MatMul(l, m0)
      h = Relu(b)
      y = MatMul(h, m2)
    }"""), rows(4, 3, 4, n=[np.array([n]) for n in (2, 3, 1)], go=[np.array([go]) for go in (True, True, False)])


def many():
    """Two Loops that read each other's results; one uses only the magnitude of a value."""
    return model("""picture (float[1,3,H,W] x) => (float[] y) {
      a = Conv <pads=[1,1,1,1]> (x, w0)
      r = Relu(a)
      size = Size(r)
      part = Constant <value = int64 {128}> ()
      n = Div(size, part)
      zero = Constant <value = int64 {0}> ()
      count = Loop <body = turn (int64 i, bool c, int64[] v) => (bool c2, int64[] v2) {
        v2 = Add(v, i)
        c2 = Identity(c)
      }> (n, "", zero)
      l, kept = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2, float[1,4,h,w] k) {
        s = Conv <pads=[1,1,1,1]> (v, w1)
        v2 = Tanh(s)
        k = MaxPool <kernel_shape=[2,2], strides=[2,2]> (v2)
        c2 = Identity(c)
      }> (count, "", r)
      most = ReduceMax <axes=[0], keepdims=0> (kept)
      up = Conv <pads=[1,1,1,1]> (most, w1)
      y = Conv(up, w2)
    }"""), pictures(8, 8, 10)


MODELS = {
    "own condition": own_condition,
    "first shape": first_shape,
    "many": many,
    "for loop": for_loop,
    "while loop": while_loop,
    "growing": growing,
    "kept": kept,
    "nested": nested,
    "shapes from turns": shapes_from_turns,
    "empty or not": empty_or_not,
    "choice": choice,
    "scan": scan,
    "pass by": pass_by,
    "no turn": no_turn,
}
