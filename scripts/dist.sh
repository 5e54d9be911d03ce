#!/usr/bin/env bash
# make dist: builds missing parts and creates one folder that any static host can serve. DIST=…
# selects another folder.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
. scripts/environment.sh # the toolchain is chosen by now
say "1 of 2: building the page (from nothing 3 to 6 minutes for each variant on two cores)"
scripts/page.sh all
say "2 of 2: the demos and the folder"
scripts/demos.sh
exec node scripts/dist.mjs ${DIST:+--out "$DIST"}
