// @ts-check
/** The service worker of a copy that `make dist` made: offline, and isolated where the host sends no headers. */

import { say } from './messages.js';
import { model, opening, run } from './state.js';

/** Said once a session, so that a page that can't be isolated is not loaded again and again. */
const guard = 'octet isolated';

/** The development server's page names no worker: it sends the headers itself. */
export async function workOffline() {
  const named = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name=octet-worker]'));
  if (!named || !('serviceWorker' in navigator)) return;
  try {
    await navigator.serviceWorker.register(new URL(named.content, document.baseURI), { updateViaCache: 'none' });
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) await new Promise((next) => navigator.serviceWorker.addEventListener('controllerchange', next, { once: true }));
  } catch {
    // Private windows may have no service workers; then the page works with what the host sends.
    return;
  }
  if (crossOriginIsolated) return;
  // Where a person has begun, nothing is taken away: the next visit has threads.
  if (model.peek() || opening.peek() || run.peek()) return say('Threads are available from the next visit on.');
  try {
    if (sessionStorage.getItem(guard)) return;
    sessionStorage.setItem(guard, 'tried');
  } catch {
    return;
  }
  location.reload();
}
