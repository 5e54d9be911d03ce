"""Memory of streamed conversions: a model of 1 GB takes less than 300 MiB."""

import json
import tempfile
from pathlib import Path

import onnx
from large_llama import shape, write_large
from process_use import measured

LAYERS, VOCABULARY = 2, 16000
PEAK_BYTES = 300 << 20


def test_a_gigabyte_streams_through_300_mebibytes(program, tmp_path):
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        source, out = Path(folder) / "m.onnx", Path(folder) / "q.onnx"
        write_large(source, shape(LAYERS, VOCABULARY))
        before = source.with_name("m.onnx_data").stat().st_size
        assert before > 1e9
        settings = {"scheme": "blocks", "blocks": {"bits": 4, "size": 32, "embeddings": True}}
        used, _ = measured([program, "quantize", source, "--stream", "--config", json.dumps(settings), "--out", out])
        assert 0 < used["peak_bytes"] < PEAK_BYTES, f"{used['peak_bytes'] / 2**20:.0f} MiB"
        # Four bits and a scale of 32 for each block of 32.
        assert out.with_name("q.onnx_data").stat().st_size < before * 5 / 32 * 1.01
        operators = [node.op_type for node in onnx.load(out, load_external_data=False).graph.node]
        assert operators.count("MatMulNBits") == 7 * LAYERS + 1
        assert operators.count("GatherBlockQuantized") == 1
