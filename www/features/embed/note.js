// @ts-check
/** A line below the studio that says who takes part: the page around it. */

import { h } from '../../library/dom.js';

/** @param {string} origin of the page around */
export function showEmbedder(origin) {
  const own = origin === location.origin;
  document.body.append(h('footer', { class: 'note embedder', id: 'embedder' },
    own ? 'Octet, as part of this page. ' : `Octet from ${location.host}, as part of a page of ${origin}. `,
    'Your files are read in this browser. The page around can read the result and send it on.'));
}
