#!/usr/bin/env node
// Copies the npm packages that the page uses, unchanged and with licences, to pkg/vendor/. There is
// no bundler, and the page loads nothing from other hosts.
//
//   node scripts/vendor.mjs

import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const to = join(checkout, 'pkg', 'vendor');

/** Package, its file, and the name under which it is served. */
const taken = [
  ['@dagrejs/dagre', 'dist/dagre.esm.js', 'dagre.js'],
  ['@dagrejs/dagre', 'LICENSE', 'dagre.LICENSE'],
  // For the check in the real runtime, which loads them when it begins: WASM alone, then the build for WebGPU and WebNN.
  ...['ort.wasm.min.mjs', 'ort-wasm-simd-threaded.mjs', 'ort-wasm-simd-threaded.wasm', 'ort.webgpu.min.mjs', 'ort-wasm-simd-threaded.asyncify.mjs', 'ort-wasm-simd-threaded.asyncify.wasm'].map((file) => ['onnxruntime-web', `dist/${file}`, `onnxruntime-web/${file}`]),
];

mkdirSync(to, { recursive: true });
for (const [name, file, served] of taken) {
  const from = join(checkout, 'node_modules', name, file);
  if (!existsSync(from)) {
    console.error(`vendor: ${from} is missing; scripts/node-modules.sh installs it`);
    process.exit(1);
  }
  mkdirSync(dirname(join(to, served)), { recursive: true });
  copyFileSync(from, join(to, served));
}

// The package of onnxruntime-web names its licence, and has no file with its text.
const terms = [
  'MIT License', 'Copyright (c) Microsoft Corporation',
  `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:`,
  'The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.',
  'THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.',
];
writeFileSync(join(to, 'onnxruntime-web', 'LICENSE'), `${terms.join('\n\n')}\n`);
