#!/usr/bin/env bash
# Creates a Python environment in the cache, again when its pinned requirements change. Prints the
# path of its python. `venv.sh` is that of the oracle; `venv.sh ray` that of cluster/; `venv.sh litert`
# that of a bench.
. "$(dirname "$0")/environment.sh"
case ${1:-oracle} in
    oracle) requirements=$checkout/tests/oracle/requirements.txt venv=$OCTET_CACHE/venv ;;
    ray) requirements=$checkout/cluster/requirements.txt venv=$OCTET_CACHE/venv-ray ;;
    litert) requirements=$checkout/benches/litert/requirements.txt venv=$OCTET_CACHE/venv-litert ;;
    *) fail "there is no Python environment $1" ;;
esac
[ -e "$requirements" ] || fail "$requirements is missing"

if ! cmp -s "$requirements" "$venv/requirements.txt" || ! "$venv/bin/python" -c '' 2>/dev/null; then
    say "making the Python environment of $requirements"
    rm -rf "$venv"
    python3 -m venv "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2
    cp "$requirements" "$venv/requirements.txt"
fi
printf '%s\n' "$venv/bin/python"
