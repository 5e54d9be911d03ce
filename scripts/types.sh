#!/usr/bin/env bash
# Checks the JSDoc types of the page, the scripts and their tests.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/node-modules.sh
[ -e pkg/threads/octet.d.ts ] || fail "the types of the wasm interface are not built yet: make build"
node_modules/.bin/tsc --project tsconfig.json
node_modules/.bin/tsc --project tsconfig.worker.json
