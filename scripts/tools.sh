#!/usr/bin/env bash
# The pinned cargo tools, built into the cache: scripts/tools.sh TOOL...
. "$(dirname "$0")/environment.sh"

version_of() {
    case $1 in
    wasm-bindgen-cli) echo 0.2.130 ;; # exactly that of the crate in Cargo.toml
    wasm-pack) echo 0.15.1 ;;
    geckodriver) echo 0.37.1 ;;
    *) fail "no pinned version for $1" ;;
    esac
}

# They run for seconds: made less thoroughly they take three quarters of the time to build, and wasm-bindgen a second longer for our wasm.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0

for tool in "$@"; do
    version=$(version_of "$tool")
    grep -qs "^\"$tool $version " "$OCTET_CACHE/tools/.crates.toml" && continue
    say "building $tool $version"
    # Not --locked: wasm-bindgen-cli's lock names a crate that is gone.
    CARGO_TARGET_DIR=$OCTET_CACHE/tools/target cargo install --quiet --root "$OCTET_CACHE/tools" --version "=$version" "$tool"
done
