#!/usr/bin/env bash
# make test-layers: runs the tests of the crates that need no engine, in seconds after a change in one
# of them. It compiles no tract. Arguments go to cargo: `scripts/test-layers.sh FILTER`.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
. scripts/environment.sh # the toolchain is chosen by now
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --profile layers --locked "${native_packages[@]}" --exclude octet --exclude octet-runtime --exclude octet-tune "$@" 2>&1 | tee "$log" || status=$?
awk '/^test result: / { passed += $4; failed += $6 } END { printf "%d passed, %d failed\n", passed, failed }' "$log"
exit "$status"
