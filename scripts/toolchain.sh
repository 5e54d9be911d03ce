#!/usr/bin/env bash
# Selects the compiler once and records it, since another compiler means building everything again.
#
#   rustup   the person's own rustup, where it has the library sources or can download them
#   debian   Debian's rustc-web with its library sources: what a closed network with a Debian mirror has
#
# In this order. If neither is complete, Debian's packages are needed, which scripts/setup.sh
# installs. `OCTET_TOOLCHAIN=debian|rustup` overrides the choice.
. "$(dirname "$0")/environment.sh"

debian_complete() {
    [ -x /usr/bin/cargo ] && have "$OCTET_WASM_LINKER" &&
        at_least "$minimum_rust" "$(rust_version /usr/bin/rustc)" &&
        [ -e "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/std/Cargo.toml" ]
}

rustup_usable() { have rustup && have cargo && at_least "$minimum_rust" "$(rust_version rustc)"; }

rustup_complete() {
    rustup_usable && [ "$(rustc --print sysroot)" != /usr ] &&
        [ -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library/std/Cargo.toml" ]
}

complete_rustup() {
    rustup_usable || return 1
    say "asking rustup for the standard library's sources"
    timeout 300 rustup component add rust-src >&2
}

case $OCTET_TOOLCHAIN in
debian) debian_complete || exit 3 ;;
rustup) rustup_complete || complete_rustup || fail "rustup can't fetch what the wasm builds need; try OCTET_TOOLCHAIN=debian" ;;
'')
    if rustup_complete || complete_rustup; then
        OCTET_TOOLCHAIN=rustup
    elif debian_complete; then
        OCTET_TOOLCHAIN=debian
    elif [ -e /etc/debian_version ]; then
        exit 3 # Debian's packages are wanted
    else
        fail "needs Rust $minimum_rust or newer with rustup: see docs/building.md"
    fi
    printf '%s\n' "$OCTET_TOOLCHAIN" >"$OCTET_CACHE/toolchain"
    say "compiler: $OCTET_TOOLCHAIN"
    ;;
*) fail "OCTET_TOOLCHAIN is \"$OCTET_TOOLCHAIN\": say debian or rustup" ;;
esac
