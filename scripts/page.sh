#!/usr/bin/env bash
# Builds the page's files into pkg/: scripts/page.sh VARIANT... (of wasm-pack.toml; `all` for every
# one). cargo shows progress on a terminal. wasm-bindgen is built and the npm packages are
# downloaded in parallel, as cargo leaves a core idle while it compiles tract-core.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ $# -gt 0 ] || fail "scripts/page.sh needs the names of variants, or all"
case " $* " in *" all "* | *" tokenizer "*) ;; *) set -- "$@" tokenizer ;; esac # every browser loads it

log=$OCTET_CACHE/logs/page-tools.log
mkdir -p "$OCTET_CACHE/logs"
beside() { scripts/tools.sh && scripts/node-modules.sh && node scripts/vendor.mjs && node scripts/icons.mjs; }
set -m # a process group of its own, so that all of it ends with this
beside >"$log" 2>&1 </dev/null &
tools=$!
set +m
trap 'kill -- "-$tools" 2>/dev/null || true' EXIT

node scripts/wasm.mjs compile "$@"
[ -x "$OCTET_CACHE/tools/bin/wasm-bindgen" ] || say "waiting for wasm-bindgen and npm's packages (a minute at most); their log is $log"
if ! wait "$tools"; then
    cat "$log" >&2
    fail "a build tool could not be built (see above)"
fi
node scripts/wasm.mjs build "$@"
node scripts/wasm.mjs tidy
