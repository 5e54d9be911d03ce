// @ts-check
/**
 * The settings in the fragment of the page's address. A link carries them; a server never sees
 * them.
 */

import { canonical } from './settings-document.js';
import { say } from './messages.js';
import { effect } from './signals.js';
import { settings } from './state.js';

/** Longest document that goes into the address, as browsers truncate long ones. */
const most = 4000;
const key = 'settings';

/** Reads the settings from the address, then keeps the address up to date. */
export function followAddress() {
  read();
  addEventListener('hashchange', read);
  effect(() => {
    const text = canonical(settings.value.document);
    const fragment = text === '{}' || text.length > most ? '' : `#${key}=${encodeURIComponent(text)}`;
    if (location.hash !== fragment) history.replaceState(null, '', `${location.pathname}${location.search}${fragment}`);
  });
}

function read() {
  const given = new URLSearchParams(location.hash.slice(1)).get(key);
  if (!given) return;
  try {
    const document = JSON.parse(given);
    if (document === null || typeof document !== 'object' || Array.isArray(document)) throw new Error('not a settings document');
    if (canonical(document) !== canonical(settings.peek().document)) settings.value = { ...settings.peek(), document };
  } catch {
    say('The settings in the page address could not be read and were ignored.');
  }
}
