"""The operators of exported decoders give ONNX Runtime's values, with and without earlier tokens, and
what they can't compute is a named error.
"""

import decoder_operators as made
import numpy as np
import onnx
import pytest
import reference_runtimes
from onnx import TensorProto
from run_model import attempt, run

SEEDS = range(4)
CASES = {
    "group query": lambda seed: made.group_query(seed),
    "group query, empty past": lambda seed: made.group_query(seed, past=0, rotary=True),
    "group query, past": lambda seed: made.group_query(seed, past=5),
    "group query, past and rotation": lambda seed: made.group_query(seed, past=6, rotary=True),
    "group query, rotated pairs": lambda seed: made.group_query(seed, past=4, rotary=True, rotary_interleaved=1),
    "group query, packed": lambda seed: made.group_query(seed, packed=True, past=seed, rotary=True),
    "group query, room in the cache": lambda seed: made.group_query(seed, past=3, room=9, rotary=True),
    "group query, window": lambda seed: made.group_query(seed, past=seed * 3, local_window_size=3),
    "group query, cap": lambda seed: made.group_query(seed, past=4, softcap=1.5, scale=0.4),
    "group query, smooth": lambda seed: made.group_query(seed, past=2, smooth_softmax=1),
    "group query, sinks": lambda seed: made.group_query(seed, past=2, sink=True, local_window_size=4),
    "group query, addend": lambda seed: made.group_query(seed, past=2 * seed, bias=True, softcap=2.0),
    "heads": lambda seed: made.multi_head(seed),
    "heads, past": lambda seed: made.multi_head(seed, past=seed),
    "heads, past and bias": lambda seed: made.multi_head(seed, past=3, bias=True),
    "heads, bias": lambda seed: made.multi_head(seed, bias=True, present=False, scale=0.7),
    "heads, by head": lambda seed: made.multi_head(seed, form="by head", present=False),
    "heads, counts": lambda seed: made.multi_head(seed, mask=1, present=False),
    "heads, shown": lambda seed: made.multi_head(seed, mask=2, past=2, mask_filter_value=-500.0),
    "heads, shown in pairs": lambda seed: made.multi_head(seed, mask=3, past=2),
    "heads, addend": lambda seed: made.multi_head(seed, addend=True, mask=2, past=1),
    "heads, each sees those before": lambda seed: made.multi_head(seed, past=3 * (seed % 2), unidirectional=1),
    "rotation": lambda seed: made.rotary(seed),
    "rotation by head": lambda seed: made.rotary(seed, axes=4, interleaved=1),
    "rotation from a place on": lambda seed: made.rotary(seed, offset=True),
    "rotation of a part": lambda seed: made.rotary(seed, partly=True, axes=3 + seed % 2),
    "ONNX's rotation": lambda seed: made.rotary(seed, domain="", interleaved=seed % 2),
    "ONNX's rotation by head": lambda seed: made.rotary(seed, domain="", axes=4, partly=seed > 1),
    "ONNX's rotation by token": lambda seed: made.rotary(seed, domain="", by_token=True, axes=3 + seed % 2),
    "norm": lambda seed: made.norm(seed),
    "norm of several axes": lambda seed: made.norm(seed, axis=-2),
    "norm with statistics": lambda seed: made.norm(seed, outputs=("output", "inverse")),
    "ONNX's norm": lambda seed: made.norm(seed, "RMSNormalization", axis=-1 - seed % 2),
    "sum": lambda seed: made.norm(seed, "SkipSimplifiedLayerNormalization", skip="whole", domain=made.MICROSOFT),
    "sum with bias": lambda seed: made.norm(
        seed, "SkipSimplifiedLayerNormalization", skip="whole", bias=True, domain=made.MICROSOFT, outputs=("output", "", "", "total")),
    "sum of one row": lambda seed: made.norm(
        seed, "SkipSimplifiedLayerNormalization", skip=["row", "matrix"][seed % 2], domain=made.MICROSOFT, outputs=("output", "", "", "total")),
    "table of 2 bits": lambda seed: made.table(seed, 2, seed % 2),
    "table of 4 bits": lambda seed: made.table(seed, 4, seed % 2),
    "table of 8 bits": lambda seed: made.table(seed, 8, seed % 2),
    "table of int4": lambda seed: made.table(seed, 4, seed % 2, TensorProto.INT4),
    "table of uint4": lambda seed: made.table(seed, 4, seed % 2, TensorProto.UINT4),
}  # fmt: skip


# Variants that ONNX Runtime has on other devices only, and an equal model for its CPU.
ELSEWHERE = {
    "group query, norms": (lambda seed: made.group_query(seed, past=3, norms=True, rotary=True), made.with_norms_before),
    "heads, pairs": (lambda seed: made.multi_head(seed, form="pairs", present=False), made.apart),
    "heads, packed": (lambda seed: made.multi_head(seed, form="packed", present=False), made.apart),
}


@pytest.mark.parametrize("name", [*CASES, *ELSEWHERE])
def test_it_gives_the_values_of_onnxruntime(name, tmp_path):
    for seed in SEEDS:
        build, equal = ELSEWHERE.get(name) or (CASES[name], lambda *given: given)
        model, sample = build(seed)
        path = tmp_path / f"{seed}.onnx"
        onnx.save(model, path)
        theirs, given = equal(model, sample)
        (expected,) = reference_runtimes.run(theirs, [given])
        found, _ = run(path, sample, tmp_path)
        assert found.keys() == expected.keys()
        for output, values in expected.items():
            assert found[output].shape == values.shape, (seed, output)
            np.testing.assert_allclose(found[output], values, rtol=1e-4, atol=1e-5, err_msg=f"{name} {seed} {output}")


def moved(case, name, by):
    """The case with another value of an input."""
    model, sample = case
    return model, sample | {name: sample[name] + np.array(by, sample[name].dtype)}


# Cases that can't be computed, and a part of each error.
REFUSED = {
    "lengths beyond the cache": (lambda: moved(made.group_query(1, past=3), "seqlens_k", 9), "seqlens_k"),
    "negative lengths": (lambda: moved(made.group_query(1, past=3), "seqlens_k", -99), "seqlens_k"),
    "a quantized cache": (lambda: made.group_query(1, past=3, k_quant_type="PER_TENSOR"), "k_quant_type"),
    "a cache of a window": (lambda: made.group_query(1, past=3, sliding_window_cache=1), "sliding_window_cache"),
    "no multiple of the shared heads": (lambda: made.group_query(1, kv_num_heads=17), "num_heads"),
    "no heads": (lambda: made.group_query(1, num_heads=0), "num_heads"),
    "positions beyond the table": (lambda: moved(made.rotary(1), "positions", 99), "position"),
    "rows beyond the table": (lambda: moved(made.table(1), "indices", 99), "index"),
    "a block of 24": (lambda: made.table(1, block_size=24), "block_size"),
    "a small block": (lambda: made.table(1, block_size=8), "block_size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_computed_is_a_named_error(name, tmp_path):
    build, part = REFUSED[name]
    model, sample = build()
    onnx.save(model, tmp_path / "model.onnx")
    done, _ = attempt(tmp_path / "model.onnx", sample, tmp_path)
    assert done.returncode == 1 and part in done.stderr, done.stderr


def damaged(model, sample, random):
    """A model with another attribute, other inputs or other shapes of what is fed."""
    changed, fed = onnx.ModelProto.FromString(model.SerializeToString()), dict(sample)
    (node,) = changed.graph.node
    for _ in range(int(random.integers(1, 3))):
        kind = random.integers(4)
        if kind == 0 and node.attribute:
            attribute = node.attribute[int(random.integers(len(node.attribute)))]
            attribute.i = int(random.choice([-(2**40), -1, 0, 1, 2, 3, 5, 7, 64, 2**31, 2**62]))
        elif kind == 1:
            node.input[int(random.integers(len(node.input)))] = str(random.choice(["", *node.input]))
        elif kind == 2:
            name = str(random.choice(list(fed)))
            shape = list(fed[name].shape) or [1]
            shape[int(random.integers(len(shape)))] = int(random.choice([0, 1, 2, 3, 17]))
            fed[name] = np.resize(fed[name], shape) if np.prod(shape) and fed[name].size else np.zeros(shape, fed[name].dtype)
        else:
            name = str(random.choice(list(fed)))
            if fed[name].dtype.kind == "i":
                fed[name] = fed[name] + np.array(random.choice([-(2**31), -1, 1, 2**30]), fed[name].dtype)
            elif fed[name].ndim > 1:
                fed[name] = fed[name][0]
    for value in changed.graph.input:
        # Sizes stay open; the number of axes is that of the sample.
        dims = value.type.tensor_type.shape
        del dims.dim[:]
        for axis in range(fed[value.name].ndim):
            dims.dim.add(dim_param=f"{value.name}_{axis}")
    return changed, fed


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_model_is_an_error_or_runs(name, tmp_path):
    random = np.random.default_rng(len(name))
    for seed in range(12):
        model, sample = CASES[name](seed % 4)
        changed, fed = damaged(model, sample, random)
        onnx.save(changed, tmp_path / "damaged.onnx")
        done, _ = attempt(tmp_path / "damaged.onnx", fed, tmp_path)
        assert done.returncode == 0 or "Error" in done.stderr, done.stderr
