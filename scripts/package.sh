#!/usr/bin/env bash
# make package: builds the wasm variants that are missing and makes the npm package, a tarball. OUT=…
# selects another folder.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
. scripts/environment.sh # the toolchain is chosen by now
say "1 of 2: the wasm builds (from nothing 3 to 6 minutes for each variant on two cores)"
scripts/page.sh all
say "2 of 2: the package"
exec node scripts/package.mjs ${OUT:+--out "$OUT"}
