#!/usr/bin/env node
// Copies what the page uses from npm beside the wasm, as it is and with its licence: pkg/vendor/. No bundler, and
// nothing is fetched from elsewhere when the page runs.
//
//   node scripts/vendor.mjs

import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const to = join(checkout, 'pkg', 'vendor');

/** What is taken: package, its file, the name it is served under. */
const taken = [
  ['@dagrejs/dagre', 'dist/dagre.esm.js', 'dagre.js'],
  ['@dagrejs/dagre', 'LICENSE', 'dagre.LICENSE'],
];

mkdirSync(to, { recursive: true });
for (const [name, file, served] of taken) {
  const from = join(checkout, 'node_modules', name, file);
  if (!existsSync(from)) {
    console.error(`vendor: ${from} is missing; scripts/node-modules.sh installs it`);
    process.exit(1);
  }
  copyFileSync(from, join(to, served));
}
