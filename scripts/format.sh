#!/usr/bin/env bash
# Checks the format of every Rust file; --fix corrects it.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ "${1:-}" = --fix ] && check=() || check=(--check)
git ls-files -z '*.rs' | xargs -0 rustfmt "${check[@]}"
