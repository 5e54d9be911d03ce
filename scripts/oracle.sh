#!/usr/bin/env bash
# The oracle: runs the corpus through `octet` and ONNX Runtime. Arguments go to pytest: `-n 0 -s`
# prints measurements, a file of tests/oracle runs alone.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
python=$(scripts/venv.sh)
case " $* " in *" tests/oracle/"*) ;; *) set -- tests/oracle "$@" ;; esac
# Its workers fill the cores, so threads inside numpy would only wait for each other.
export OPENBLAS_NUM_THREADS=1
# Files of passed tests are deleted; those of three runs would be gigabytes.
exec "$python" -m pytest -q -rsf -o tmp_path_retention_policy=failed --numprocesses 2 --dist loadscope --no-loadscope-reorder "$@"
