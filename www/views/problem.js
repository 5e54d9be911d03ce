// @ts-check
/** A problem with its explanation and advice. The work so far stays below it. */

import { h } from '../dom.js';
import { problem } from '../messages.js';
import { settings } from '../state.js';
import { set, start } from '../studio.js';

/** @param {import('../messages.js').Problem} what */
export function problemPanel({ title, message, next, retry }) {
  const close = () => (problem.value = null);
  /** @param {() => void} again */
  const onOneThread = (again) => {
    close();
    set({ threads: 1 });
    void start().then(again);
  };
  return h('section', { class: 'panel problem', role: 'alert' },
    h('h2', { tabindex: -1, 'data-focus': 'problem' }, title),
    h('p', { class: 'said' }, message),
    h('p', { class: 'note' }, next),
    h('div', { class: 'row' },
      retry && h('button', { type: 'button', onclick: () => (close(), retry()) }, 'Try again'),
      // Fewer samples at a time need less memory.
      retry && settings.peek().threads > 1 && h('button', { type: 'button', id: 'retry-one', onclick: () => onOneThread(retry) }, 'Try again on one thread'),
      h('button', { type: 'button', class: 'quiet', id: 'close-problem', onclick: close }, 'Close'),
    ),
  );
}
