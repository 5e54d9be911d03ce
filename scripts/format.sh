#!/usr/bin/env bash
# Checks the format of every Rust file, and the list of files in index.html; --fix corrects both.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ "${1:-}" = --fix ] && check=() || check=(--check)
git ls-files -z '*.rs' | xargs -0 rustfmt "${check[@]}"
node scripts/preload.mjs "${check[@]}"
