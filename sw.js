// @ts-check
/// <reference lib="webworker" />
/**
 * Service worker for a copy of the page on a static host. It works offline and adds the headers
 * that our own server would send, the content security policy among them. So the page is isolated
 * even if the host can't send headers. `make dist` writes the list of files (`sw-files.js`).
 *
 * Each version is served from its own cache. A newer one waits until no page of the older one is
 * open, so it never reloads a run.
 */

const scope = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
scope.importScripts('sw-files.js');

/** @type {{ version: string, shell: string[], later: string[], headers: Record<string, string>, policies: Record<string, string> }} `shell` is kept at once, `later` when it is first asked for; `policies` of single pages replace that of all */
const { version, shell, later, headers, policies } = /** @type {any} */ (self).octetFiles;
const prefix = `octet ${scope.registration.scope} `;
const name = prefix + version;
const address = (/** @type {string} */ file) => new URL(file, scope.registration.scope).href;
const known = new Set([...shell, ...later].map(address));

scope.addEventListener('install', (event) => {
  // Bypasses the browser's cache: files of two versions must not mix.
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
  if (kept) return dressed(kept, file);
  const fresh = await fetch(file, { cache: 'no-cache' });
  // A full disk must not prevent the answer.
  if (fresh.ok) await cache.put(file, fresh.clone()).catch(() => {});
  return dressed(fresh, file);
}

/** @param {Response} response @param {string} file */
function dressed(response, file) {
  const all = new Headers(response.headers);
  for (const [key, value] of Object.entries(headers)) all.set(key, value);
  const own = policies[file.slice(scope.registration.scope.length)];
  if (own) all.set('Content-Security-Policy', own);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers: all });
}
