#!/usr/bin/env node
// Creates one folder that any static host can serve, from any path: the page, both wasm builds, the
// demo if there is one, and a service worker that lists the files (docs/hosting.md).
//
//   node scripts/dist.mjs [--out DIR] [--demo DIR] [--hub ORIGIN] [--embedder ORIGIN]...

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeIcons } from './icons.mjs';
import { defaultHub, forHost, policy, policyOf } from './policies.mjs';
import { isolation } from './serve.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const cache = process.env.OCTET_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'octet');
const { values } = parseArgs({ options: {
  out: { type: 'string', default: join(cache, 'dist') },
  hub: { type: 'string', default: process.env.OCTET_HUB || defaultHub },
  embedder: { type: 'string', multiple: true, default: (process.env.OCTET_EMBEDDERS ?? '').split(/\s+/).filter(Boolean) },
  demo: { type: 'string', default: process.env.OCTET_DEMO ?? join(cache, 'demo') },
} });
const out = values.out;

for (const needed of ['pkg/threads/octet_bg.wasm', 'pkg/baseline/octet_bg.wasm', 'pkg/tokenizer/tokenizer_bg.wasm', 'pkg/vendor/dagre.js', 'pkg/vendor/onnxruntime-web/ort.wasm.min.mjs']) {
  if (!existsSync(join(checkout, needed))) {
    console.error(`dist: ${needed} is not built yet; make build does it`);
    process.exit(1);
  }
}
// The folder is emptied only if an earlier call created it, so a mistyped one is not lost.
if (existsSync(out) && readdirSync(out).length > 0 && !existsSync(join(out, 'sw-files.js'))) {
  console.error(`dist: ${out} is not empty and not from an earlier make dist; choose another folder`);
  process.exit(1);
}
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const part of ['www', 'pkg', 'sw.js', 'manifest.webmanifest']) {
  cpSync(join(checkout, part), join(out, part), { recursive: true, filter: (file) => !file.endsWith('.d.ts') && file !== join(checkout, 'pkg', 'node') });
}
makeIcons(join(out, 'pkg', 'icons'));
if (existsSync(join(values.demo, 'manifest.json'))) cpSync(values.demo, join(out, 'demo'), { recursive: true, dereference: true });
const mark = '    <link rel="manifest"';
for (const name of ['index.html', 'hub.html']) {
  const page = forHost(readFileSync(join(checkout, name), 'utf8'), values.hub, []);
  if (!page.includes(mark)) throw new Error(`${name} has no manifest link to put the worker beside.`);
  writeFileSync(join(out, name), page.replace(mark, `    <meta name="octet-worker" content="sw.js" />\n${mark}`));
}
writeFileSync(join(out, 'embed.html'), forHost(readFileSync(join(checkout, 'embed.html'), 'utf8'), values.hub, values.embedder));

/** @param {string} folder @returns {string[]} */
const walk = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? walk(join(folder, entry.name)) : [join(folder, entry.name)]));
const files = walk(out).map((file) => relative(out, file).split(sep).join('/')).filter((file) => !/^sw(-files)?\.js$/.test(file)).sort();
const hash = createHash('sha256');
for (const file of [...files, 'sw.js']) hash.update(`${file}\n`).update(readFileSync(join(out, file)));
// Large files are cached on first use: a visitor needs one of the two builds, and perhaps no demo, no texts and no other runtime.
const later = files.filter((file) => /^demo\/|^pkg\/(threads|baseline|tokenizer|vendor\/onnxruntime-web)\//.test(file));
const known = {
  version: hash.digest('hex').slice(0, 16),
  shell: files.filter((file) => !later.includes(file)),
  later,
  policies: Object.fromEntries(['hub.html', 'embed.html'].map((name) => [name, policyOf(name, { hub: values.hub, embedders: values.embedder })])),
  headers: { ...isolation, 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' },
};
writeFileSync(join(out, 'sw-files.js'), `self.octetFiles = ${JSON.stringify(known, null, 2)};\n`);
const bytes = files.reduce((sum, file) => sum + statSync(join(out, file)).size, 0);
console.log(`${out}: ${files.length} files, ${(bytes / 1e6).toFixed(1)} MB, version ${known.version}`);
