#!/usr/bin/env bash
# The oracle: the corpus through `octet` and ONNX Runtime. Arguments go to pytest; `-n 0 -s` prints what is measured, a file of tests/oracle
# runs that alone.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
python=$(scripts/venv.sh)
case " $* " in *" tests/oracle/"*) ;; *) set -- tests/oracle "$@" ;; esac
# Its workers fill the cores: sums of numpy on threads of their own would only wait for each other.
export OPENBLAS_NUM_THREADS=1
# What a test wrote goes when it has passed: all of it would be gigabytes, of three runs.
exec "$python" -m pytest -q -rsf -o tmp_path_retention_policy=failed --numprocesses 2 --dist loadscope --no-loadscope-reorder "$@"
