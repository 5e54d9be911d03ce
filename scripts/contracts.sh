#!/usr/bin/env bash
# make contracts: writes what is generated from the Rust types. That is docs/settings.schema.json, the
# tables of docs/settings.md, www/types.d.ts and www/methods.js. `make test` fails where they differ.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
OCTET_WRITE_CONTRACTS=1 scripts/with-environment.sh \
    cargo test --release --locked --features cli --test contracts --quiet
