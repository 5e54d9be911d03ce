#!/usr/bin/env node
// Copies the npm packages that the page uses, unchanged and with licences, to pkg/vendor/. There is
// no bundler, and the page loads nothing from other hosts.
//
//   node scripts/vendor.mjs

import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const to = join(checkout, 'pkg', 'vendor');

/** Package, its file, and the name under which it is served. */
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
