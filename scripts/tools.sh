#!/usr/bin/env bash
# Builds wasm-bindgen and its test runner into the cache, in the version that Cargo.toml pins.
. "$(dirname "$0")/environment.sh"

version=$(sed -n 's/^wasm-bindgen = "=\(.*\)"$/\1/p' "$checkout/Cargo.toml")
[ -n "$version" ] || fail "Cargo.toml pins no version of wasm-bindgen"
grep -qs "^\"wasm-bindgen-cli $version " "$OCTET_CACHE/tools/.crates.toml" && exit 0

# They run for seconds, so only the parts that process wasm are optimized, which halves the build
# time. The default feature is encryption, which the local test runner does not need.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0
thorough=()
for package in walrus wasmparser leb128 leb128fmt; do
    thorough+=(--config "profile.release.package.$package.opt-level=1")
done
say "building wasm-bindgen $version"
# Not --locked: its lock file names a crate that was withdrawn.
CARGO_TARGET_DIR=$OCTET_CACHE/tools/target cargo "${thorough[@]}" install --quiet --root "$OCTET_CACHE/tools" --version "=$version" \
    --no-default-features wasm-bindgen-cli --bin wasm-bindgen --bin wasm-bindgen-test-runner
