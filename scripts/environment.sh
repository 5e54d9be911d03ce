# Sourced by every script here: where things are kept, which compiler is used, what is pinned.
# shellcheck shell=bash
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The cache: everything that a build creates or downloads and that a new checkout can reuse.
export OCTET_CACHE=${OCTET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/octet}
export OCTET_CORPUS=${OCTET_CORPUS:-$OCTET_CACHE/corpus}
export OCTET_DEMO=${OCTET_DEMO:-$OCTET_CACHE/demo}
export OCTET_E2E_OUT=${OCTET_E2E_OUT:-$OCTET_CACHE/e2e}
export OCTET=$OCTET_CACHE/target/release/octet
export CARGO_TARGET_DIR=$OCTET_CACHE/target   # the native build; the wasm variants have folders inside it
mkdir -p "$OCTET_CACHE" "$OCTET_E2E_OUT"

# All of tract depends on these packages, and cargo compares file times, which are new in every
# checkout. So tract would be compiled again in each. Hence their files get the time at which the
# cache last saw them change.
for package in rustfft inventory; do
    content=$(cat "$checkout/patches/$package"/* | sha256sum)
    [ "$(cat "$OCTET_CACHE/$package" 2>/dev/null || true)" = "$content" ] || printf '%s\n' "$content" >"$OCTET_CACHE/$package"
    touch -r "$OCTET_CACHE/$package" "$checkout/patches/$package"/*
done

# Every crate but those for browsers. The list is cargo's own, so a new crate is in it.
native_packages=(--workspace --exclude octet-wasm-tests --exclude octet-kernel-bench --exclude octet-node)

# The oldest compiler that builds this crate and its dependencies.
minimum_rust=1.91

# Debian's compiler and its linker (scripts/toolchain.sh selects them).
debian_packages=(rustc-web cargo-web rust-web-src lld-22)
export OCTET_WASM_LINKER=wasm-ld-22

# The choice of scripts/toolchain.sh.
if [ -z "${OCTET_TOOLCHAIN:-}" ] && [ -r "$OCTET_CACHE/toolchain" ]; then
    OCTET_TOOLCHAIN=$(cat "$OCTET_CACHE/toolchain")
fi
export OCTET_TOOLCHAIN=${OCTET_TOOLCHAIN:-}
if [ "$OCTET_TOOLCHAIN" = debian ]; then
    # Only the compiler comes from /usr/bin; python and node stay the user's.
    mkdir -p "$OCTET_CACHE/debian-bin"
    for program in cargo rustc rustdoc rustfmt; do
        [ -x "/usr/bin/$program" ] || continue # rustfmt may be rustup's
        [ "$(readlink "$OCTET_CACHE/debian-bin/$program" || true)" = "/usr/bin/$program" ] ||
            ln -sfn "/usr/bin/$program" "$OCTET_CACHE/debian-bin/$program"
    done
    PATH=$OCTET_CACHE/debian-bin:$PATH
fi
export PATH=$OCTET_CACHE/tools/bin:$PATH

say() { printf '%s\n' "$*" >&2; }
fail() { say "octet: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# at_least 1.91 1.96.0: succeeds if the second version is not older than the first.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
rust_version() { "$1" --version 2>/dev/null | awk '{ print $2 }'; }
