#!/usr/bin/env bash
# The oracle: the corpus through `octet` and ONNX Runtime. Arguments go to pytest.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
python=$(scripts/venv.sh)
exec "$python" -m pytest -q -rsf tests/oracle "$@"
