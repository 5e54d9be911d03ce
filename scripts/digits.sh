#!/usr/bin/env bash
# Trains the digit model of the demo (about a minute), unless this version of the script has done
# so.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
out=$OCTET_CORPUS/digits
if cmp -s tests/oracle/digits.py "$out/digits.py" && [ -e "$out/digits.json" ]; then exit 0; fi
say "training the digit model"
python=$(scripts/venv.sh)
fresh=$(mktemp -d "$OCTET_CACHE/digits-XXXXXX")
"$python" tests/oracle/digits.py --out "$fresh" --corpus "$OCTET_CORPUS"
cp tests/oracle/digits.py "$fresh/"
mkdir -p "$OCTET_CORPUS"
rm -rf "$out"
mv "$fresh" "$out"
