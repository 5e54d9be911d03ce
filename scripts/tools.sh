#!/usr/bin/env bash
# wasm-bindgen and its test runner, built into the cache in the version of the crate that Cargo.toml pins.
. "$(dirname "$0")/environment.sh"

version=$(sed -n 's/^wasm-bindgen = "=\(.*\)"$/\1/p' "$checkout/Cargo.toml")
[ -n "$version" ] || fail "Cargo.toml pins no version of wasm-bindgen"
grep -qs "^\"wasm-bindgen-cli $version " "$OCTET_CACHE/tools/.crates.toml" && exit 0

# They run for seconds, so only what works through the whole wasm is optimized at all: half the time to build.
# The default feature is encryption, which the test runner has no use for on this machine.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0
thorough=()
for package in walrus wasmparser leb128 leb128fmt; do
    thorough+=(--config "profile.release.package.$package.opt-level=1")
done
say "building wasm-bindgen $version"
# Not --locked: its lock names a crate that is gone.
CARGO_TARGET_DIR=$OCTET_CACHE/tools/target cargo "${thorough[@]}" install --quiet --root "$OCTET_CACHE/tools" --version "=$version" \
    --no-default-features wasm-bindgen-cli --bin wasm-bindgen --bin wasm-bindgen-test-runner
