#!/usr/bin/env bash
# The oracle: the corpus through `octet` and ONNX Runtime. Arguments go to pytest; `-n 0 -s` prints what is measured.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
python=$(scripts/venv.sh)
exec "$python" -m pytest -q -rsf --numprocesses 2 --dist loadgroup tests/oracle "$@"
