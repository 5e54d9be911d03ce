// @ts-check
/** A download link. */

import { h } from './dom.js';
import { bytes } from './format.js';

/**
 * The object URL lives as long as the link is on the page.
 *
 * @param {BlobPart} content
 * @param {string} type
 * @param {string} name
 * @param {string} text
 * @param {string} kind
 */
export function download(content, type, name, text, kind) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const address = URL.createObjectURL(blob);
  const link = h('a', { class: `button ${kind}`, href: address, download: name }, text, h('span', { class: 'size' }, bytes(blob.size)));
  const gone = new MutationObserver(() => {
    if (link.isConnected) return;
    gone.disconnect();
    URL.revokeObjectURL(address);
  });
  gone.observe(document.body, { childList: true, subtree: true });
  return link;
}

/** Starts a download. @param {BlobPart} content @param {string} type @param {string} name */
export function save(content, type, name) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
