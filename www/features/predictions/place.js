// @ts-check
/** The place of the predictions of both models. Their code loads with the first answers. */

import { h } from '../../library/dom.js';
import { styled } from '../../library/style-sheet.js';
import { fail } from '../../state/messages.js';
import { comparison } from '../../state/page.js';

/** @import { Done } from '../../state/page.js' */

/** @param {Done} done */
export function predictions(done) {
  return h('div', {}, () => {
    const now = comparison.value;
    if (now?.id !== done.id || now.found.answers.length === 0) return null;
    const place = h('section', { class: 'gap', id: 'predictions', 'aria-labelledby': 'predictions-title' }, h('h3', { id: 'predictions-title' }, 'Predictions of both models'));
    const load = async () => (await Promise.all([
      import('./view.js'),
      styled(new URL('./style.css', import.meta.url)),
    ]))[0];
    load()
      .then(({ view }) => place.append(...view(now.found.answers)))
      .catch((error) => fail('The predictions could not be shown', error, 'The result is kept and can be downloaded. Reload the page to try again.'));
    return place;
  });
}
