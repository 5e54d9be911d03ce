#!/usr/bin/env bash
# Installs the npm packages of package-lock.json into the cache, by the lock's hash, and links them
# into the checkout.
. "$(dirname "$0")/environment.sh"
cd "$checkout"

hash=$(cat package.json package-lock.json | sha256sum | cut -c1-16)
kept=$OCTET_CACHE/node_modules/$hash
if [ ! -e "$kept/node_modules/.package-lock.json" ]; then
    say "installing the npm packages"
    fresh=$(mktemp -d "$OCTET_CACHE/npm-XXXXXX")
    cp package.json package-lock.json "$fresh/"
    # ONNX Runtime for Node would download its CUDA libraries, which nothing here uses.
    (cd "$fresh" && ONNXRUNTIME_NODE_INSTALL=skip npm ci --no-audit --no-fund --loglevel=error >&2)
    mkdir -p "$OCTET_CACHE/node_modules"
    rm -rf "$kept"
    mv "$fresh" "$kept"
fi

if [ -e node_modules ] && [ ! -L node_modules ]; then
    fail "node_modules is a folder of its own; remove it (rm -r node_modules), the build links the cached one there"
fi
ln -sfn "$kept/node_modules" node_modules
