#!/usr/bin/env bash
# make dist: builds what is missing and leaves one folder that any static host can serve. DIST=… for another folder.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
scripts/tools.sh wasm-bindgen-cli
scripts/with-environment.sh node scripts/wasm.mjs build
scripts/node-modules.sh
scripts/with-environment.sh node scripts/vendor.mjs
scripts/demos.sh
exec scripts/with-environment.sh node scripts/dist.mjs ${DIST:+--out "$DIST"}
