"""Shared helpers for the schemes without samples: small models, Octet and ONNX Runtime run on them.

`cargo build --release --features cli --example scheme` makes the program that is tested.
"""

import json
import subprocess
import zlib

import reference_runtimes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def weight(name, *shape, scale=0.2):
    """A constant with random numbers, the same for the same name and shape."""
    random = np.random.default_rng(zlib.crc32(f"{name}{shape}".encode()))
    return numpy_helper.from_array((random.standard_normal(shape) * scale).astype(np.float32), name)


def build(nodes, constants, inputs, outputs, opset=17, check=True):
    """A model that is checked; `inputs` are (name, shape) or (name, shape, type)."""
    values = [helper.make_tensor_value_info(n, t[0] if t else TensorProto.FLOAT, s) for n, s, *t in inputs]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs]
    graph = helper.make_graph(nodes, "graph", values, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if check:
        onnx.checker.check_model(model, full_check=True)
    return model


def node(operator, inputs, output, name=None, **attributes):
    return helper.make_node(operator, inputs, [output], name=name or f"the_{output}", **attributes)


def quantized(program, folder, model, settings):
    """Octet's quantized model, and its messages."""
    example = program.parent / "examples" / "scheme"
    assert example.exists(), f"{example} is missing: `cargo build --release --features cli --example scheme` makes it"
    source, chosen, target = folder / "float.onnx", folder / "settings.json", folder / "octet.onnx"
    onnx.save(model, source)
    chosen.write_text(json.dumps(settings))
    done = subprocess.run([example, source, chosen, target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return onnx.load(target), json.loads(done.stdout)


def refused(program, folder, model, settings):
    """Octet's error for a model or settings."""
    source, chosen = folder / "float.onnx", folder / "settings.json"
    onnx.save(model, source)
    chosen.write_text(json.dumps(settings))
    example = program.parent / "examples" / "scheme"
    done = subprocess.run([example, source, chosen, folder / "octet.onnx"], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def feeds(model, seed=3):
    random, made = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            made[value.name] = random.integers(0, 8, shape)
        else:
            made[value.name] = random.standard_normal(shape).astype(np.float32)
    return made


def run(model, inputs, optimized=False):
    return reference_runtimes.session(model, optimized).run(None, inputs)


def constants(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def near(ours, theirs, tolerance):
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        difference, size = np.abs(mine - other).max(), np.abs(other).max()
        assert difference <= tolerance * size, f"differs by {difference} where values reach {size}"
