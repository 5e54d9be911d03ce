"""Models with functions, as PyTorch's exporter and onnxscript write them, with quantizable layers
inside.

`MODELS` lists them by name; each is a function that makes the model, and the inputs of a few samples.
"""

import onnx
from control_models import WEIGHTS, pictures, rows
from onnx import numpy_helper


def model(graph, *functions, opset=18, own=18, more=""):
    """A model from text for a graph and functions, with the weights that the graph names."""
    sets = f'"" : {opset}, "lib" : 1{more}'
    # The opset of a function is `own`, or what it begins with before a colon.
    parts = [f'<ir_version: 10, opset_import: [{sets}]>\n{graph}']
    for function in functions:
        version, _, text = function.partition("|") if "|" in function else (own, "", function)
        overload, _, body = text.partition("^") if "^" in text else ("", "", text)
        told = f', overload: "{overload.strip()}"' if overload else ""
        parts.append(f'<domain: "lib"{told}, opset_import: ["" : {version}, "lib" : 1, "com.microsoft" : 1]>\n{body}')
    made = onnx.parser.parse_model("\n".join(parts))
    kept = [numpy_helper.from_array(values, name) for name, values in WEIGHTS.items() if name in graph]
    made.graph.initializer.extend(kept)
    # The text form has no node names.
    for holder in (made.graph, *made.functions):
        for index, node in enumerate(holder.node):
            node.name = f"n{index}"
    return made


LAYER = """layer <pads> (v, w) => (r) {
  c = Conv <pads : ints = @pads> (v, w)
  r = Relu(c)
}"""


def twice():
    """One function, called twice, with an attribute by reference."""
    return model("""picture (float[1,3,8,8] x) => (float[] y) {
      a = lib.layer <pads=[1,1,1,1]> (x, w0)
      b = lib.layer <pads=[0,0,0,0]> (a, w1)
      y = Conv(b, w2)
    }""", LAYER), pictures(8, 8, 8)


def nested():
    """Functions that call functions; the caller is defined first."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = lib.dense (x, m0)
      b = lib.both (a, m1)
      y = MatMul(b, m2)
    }""", """both (v, w) => (r) {
      a = lib.dense (v, w)
      b = lib.dense (a, w)
      r = Add(a, b)
    }""", """dense (v, w) => (r) {
      a = MatMul(v, w)
      r = lib.act <alpha = 0.2> (a)
    }""", """act <alpha> (v) => (r) {
      r = LeakyRelu <alpha : float = @alpha> (v)
    }"""), rows(4, 3, 5)


def defaults():
    """Attributes from the call, from defaults, and unset ones."""
    return model("""rows (float[N,6] x) => (float[] y, float[] z) {
      a = MatMul(x, m0)
      b = lib.act (a)
      c = lib.act <alpha = 0.7> (a)
      d = lib.plain (b)
      e = Add(c, d)
      y = MatMul(e, m2)
      z = Sub(d, c)
    }""", """act <alpha : float = 0.4> (v) => (r) {
      n = Neg(v)
      r = LeakyRelu <alpha : float = @alpha> (n)
    }""", """plain <alpha> (v) => (r) {
      r = LeakyRelu <alpha : float = @alpha> (v)
    }"""), rows(4, 3, 5)


def optional_inputs():
    """Omitted inputs, at the end and in between."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      six = Constant <value = float {0.6}> ()
      b = lib.bound (a)
      c = lib.bound (a, "", six)
      d = Add(b, c)
      y = MatMul(d, m2)
    }""", """bound (v, low, high) => (r) {
      r = Clip (v, low, high)
    }"""), rows(4, 3, 5)


def overloads():
    """Two functions of one name, told apart by their overloads."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      b = lib.act:soft (a)
      c = lib.act:hard (a)
      d = Add(b, c)
      y = MatMul(d, m2)
    }""", "soft ^ act (v) => (r) { r = Tanh(v) }", "hard ^ act (v) => (r) { r = Relu(v) }"), rows(4, 3, 5)


def in_branches():
    """Calls inside an If, one of which reads outer values."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      top = ReduceMax <keepdims=0> (x)
      limit = Constant <value = float {2.2}> ()
      found = Greater(top, limit)
      b = If <
        then_branch = some () => (float[] some1) { t = lib.dense (a, m1)  some1 = Add(t, a) },
        else_branch = none () => (float[] none1) { none1 = lib.dense (a, m1) }
      > (found)
      y = MatMul(b, m2)
    }""", """dense (v, w) => (r) {
      t = MatMul(v, w)
      r = Tanh(t)
    }"""), rows(2, 2, 6, 2, 6, 3)


def in_loop():
    """A call in the body of a Loop, of a function that calls another."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      n = Constant <value = int64 {3}> ()
      go = Constant <value = bool {1}> ()
      l = Loop <body = turn (int64 i, bool c, float[] v) => (bool c2, float[] v2) {
        t = lib.dense (v, m1)
        v2 = Add(t, a)
        c2 = Identity(c)
      }> (n, go, a)
      h = Relu(l)
      y = MatMul(h, m2)
    }""", """dense (v, w) => (r) {
      t = MatMul(v, w)
      r = lib.soft (t)
    }""", "soft (v) => (r) { r = Tanh(v) }"), rows(4, 3, 4)


def captures():
    """A function with subgraphs that read inner values whose names also exist outside."""
    return model("""rows (float[N,6] x) => (float[] y) {
      t = MatMul(x, m0)
      c = lib.choose <alpha = 0.3> (t)
      r = lib.choose <alpha = 0.6> (c)
      y = MatMul(r, m2)
    }""", """choose <alpha> (v) => (r) {
      c = Abs(v)
      zero = Constant <value = float {1.5}> ()
      top = ReduceMax <keepdims=0> (v)
      is = Greater(top, zero)
      r = If <
        then_branch = yes () => (float[] p) {
          k = Constant <value_float : float = @alpha> ()
          t = Mul(c, k)
          x = Sub(v, t)
          p = Tanh(x)
        },
        else_branch = no () => (float[] q) { t = LeakyRelu <alpha : float = @alpha> (v)  q = Add(t, c) }
      > (is)
    }"""), rows(3, 5, 2, 4)


def turns():
    """A function with a Loop, whose body calls a function and reads an input of the one it is in."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      b = lib.repeated (a, m1)
      y = MatMul(b, m2)
    }""", """repeated (v, w) => (r) {
      n = Constant <value = int64 {2}> ()
      r = Loop <body = turn (int64 i, bool c, float[] u) => (bool c2, float[] u2) {
        a = MatMul(u, w)
        s = lib.sum (a, v)
        u2 = Tanh(s)
        c2 = Identity(c)
      }> (n, "", v)
    }""", "sum (a, b) => (c) { c = Add(a, b) }"), rows(4, 3, 4)


def other_opsets():
    """Functions with other opsets than the model's, of operators that are equal in both."""
    return model("""picture (float[1,3,8,8] x) => (float[] y) {
      a = lib.layer <pads=[1,1,1,1]> (x, w0)
      b = lib.sum (a)
      y = Conv(b, w2)
    }""", "16 |" + LAYER, "20 | sum (v) => (r) { t = Tanh(v) r = Add(t, v) }"), pictures(8, 8, 8)


def more_sets():
    """An operator set that only the function imports."""
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      b = lib.quick (a)
      y = MatMul(b, m2)
    }""", "quick (v) => (r) { r = com.microsoft.QuickGelu <alpha = 1.0> (v) }"), rows(4, 3, 5)


def norms():
    """A transformer as exported: a norm with several outputs of which one is used, constants
    inside, reshapes.
    """
    return model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      b, mean = lib.norm (a)
      c = lib.block (b, m1)
      d, s = lib.norm <eps = 0.01> (c)
      e = Add(d, s)
      y = MatMul(e, m2)
    }""", """norm <eps : float = 0.001> (v) => (r, s) {
      axes = Constant <value_ints = [-1]> ()
      m = ReduceMean <keepdims=1> (v, axes)
      d = Sub(v, m)
      two = Constant <value = float {2.0}> ()
      p = Pow(d, two)
      q = ReduceMean <keepdims=1> (p, axes)
      e = Constant <value_float : float = @eps> ()
      t = Add(q, e)
      s = Sqrt(t)
      r = Div(d, s)
    }""", """block (v, w) => (r) {
      shape = Shape(v)
      all = Constant <value = int64[1] {-1}> ()
      flat = Reshape(v, all)
      back = Reshape(flat, shape)
      a = MatMul(back, w)
      g = Sigmoid(a)
      h = Mul(a, g)
      r = Add(h, v)
    }"""), rows(4, 3, 5)


def standard_name():
    """A function with the name of an ONNX operator: the operator is meant, as in ONNX Runtime."""
    made, samples = model("""rows (float[N,6] x) => (float[] y) {
      a = MatMul(x, m0)
      b = Softmax <axis = 1> (a)
      y = MatMul(b, m2)
    }"""), rows(4, 3, 5)
    made.functions.extend(onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[N] x) => (float[N] y) { y = Neg(x) }
    <domain: "", opset_import: ["" : 18]> Softmax <axis> (v) => (r) { r = Neg(v) }""").functions)
    return made, samples


MODELS = {
    "twice": twice,
    "nested": nested,
    "defaults": defaults,
    "optional inputs": optional_inputs,
    "overloads": overloads,
    "in branches": in_branches,
    "in loop": in_loop,
    "captures": captures,
    "turns": turns,
    "other opsets": other_opsets,
    "more sets": more_sets,
    "norms": norms,
    "standard name": standard_name,
}
