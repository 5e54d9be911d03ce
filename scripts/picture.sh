#!/usr/bin/env bash
# make picture: the README's picture, taken from the page by its own test and put into docs. 256 colours make it a third as large.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ -e pkg/threads/octet_bg.wasm ] || fail "the page is not built yet: make build"
scripts/node-modules.sh
node scripts/vendor.mjs
scripts/corpus.sh
node --test --test-reporter=spec tests/e2e/picture.test.mjs
"$(scripts/venv.sh)" - "$OCTET_E2E_OUT/page.png" docs/page.png <<'PYTHON'
import sys
from PIL import Image

with Image.open(sys.argv[1]) as taken:
    taken.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(sys.argv[2], optimize=True)
PYTHON
ls -l docs/page.png
