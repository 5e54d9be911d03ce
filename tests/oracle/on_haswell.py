"""Runs models with ONNX Runtime: `on_haswell.py MODEL.onnx IN.npz OUT.npz …`, three names a model.

The tests start it under qemu, as a processor without VNNI.
"""

import sys

import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(3)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
jobs = sys.argv[1:]
for model, given, made in zip(jobs[::3], jobs[1::3], jobs[2::3]):
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    np.savez(made, **dict(zip(names, session.run(None, dict(np.load(given))))))
