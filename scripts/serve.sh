#!/usr/bin/env bash
# make serve: builds what is missing and serves the page.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
scripts/tools.sh wasm-bindgen-cli
scripts/with-environment.sh node scripts/wasm.mjs build
scripts/node-modules.sh
scripts/with-environment.sh node scripts/vendor.mjs
scripts/with-environment.sh node scripts/icons.mjs
scripts/demos.sh
exec scripts/with-environment.sh node scripts/serve.mjs --port "${PORT:-8000}" --demo "$OCTET_DEMO"
