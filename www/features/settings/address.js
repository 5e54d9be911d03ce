// @ts-check
/**
 * The settings in the fragment of the page's address. A link carries them; a server never sees
 * them.
 */

import { canonical } from '../../settings-document.js';
import { effect } from '../../library/signals.js';
import { say } from '../../state/messages.js';
import { settings } from '../../state/page.js';

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
  const text = new URLSearchParams(location.hash.slice(1)).get(key);
  if (!text) return;
  try {
    const document = JSON.parse(text);
    if (document === null || typeof document !== 'object' || Array.isArray(document)) throw new Error('not a settings document');
    if (canonical(document) !== canonical(settings.peek().document)) settings.value = { ...settings.peek(), document };
  } catch {
    say('The settings in the page address could not be read and were ignored.');
  }
}
