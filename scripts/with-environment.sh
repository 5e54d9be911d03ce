#!/usr/bin/env bash
# Runs a command with the cache folder, compiler and tools of the build: scripts/with-environment.sh cargo build …
. "$(dirname "$0")/environment.sh"
cd "$checkout"
exec "$@"
