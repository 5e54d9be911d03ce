// @ts-check
/**
 * The settings in the fragment of the page's address. A link carries them; a server never sees
 * them.
 */

import { canonical } from '../../settings-document.js';
import { effect } from '../../library/signals.js';
import { say } from '../../state/messages.js';
import { settings, textSettings } from '../../state/page.js';

/** Longest document that goes into the address, as browsers truncate long ones. */
const most = 4000;

/** Documents by their names in the address. @type {Record<string, { read(): object, write(document: object): void }>} */
const kept = {
  settings: {
    read: () => settings.value.document,
    write: (document) => (settings.value = { ...settings.peek(), document }),
  },
  texts: {
    read: () => textSettings.value,
    write: (document) => (textSettings.value = document),
  },
};

/** Reads the settings from the address, then keeps the address up to date. */
export function followAddress() {
  read();
  addEventListener('hashchange', read);
  effect(() => {
    const parts = Object.entries(kept).flatMap(([key, { read }]) => {
      const text = canonical(read());
      return text === '{}' || text.length > most ? [] : [`${key}=${encodeURIComponent(text)}`];
    });
    const fragment = parts.length > 0 ? `#${parts.join('&')}` : '';
    if (location.hash !== fragment) history.replaceState(null, '', `${location.pathname}${location.search}${fragment}`);
  });
}

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [key, { read, write }] of Object.entries(kept)) {
    const text = given.get(key);
    if (!text) continue;
    try {
      const document = JSON.parse(text);
      if (document === null || typeof document !== 'object' || Array.isArray(document)) throw new Error('not a settings document');
      if (canonical(document) !== canonical(read())) write(document);
    } catch {
      say('The settings in the page address could not be read and were ignored.');
    }
  }
}
