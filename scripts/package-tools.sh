#!/usr/bin/env bash
# Installs the npm packages of a folder into the cache, by the lock's hash, and prints where: the
# bundlers of packages/npm/tools unless an argument names another folder.
. "$(dirname "$0")/environment.sh"
cd "$checkout/${1:-packages/npm/tools}"

hash=$(cat package.json package-lock.json | sha256sum | cut -c1-16)
kept=$OCTET_CACHE/package-tools/$hash
if [ ! -e "$kept/node_modules/.package-lock.json" ]; then
    say "installing the npm packages of ${1:-packages/npm/tools}"
    fresh=$(mktemp -d "$OCTET_CACHE/npm-XXXXXX")
    cp package.json package-lock.json "$fresh/"
    (cd "$fresh" && npm ci --no-audit --no-fund --loglevel=error >&2)
    mkdir -p "$OCTET_CACHE/package-tools"
    rm -rf "$kept"
    mv "$fresh" "$kept"
fi
printf '%s\n' "$kept"
