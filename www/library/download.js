// @ts-check
/** A download link. */

import { h } from './dom.js';
import { bytes } from './format.js';
import { effect } from './signals.js';

/** Time in milliseconds that a browser may take until it has opened an address that was clicked. */
const opened = 10_000;

/** @param {string} address */
const revokeLater = (address) => setTimeout(() => URL.revokeObjectURL(address), opened);

/**
 * The link stays the same when its content changes, and so does its focus.
 *
 * @param {() => BlobPart} content read live
 * @param {string} type
 * @param {string} name
 * @param {string} text
 * @param {string} kind
 */
export function download(content, type, name, text, kind) {
  const size = h('span', { class: 'size' });
  const link = h('a', { class: `button ${kind}`, download: name }, text, size);
  effect(() => {
    const now = content();
    const blob = now instanceof Blob ? now : new Blob([now], { type });
    if (link.href) revokeLater(link.href);
    link.href = URL.createObjectURL(blob);
    size.textContent = bytes(blob.size);
  });
  const gone = new MutationObserver(() => {
    if (link.isConnected) return;
    gone.disconnect();
    revokeLater(link.href);
  });
  gone.observe(document.body, { childList: true, subtree: true });
  return link;
}

/** Starts a download. @param {BlobPart} content @param {string} type @param {string} name */
export function save(content, type, name) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h('a', { href: address, download: name }).click();
  revokeLater(address);
}
