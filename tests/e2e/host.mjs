// A static host that sends no headers, with the folder of `make dist` under a path of its own.

import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { scratch } from './walk.mjs';

/** @type {Record<string, string>} */
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.wasm': 'application/wasm', '.webmanifest': 'application/manifest+json' };
const path = '/some/where/';

/**
 * Makes the folder and serves it. `missing` are paths without a file. While `gone`, no answer comes.
 *
 * @param {string} name of the folder
 */
export async function staticHost(name) {
  const folder = join(scratch, name);
  execFileSync(process.execPath, ['scripts/dist.mjs', '--out', folder, '--demo', join(scratch, 'none')]);
  const state = { folder, url: '', missing: /** @type {string[]} */ ([]), gone: false, close: async () => void (server.close(), server.closeAllConnections()), leave };
  const server = createServer((request, response) => {
    if (state.gone) return void request.socket.destroy();
    const asked = new URL(request.url ?? '/', 'http://host').pathname;
    const file = asked.startsWith(path) ? join(folder, asked.slice(path.length) || 'index.html') : '';
    if (!file.startsWith(folder) || !statSync(file, { throwIfNoEntry: false })?.isFile()) {
      state.missing.push(asked);
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
  });
  /** Makes the host unreachable. */
  function leave() {
    state.gone = true;
    server.closeAllConnections();
  }
  await new Promise((done) => server.listen(0, 'localhost', () => done(undefined)));
  state.url = `http://localhost:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}${path}`;
  return state;
}
