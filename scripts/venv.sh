#!/usr/bin/env bash
# Creates the oracle's Python environment, again when its pinned requirements change. Prints the
# path of its python.
. "$(dirname "$0")/environment.sh"
requirements=$checkout/tests/oracle/requirements.txt
[ -e "$requirements" ] || fail "tests/oracle/requirements.txt is missing"

venv=$OCTET_CACHE/venv
if ! cmp -s "$requirements" "$venv/requirements.txt" || ! "$venv/bin/python" -c '' 2>/dev/null; then
    say "making the Python environment"
    rm -rf "$venv"
    python3 -m venv "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2
    cp "$requirements" "$venv/requirements.txt"
fi
printf '%s\n' "$venv/bin/python"
