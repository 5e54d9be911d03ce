#!/usr/bin/env bash
# make serve: builds missing parts of the variant for current browsers and serves the page.
# VARIANTS=all also builds the one for older browsers. The demos are created while the page is
# already served.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
. scripts/environment.sh # the toolchain is chosen by now
read -ra variants <<<"${VARIANTS:-threads}"
say "1 of 2: building the page (from nothing 3 to 6 minutes on two cores; seconds where nothing changed)"
scripts/page.sh "${variants[@]}"

say "2 of 2: serving it; the demos are made meanwhile"
# Each in a process group of its own, which ends with this script.
set -m
nice scripts/demos.sh </dev/null >&2 &
demos=$!
node scripts/serve.mjs --port "${PORT:-8000}" --demo "$OCTET_DEMO" </dev/null &
server=$!
set +m
trap 'kill -- "-$demos" "-$server" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
wait "$server"
