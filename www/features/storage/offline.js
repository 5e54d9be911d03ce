// @ts-check
/**
 * Registers the service worker of a copy made by `make dist`. It works offline and isolates the
 * page if the host sends no headers.
 */

import { say } from '../../state/messages.js';
import { model, opening, run } from '../../state/page.js';
import { newerWaits } from '../../state/surroundings.js';

/** Session key that prevents repeated reloads of a page that can't be isolated. */
const guard = 'octet isolated';

/** The development server's page names no worker: that server sends the headers itself. */
export async function workOffline() {
  const named = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name=octet-worker]'));
  if (!named || !('serviceWorker' in navigator)) return;
  try {
    watch(await navigator.serviceWorker.register(new URL(named.content, document.baseURI), { updateViaCache: 'none' }));
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) await new Promise((next) => navigator.serviceWorker.addEventListener('controllerchange', next, { once: true }));
  } catch {
    // Private windows may have no service workers; the page then works with the host's headers.
    return;
  }
  if (crossOriginIsolated) return;
  // Work in progress is not interrupted: the next visit has threads.
  if (model.peek() || opening.peek() || run.peek()) return say('Threads are available from the next visit on.');
  try {
    if (sessionStorage.getItem(guard)) return;
    sessionStorage.setItem(guard, 'tried');
  } catch {
    return;
  }
  location.reload();
}

/** Says when a newer version is installed: it waits for the end of this one. @param {ServiceWorkerRegistration} registration */
function watch(registration) {
  const look = () => {
    if (!registration.waiting || !registration.active || newerWaits.peek()) return;
    newerWaits.value = true;
    say('A newer version of this page is here. It waits until all tabs of the page are closed.');
  };
  registration.addEventListener('updatefound', () => registration.installing?.addEventListener('statechange', look));
  look();
}
