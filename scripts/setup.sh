#!/usr/bin/env bash
# Checks the required system packages: scripts/setup.sh serve|test. On Debian, root gets missing
# ones installed; other users get the exact command. Existing packages are not touched.
. "$(dirname "$0")/environment.sh"
purpose=${1:?serve or test}

packages=() commands=() missing=()
need() { # need PROGRAM PACKAGE...
    have "$1" && return
    missing+=("$1")
    packages+=("${@:2}")
}

need cc gcc libc6-dev
if ! have node || ! node -e 'process.exit(parseInt(process.version.slice(1)) < 18 ? 1 : 0)'; then
    missing+=("node 18 or newer")
    packages+=(nodejs)
fi
need npm npm
if [ "$purpose" = test ]; then
    # Without a toolchain, rustup leaves a rustfmt that can't run.
    if ! rustfmt --version >/dev/null 2>&1; then
        missing+=(rustfmt)
        packages+=(rustfmt-web)
    fi
    need chromium chromium
    need firefox-esr firefox-esr
    # Runs ONNX Runtime on a processor without VNNI, for tests/oracle/test_processor.py.
    need qemu-x86_64 qemu-user
    if ! have python3 || ! python3 -c 'import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        missing+=("python3 3.11 or newer with venv")
        packages+=(python3 python3-venv)
    fi
fi

choice=0
"$checkout/scripts/toolchain.sh" || choice=$?
if [ "$choice" -eq 3 ]; then
    missing+=("Rust $minimum_rust or newer with its library sources")
    packages+=("${debian_packages[@]}")
elif [ "$choice" -ne 0 ]; then
    exit "$choice"
fi

if [ "${#packages[@]}" -gt 0 ]; then
    say "missing: $(printf '%s, ' "${missing[@]}" | sed 's/, $//')"
    if ! have apt-get; then
        fail "install these and run again (their Debian packages are: ${packages[*]})"
    elif [ "$(id -u)" -ne 0 ]; then
        commands+=("sudo apt-get update" "sudo apt-get install --yes --no-install-recommends ${packages[*]}")
    else
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -qq "${packages[@]}"
        [ "$choice" -eq 0 ] || "$checkout/scripts/toolchain.sh" || fail "Debian's compiler is still not complete"
    fi
fi

if [ "${#commands[@]}" -gt 0 ]; then
    say "Run this once, then the same command again:"
    printf '\n' >&2
    printf '    %s\n' "${commands[@]}" >&2
    printf '\n' >&2
    exit 1
fi
