// @ts-check
/** Style sheets that load when they are first needed. */

import { h } from './dom.js';

/** Sheets that are there or on their way, by address. @type {Map<string, Promise<void>>} */
const sheets = new Map();

/**
 * Adds a style sheet to the page, once. A sheet that did not load is tried again at the next call.
 *
 * @param {URL} address
 * @returns {Promise<void>}
 */
export function styled(address) {
  const { href } = address;
  const known = sheets.get(href);
  if (known) return known;
  const link = h('link', { rel: 'stylesheet', href });
  const loaded = new Promise((resolve, reject) => {
    link.addEventListener('load', () => resolve(undefined));
    link.addEventListener('error', () => {
      link.remove();
      sheets.delete(href);
      reject(new Error('its style sheet did not load'));
    });
  });
  sheets.set(href, loaded);
  document.head.append(link);
  return loaded;
}
