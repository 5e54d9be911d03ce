// @ts-check
// Serves this folder, and the installed package at /octet-onnx/, to a headless browser.

import { createReadStream, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, extname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

/** The float model and its samples, beside this file: a sample is a file that Octet reads. */
export const model = 'model.onnx';
export const samples = readdirSync(join(here, 'samples')).sort().map((name) => `samples/${name}`);

/** @type {Record<string, string>} */
const types = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };

/** With these, threads may share memory. Without them, one thread computes the same result. */
const headers = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

const octet = '/octet-onnx/';

/** @param {string} path of an address @returns {string} the file behind it; empty for none */
function fileOf(path) {
  const root = path.startsWith(octet) ? dirname(createRequire(import.meta.url).resolve('octet-onnx/package.json')) : here;
  const file = resolve(root, path.slice(root === here ? 1 : octet.length));
  return file.startsWith(root + sep) && statSync(file, { throwIfNoEntry: false })?.isFile() ? file : '';
}

/** Starts the server at a free port. @returns {Promise<{ url: string, close: () => void }>} */
export async function serve() {
  const server = createServer((request, response) => {
    const file = fileOf(decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname));
    if (!file) return void response.writeHead(404, headers).end();
    response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream', ...headers });
    createReadStream(file).pipe(response);
  });
  await new Promise((listening) => server.listen(0, 'localhost', () => listening(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { url: `http://localhost:${port}`, close: () => (server.close(), server.closeAllConnections()) };
}
