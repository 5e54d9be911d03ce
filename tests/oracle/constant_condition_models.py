"""Models with Ifs whose conditions are constant before a run, as exporters write for shape checks.

`MODELS` lists them by name; each is a function that makes the model, the same without any If, and the inputs of a few samples.
"""

from control_models import model, pictures, rows


def constant():
    """A condition that is a constant; two outputs, weights in the branch."""
    text = """picture (float[1,3,8,8] x) => (float[] y, float[] z) {{
      a = Conv <pads=[1,1,1,1]> (x, w0)
      r = Relu(a)
      {choice}
      y = Conv(s, w2)
      z = Conv(t, w2)
    }}"""
    return text.format(choice="""yes = Constant <value = bool {1}> ()
      s, t = If <
        then_branch = one () => (float[] s1, float[] t1) { q = Conv <pads=[1,1,1,1]> (r, w1)  s1 = Relu(q)  t1 = Tanh(r) },
        else_branch = two () => (float[] s2, float[] t2) { s2 = Identity(r)  t2 = Neg(r) }
      > (yes)"""), text.format(choice="q = Conv <pads=[1,1,1,1]> (r, w1)  s = Relu(q)  t = Tanh(r)"), pictures(8, 8)


def squeezed():
    """PyTorch's squeeze of an axis of one element, and a choice that falls the other way."""
    text = """rows (float[4,1,6] x) => (float[] y) {{
      two = Constant <value = int64 {{2}}> ()
      axis = Constant <value = int64[1] {{1}}> ()
      {first}
      a = MatMul(s, m0)
      h = Relu(a)
      {second}
      y = MatMul(t, m2)
    }}"""
    one = """shape_{v} = Shape({v})
      place_{v} = Constant <value = int64 {{1}}> ()
      single_{v} = Constant <value = int64 {{1}}> ()
      size_{v} = Gather(shape_{v}, place_{v})
      is_{v} = Equal(size_{v}, single_{v})
      {o} = If <
        then_branch = yes () => (float[] p) {{ axes = Constant <value = int64[1] {{1}}> ()  p = {then} }},
        else_branch = no () => (float[] q) {{ q = Identity({v}) }}
      > (is_{v})"""
    samples = [{"x": sample["x"][:, None]} for sample in rows(4, 4)]
    return (text.format(first=one.format(v="x", o="s", then="Squeeze(x, axes)"), second=one.format(v="h", o="t", then="ReduceSum(h, axes)")),
            text.format(first="s = Squeeze(x, axis)", second="t = Identity(h)"), samples)


def nested():
    """Nested Ifs with a constant inside the branch; the inner one reads outer values."""
    text = """rows (float[N,6] x) => (float[] y) {{
      a = MatMul(x, m0)
      {choice}
      b = Add(c, a)
      y = MatMul(b, m2)
    }}"""
    return text.format(choice="""no = Constant <value = bool {0}> ()
      c = If <
        then_branch = one () => (float[] s) { s = Neg(a) },
        else_branch = two () => (float[] u) {
          yes = Constant <value = bool {1}> ()
          h = MatMul(a, m1)
          u = If <
            then_branch = inner () => (float[] v) { w = Add(h, a)  v = Relu(w) },
            else_branch = other () => (float[] v) { v = Neg(h) }
          > (yes)
        }
      > (no)"""), text.format(choice="h = MatMul(a, m1)  w = Add(h, a)  c = Relu(w)"), rows(3, 2, 4)


def twins():
    """Two Ifs whose branches use the same inner names; one gives the model's output."""
    text = """rows (float[N,6] x) => (float[] y) {{
      a = MatMul(x, m0)
      yes = Constant <value = bool {{1}}> ()
      {first}
      {second}
    }}"""
    one = """{o} = If <
        then_branch = yes () => (float[] r) {{ p = MatMul({v}, {w})  r = Tanh(p) }},
        else_branch = no () => (float[] r) {{ r = MatMul({v}, {w}) }}
      > (yes)"""
    return (text.format(first=one.format(o="b", v="a", w="m1"), second=one.format(o="y", v="b", w="m2")),
            text.format(first="p = MatMul(a, m1)  b = Tanh(p)", second="q = MatMul(b, m2)  y = Tanh(q)"), rows(3, 2))


def beside_a_run():
    """A constant If that contains one with a computed condition, which stays."""
    text = """rows (float[N,6] x) => (float[] y) {{
      a = MatMul(x, m0)
      {choice}
      y = MatMul(c, m2)
    }}"""
    inner = """top = ReduceMax <keepdims=0> (a)
          limit = Constant <value = float {{1.8}}> ()
          over = Greater(top, limit)
          {out} = If <
            then_branch = more () => (float[] v) {{ v = Relu(h) }},
            else_branch = less () => (float[] w) {{ w = Neg(h) }}
          > (over)"""
    return text.format(choice=f"""yes = Constant <value = bool {{1}}> ()
      c = If <
        then_branch = one () => (float[] u) {{ h = MatMul(a, m1)  {inner.format(out="u")} }},
        else_branch = two () => (float[] s) {{ s = Neg(a) }}
      > (yes)"""), text.format(choice=f'h = MatMul(a, m1)  {inner.format(out="c")}'), rows(3, 2, 4)


def made(function):
    """The model, its equivalent without the If, the samples."""
    text, plain, samples = function()
    return model(text), model(plain), samples


MODELS = {
    "constant": constant,
    "squeezed": squeezed,
    "nested": nested,
    "twins": twins,
    "beside a run": beside_a_run,
}
