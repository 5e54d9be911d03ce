#!/usr/bin/env bash
# make build: builds the command line and every wasm variant.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
. scripts/environment.sh # the toolchain is chosen by now
say "1 of 2: the command line (from nothing 4 to 8 minutes on two cores)"
cargo build --release --locked --features cli
say "2 of 2: the page (from nothing 3 to 6 minutes for each variant)"
scripts/page.sh all
say "built: $OCTET and pkg/"
