#!/usr/bin/env bash
# make build: the command line and both wasm variants, without serving or testing anything.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
scripts/tools.sh wasm-bindgen-cli
scripts/with-environment.sh cargo build --release --locked --features cli
scripts/with-environment.sh node scripts/wasm.mjs build
scripts/node-modules.sh
scripts/with-environment.sh node scripts/vendor.mjs
say "built: $OCTET and pkg/"
