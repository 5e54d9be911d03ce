#!/usr/bin/env bash
# make picture: takes the README's pictures with a test of the page and puts them into docs. 256
# colours reduce them to a third.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ -e pkg/threads/octet_bg.wasm ] || fail "the page is not built yet: make build"
scripts/node-modules.sh
node scripts/vendor.mjs
scripts/corpus.sh
node --test --test-reporter=spec tests/e2e/picture.test.mjs
"$(scripts/venv.sh)" - "$OCTET_E2E_OUT" docs <<'PYTHON'
import sys
from pathlib import Path
from PIL import Image

for name in ("page.png", "layers.png"):
    with Image.open(Path(sys.argv[1]) / name) as taken:
        taken.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(Path(sys.argv[2]) / name, optimize=True)
PYTHON
ls -l docs/page.png docs/layers.png
