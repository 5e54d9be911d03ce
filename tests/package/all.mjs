// The tests of the npm package, from its tarball alone: `node --test tests/package/all.mjs`.
// `OCTET_PACKAGE` names the tarball; without it, one is made of the wasm that is built.

import { readdirSync } from 'node:fs';

for (const file of readdirSync(new URL('.', import.meta.url)).sort()) {
  if (file.endsWith('.test.mjs')) await import(new URL(file, import.meta.url).href);
}
