// @ts-check
/** What went wrong, in words, and what can be done; the work so far stays below it. */

import { h } from '../dom.js';
import { problem } from '../messages.js';

/** @param {import('../messages.js').Problem} what */
export function problemPanel({ title, message, next, retry }) {
  const close = () => (problem.value = null);
  return h('section', { class: 'panel problem', role: 'alert' },
    h('h2', { tabindex: -1, 'data-focus': 'problem' }, title),
    h('p', { class: 'said' }, message),
    h('p', { class: 'note' }, next),
    h('div', { class: 'row' },
      retry && h('button', { type: 'button', onclick: () => (close(), retry()) }, 'Try again'),
      h('button', { type: 'button', class: 'quiet', id: 'close-problem', onclick: close }, 'Close'),
    ),
  );
}
