#!/usr/bin/env bash
# make lint: format, words, structure, types, documentation and, where the compiler has it, clippy. make format: --fix.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ "${1:-}" = --fix ] && exec scripts/format.sh --fix
scripts/setup.sh test
scripts/format.sh
node scripts/prose.mjs
node scripts/structure.mjs
scripts/types.sh # wants pkg/: make build
RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --workspace --locked
have cargo-clippy || fail "no clippy: Debian's compiler has none; use a rustup toolchain for it"
# A target folder of its own: check builds share nothing with real ones, and clippy needs its own
# compiler.
CARGO_TARGET_DIR=$OCTET_CACHE/target/clippy cargo-clippy clippy --locked --all-targets --features cli "${native_packages[@]}" -- --deny warnings
