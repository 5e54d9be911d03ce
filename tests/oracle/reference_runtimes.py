"""The reference runtimes, ONNX Runtime native and in JavaScript, and measures that compare outputs.
"""

import json
import logging
import math
import subprocess
import tempfile
from pathlib import Path

import exact_products
import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

CHECKOUT = Path(__file__).resolve().parents[2]


def session(model, optimize=True):
    """A session of a file or model on one thread, exact on any processor. Without optimisation, QDQ
    is computed literally.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if exact_products.saturates():
        model = exact_products.unsigned(model)
    if not optimize and many_small(model):
        options.enable_mem_reuse = False
    given = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def many_small(model):
    """True for graphs of thousands of small nodes, like unrolled LSTMs. ONNX Runtime takes seconds
    for their memory plan, which is not needed.
    """
    model = model if isinstance(model, onnx.ModelProto) else onnx.load(model)
    return len(model.graph.node) > 2000 and model.ByteSize() < 20 << 20


def run(path, samples, optimize=True):
    """The outputs for each sample, each a dictionary by name."""
    it = session(path, optimize)
    names = [output.name for output in it.get_outputs()]
    return [dict(zip(names, it.run(names, sample))) for sample in samples]


def save_samples(folder, samples):
    """Writes samples into a folder in Octet's format, in order."""
    folder.mkdir(exist_ok=True)
    for index, sample in enumerate(samples):
        np.savez(folder / f"{index:03}.npz", **sample)
    return folder


def quantize(program, folder, source, given, *options):
    """Octet's files for a model and samples, if any: the prepared float model and the quantized
    one. Ranges use minmax, as ONNX Runtime does, unless a method or a document is given.
    """
    prepared, target = folder / "prepared.onnx", folder / "octet.onnx"
    calibration = ["--calib", save_samples(folder / "samples", given)] if given else []
    if given and not {"--method", "--config"} & set(options):
        options = (*options, "--method", "minmax")
    command = [program, "quantize", source, *calibration, "--out", target, "--save-prepared", prepared, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return prepared, target


def load_samples(folder):
    """All samples of a folder, in order."""
    found = []
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path) as arrays:
            found.append({name: arrays[name] for name in arrays.files})
    return found


def run_web(path, sample):
    """The outputs of one sample in onnxruntime-web, one thread, in node; a dictionary by name."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for index, (name, array) in enumerate(sample.items()):
            file = Path(folder) / f"input_{index}.bin"
            file.write_bytes(np.ascontiguousarray(array).tobytes())
            inputs.append({"name": name, "type": array.dtype.name, "dims": array.shape, "file": str(file)})
        outputs = _web({"model": str(path), "inputs": inputs, "folder": folder})["outputs"]
        return {output["name"]: np.fromfile(output["file"], output["type"]).reshape(output["dims"]) for output in outputs}


def load_web(paths):
    """Output names of each model in onnxruntime-web under node; fails if a model is refused."""
    told = _web({"models": [str(path) for path in paths]})
    refused = [f"{path}: {one['error']}" for path, one in zip(paths, told) if "error" in one]
    assert not refused, "onnxruntime-web refused\n" + "\n".join(refused)
    return [one["outputs"] for one in told]


def _web(job):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job))
        script = CHECKOUT / "tests" / "oracle" / "run_web.mjs"
        done = subprocess.run(["node", script, file], capture_output=True, text=True, check=False, cwd=CHECKOUT)
        assert done.returncode == 0, f"onnxruntime-web failed:\n{done.stderr[-3000:]}"
        return json.loads(done.stdout.strip().splitlines()[-1])


def sqnr(reference, found):
    """Signal to quantization noise over all the values, in dB; no noise is 200."""
    signal = noise = 0.0
    for x, y in zip(reference, found, strict=True):
        assert np.isfinite(y).all(), "an output is not finite"
        x = np.ravel(x).astype(np.float64)
        apart = x - np.ravel(y)
        signal, noise = signal + x @ x, noise + apart @ apart
    return 200.0 if noise == 0 else min(200.0, 10 * np.log10(max(signal, 1e-60) / noise))


def beyond_half(integers, reals, scale, zero):
    """Excess over half a step in the distance of each integer from the real that was rounded, in
    steps.
    """
    ends = np.iinfo(zero.dtype)
    places = np.clip(np.ravel(reals).astype(np.float64) / scale + zero, ends.min, ends.max)
    return np.abs(np.ravel(integers) - places) - 0.5


def slack(scale, zero):
    """Part of a step by which the order of float sums may move a real and so change its rounding.

    Each of K additions in 32 bits errs by half a unit in the last place of the partial sum at most,
    in any direction: together by a deviation of sqrt(K / 12) units. For the largest K here, 4608,
    and partial sums that fill the range of the integers, that is 20 units of 2^-24 of that range.
    Allowed are 256 (2^-16 of the range): twelve deviations, which leaves room for terms that cancel
    out. Functions whose values lie around 1 (Sigmoid, Softmax, Erf) err by units of 2^-24, whatever
    the scale; four are allowed, up to a step.
    """
    return 2.0 ** (8 * zero.dtype.itemsize - 16) + min(1.0, 2.0**-22 / float(scale))


def may_move(reference, found, other, times=1):
    """Tolerance in dB of a figure of `found` against the reference on another processor.

    `other` is the same model by another engine, or by the same in another order. Noise is a vector:
    by the triangle inequality its length changes by the distance of the two at most. So a figure of
    q dB moves by no more than this, where the two are b dB apart. A third engine may be farther
    away than the other is: `times` as far.
    """
    apart = sqnr(reference, found) - sqnr(found, other)
    return 20 * np.log10(1 + times * 10 ** (apart / 20))


def by_chance(of):
    """Number of answers that the order of sums may change, all in the same direction.

    Two of some 1,500 answers of the tasks differed between two engines. By twice that chance, 1 in
    375 an answer, more than this many of them turn once in 10,000 processors (binomial).
    """
    chance, turned, more = 1 / 375, 0, 1.0
    while True:
        more -= math.comb(of, turned) * chance**turned * (1 - chance) ** (of - turned)
        if more < 1e-4:
            return turned
        turned += 1


def agreement(reference, found, axis=-1):
    """Share of positions with the same largest entry along the axis."""
    same = [np.argmax(a, axis) == np.argmax(b, axis) for a, b in zip(reference, found)]
    return float(np.mean(np.concatenate([np.ravel(s) for s in same])))


class _Reader(CalibrationDataReader):
    def __init__(self, samples):
        self._samples = iter(samples)

    def get_next(self):
        return next(self._samples, None)


def ort_prepare(path, out):
    """ONNX Runtime's preparation (shapes, folding), written to `out`."""
    quant_pre_process(str(path), str(out), skip_symbolic_shape=True, verbose=0)


def ort_quantize(path, out, samples, method="minmax"):
    """ONNX Runtime's static quantization with Octet's default settings."""
    method = {m.name.lower(): m for m in CalibrationMethod}[method]
    logging.getLogger().setLevel(logging.ERROR)
    quantize_static(
        str(path), str(out), _Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, calibrate_method=method)


def ort_quantize_or_prepared(source, prepared, out, samples, method="minmax"):
    """ONNX Runtime's model of `source`, or of `prepared` if it fails at that, or below opset 13,
    where it writes per-channel scales that it can't load. The second result is true for
    `source`.
    """
    sets = onnx.load(source, load_external_data=False).opset_import
    if all(one.version >= 13 for one in sets if one.domain in ("", "ai.onnx")):
        own = out.with_name("prepared by ONNX Runtime.onnx")
        try:
            ort_prepare(source, own)
            ort_quantize(own, out, samples, method)
            session(out)
            return True
        except Exception:  # whatever it is that it fails by
            pass
        finally:
            own.unlink(missing_ok=True)
    ort_quantize(prepared, out, samples, method)
    session(out)
    return False
