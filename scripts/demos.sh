#!/usr/bin/env bash
# Downloads the files of the demos, trains the digit model (about a minute, once), and creates the
# folder behind /demo/. A demo that fails is reported and left out. Each is available as soon as it
# is complete, as `make serve` serves meanwhile.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
without() { say "demo: $1 is not offered: $2"; }
offer() { node scripts/demo.mjs; }

[ ! -d "$OCTET_CORPUS" ] || offer # what the cache has
if python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    { scripts/corpus.sh efficientnet_lite0 photos >&2 && offer; } || without "the one with photos" "its model or its photos could not be fetched (above)"
    { scripts/corpus.sh ppocr_rec >&2 && offer; } || without "the one that reads text" "its model could not be fetched (above)"
    { scripts/digits.sh && offer; } || without "the one with digits" "its model could not be trained (above)"
else
    without "what is not in the cache yet" "demos are made with Python 3.11 or newer and its venv, which is not here"
fi
