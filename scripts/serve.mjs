#!/usr/bin/env node
// The development server. It sends what a production host should send.
//
// It sends correct MIME types, the isolation headers that threads need (omitted with `--plain`, to
// test the single-threaded path), and a content security policy with every response, worker scripts
// included. The policy forbids requests to other origins. Only the page's own folders are served.
//
//   node scripts/serve.mjs [--port N] [--host H] [--plain] [--demo DIR] [--hub ORIGIN]
//       [--embedder ORIGIN]... [--mount /path/=DIR]...
//
// Port 0 selects a free one. The first line of output is the address.

import { createReadStream, existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { homedir } from 'node:os';
import { dirname, extname, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { defaultHub, forHost, policy, policyOf } from './policies.mjs';

export { policy };

const checkout = resolve(dirname(fileURLToPath(import.meta.url)), '..');

/** The cache folder of `make`. */
const cache = process.env.OCTET_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'octet');

/** @type {Record<string, string>} */
const types = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.yaml': 'text/yaml; charset=utf-8',
};

/** Address for reports of policy violations, if someone listens. */
const reports = '/policy-violation';

/** Headers that a page needs to share memory with threads. */
export const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/**
 * @typedef {object} ServeOptions
 * @property {number} [port] 0 for a free one
 * @property {string} [host]
 * @property {boolean} [plain] without the isolation headers
 * @property {string} [root] the checkout
 * @property {string} [demo] the folder behind `/demo/`
 * @property {(violation: Record<string, unknown>) => void} [onViolation] asks browsers to report what the policy stopped, and hears of it; for tests
 * @property {string} [hub] the origin of a model hub in place of Hugging Face's, for `hub.html`
 * @property {string[]} [embedders] other origins whose pages may frame `embed.html`
 * @property {Record<string, string>} [mounts] further folders, by the path they appear under (`/bench/`)
 */

/**
 * Starts the server and resolves once it listens.
 *
 * @param {ServeOptions} [options]
 * @returns {Promise<{ url: string, close: () => Promise<void> }>}
 */
export async function serve(options = {}) {
  const { port = 8080, host = 'localhost', plain = false, root = checkout, hub = defaultHub, embedders = [] } = options;
  /** @type {[string, string][]} */
  const mounts = Object.entries({
    '/www/': join(root, 'www'),
    '/pkg/': join(root, 'pkg'),
    '/demo/': options.demo ?? join(cache, 'demo'),
    ...options.mounts,
  });
  /** @type {Record<string, string>} */
  const single = { '/': 'index.html', '/index.html': 'index.html', '/embed.html': 'embed.html', '/hub.html': 'hub.html', '/manifest.webmanifest': 'manifest.webmanifest' };

  /** @type {Record<string, string>} */
  const headers = {
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
  };
  if (!plain) {
    Object.assign(headers, isolation);
  }

  /** @param {string} path @returns {string | null} the file behind a path, if it may be served */
  function fileOf(path) {
    if (path in single) return join(root, single[path]);
    for (const [prefix, folder] of mounts) {
      if (!path.startsWith(prefix)) continue;
      const file = resolve(folder, path.slice(prefix.length));
      // `resolve` has removed every `..`: the result must still be inside.
      return file.startsWith(resolve(folder) + sep) ? file : null;
    }
    return null;
  }

  const server = createServer(async (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    /** @param {number} status @param {string} text */
    const refuse = (status, text) => {
      response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' });
      response.end(`${text}\n`);
    };
    if (options.onViolation && request.method === 'POST' && request.url === reports) {
      let text = '';
      for await (const part of request) text += part;
      options.onViolation(JSON.parse(text)['csp-report']);
      response.writeHead(204);
      return response.end();
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return refuse(405, 'Only GET and HEAD are answered here.');
    }
    let path;
    try {
      path = decodeURIComponent(new URL(request.url ?? '/', 'http://host').pathname);
    } catch {
      return refuse(400, 'This address cannot be read.');
    }
    const file = path.includes('\0') ? null : fileOf(path);
    const allowed = policyOf(path.slice(path.lastIndexOf('/') + 1), { hub, embedders });
    response.setHeader('Content-Security-Policy', options.onViolation ? `${allowed}; report-uri ${reports}` : allowed);
    const found = file ? await stat(file).catch(() => null) : null;
    if (!file || !found?.isFile()) return refuse(404, `Nothing is served at ${path}.`);
    // A frame on a page that is isolated must say that others may have it.
    if (file === join(root, 'embed.html') && embedders.length > 0 && !plain) response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
    if (file === join(root, 'hub.html') || file === join(root, 'embed.html')) {
      response.writeHead(200, { 'Content-Type': types['.html'] });
      return response.end(forHost(await readFile(file, 'utf8'), hub, embedders));
    }
    response.writeHead(200, {
      'Content-Type': types[extname(file).toLowerCase()] ?? 'application/octet-stream',
      'Content-Length': found.size,
    });
    if (request.method === 'HEAD') return response.end();
    createReadStream(file)
      .on('error', () => response.destroy())
      .pipe(response);
  });

  await new Promise((done, failed) => {
    server.once('error', failed);
    server.listen(port, host, () => done(undefined));
  });
  const address = server.address();
  const taken = typeof address === 'object' && address ? address.port : port;
  return {
    url: `http://${host}:${taken}/`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function main() {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '8080' },
      host: { type: 'string', default: 'localhost' },
      plain: { type: 'boolean', default: false },
      demo: { type: 'string' },
      hub: { type: 'string' },
      embedder: { type: 'string', multiple: true, default: [] },
      mount: { type: 'string', multiple: true, default: [] },
    },
  });
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new Error(`--port wants a number from 0 to 65535, not ${values.port}.`);
  }
  /** @type {Record<string, string>} */
  const mounts = {};
  for (const mount of values.mount ?? []) {
    const [prefix, folder] = mount.split('=', 2);
    if (!folder || !/^\/.+\/$/.test(prefix)) throw new Error(`--mount wants /path/=DIR, not ${mount}.`);
    mounts[prefix] = folder;
  }
  const { url } = await serve({ port, host: values.host, plain: values.plain, demo: values.demo, hub: values.hub, embedders: values.embedder, mounts });
  console.log(url);
  console.log(
    values.plain
      ? 'Without the isolation headers: one thread.'
      : 'With the isolation headers: threads work. Ctrl+C stops.',
  );
  if (!existsSync(join(checkout, 'pkg', 'baseline', 'octet.js'))) {
    console.log('For current browsers; make serve VARIANTS=all also builds for those before Chrome 114, Firefox 145 and Safari 26.');
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main().catch((error) => {
    const taken = error?.code === 'EADDRINUSE';
    console.error(taken ? `${error.message}: another program has this port; try --port 0.` : error.message);
    process.exit(2);
  });
}
