// @ts-check
/// <reference lib="webworker" />
/**
 * Makes a copy of the page on any static host work offline, and isolated where the host can send no headers: every answer goes out with
 * the headers our own server would send, the policy among them. `make dist` writes the list of files (`sw-files.js`).
 *
 * A version is served whole from its own cache. A newer one waits until no page of the older is open: it never reloads a run.
 */

const scope = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
scope.importScripts('sw-files.js');

/** @type {{ version: string, shell: string[], later: string[], headers: Record<string, string> }} `shell` is kept at once, `later` when it is first asked for */
const { version, shell, later, headers } = /** @type {any} */ (self).octetFiles;
const prefix = `octet ${scope.registration.scope} `;
const name = prefix + version;
const address = (/** @type {string} */ file) => new URL(file, scope.registration.scope).href;
const known = new Set([...shell, ...later].map(address));

scope.addEventListener('install', (event) => {
  // Past the browser's own cache: files of two versions must not mix.
  event.waitUntil(caches.open(name).then((cache) => cache.addAll(shell.map((file) => new Request(address(file), { cache: 'reload' })))));
});

scope.addEventListener('activate', (event) => {
  event.waitUntil((async () => {
    for (const old of await caches.keys()) if (old.startsWith(prefix) && old !== name) await caches.delete(old);
    await scope.clients.claim();
  })());
});

scope.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== scope.location.origin) return;
  url.search = url.hash = '';
  const file = url.href === scope.registration.scope ? address('index.html') : url.href;
  if (known.has(file)) event.respondWith(answer(file));
});

/** @param {string} file */
async function answer(file) {
  const cache = await caches.open(name);
  const kept = await cache.match(file);
  if (kept) return dressed(kept);
  const fresh = await fetch(file, { cache: 'no-cache' });
  // A full disk is no reason to answer nothing.
  if (fresh.ok) await cache.put(file, fresh.clone()).catch(() => {});
  return dressed(fresh);
}

/** @param {Response} response */
function dressed(response) {
  const all = new Headers(response.headers);
  for (const [key, value] of Object.entries(headers)) all.set(key, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers: all });
}
