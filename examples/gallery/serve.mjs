#!/usr/bin/env node
// @ts-check
// Serves the gallery: this folder at /, and Octet's page at /octet/. Any static server does the same
// with a copy of `make dist` in the folder `octet`.
//
//   node examples/gallery/serve.mjs [PORT]      prints the address; 8090 unless given, 0 for a free one

import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { makeModels } from './make-models.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const checkout = resolve(here, '..', '..');

/** @type {Record<string, string>} */
const types = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.svg': 'image/svg+xml', '.wasm': 'application/wasm', '.yaml': 'text/yaml' };

/** With these, the studios' threads may share memory. */
const headers = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

/** Folders and files of Octet that the studios need. */
const served = ['embed.html', 'www', 'pkg'];

/** @param {string} path of an address @returns {string} the file behind it; empty for none */
function fileOf(path) {
  const inside = path.startsWith('/octet/') ? path.slice('/octet/'.length) : '';
  const root = inside ? checkout : here;
  const file = resolve(root, inside || `.${path === '/' ? '/index.html' : path}`);
  if (!file.startsWith(root + sep) || (inside && !served.some((name) => file === join(root, name) || file.startsWith(join(root, name) + sep)))) return '';
  return statSync(file, { throwIfNoEntry: false })?.isFile() ? file : '';
}

/** @param {number} port @returns {Promise<{ url: string, close: () => void }>} */
export async function serveGallery(port) {
  makeModels(join(here, 'models'));
  const server = createServer((request, response) => {
    let file = '';
    try {
      file = fileOf(decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname));
    } catch {
      // An address that cannot be read has no file.
    }
    if (!file) return void response.writeHead(404, headers).end('Nothing is served here.\n');
    response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream', ...headers });
    createReadStream(file).on('error', () => response.destroy()).pipe(response);
  });
  await new Promise((listening) => server.listen(port, 'localhost', () => listening(undefined)));
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { url: `http://localhost:${address.port}/`, close: () => (server.close(), server.closeAllConnections()) };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await serveGallery(Number(process.argv[2] ?? 8090));
  console.log(url);
}
