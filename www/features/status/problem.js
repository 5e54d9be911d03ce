// @ts-check
/** A problem with its explanation and advice. The work so far stays below it. */

import { h } from '../../library/dom.js';
import { problem } from '../../state/messages.js';
import { settings } from '../../state/page.js';
import { setThreads, start } from '../../state/session.js';

/** @param {import('../../state/messages.js').Problem} what */
export function problemPanel({ title, message, next, retry }) {
  const close = () => (problem.value = null);
  /** @param {() => void} again */
  const onOneThread = (again) => {
    close();
    setThreads(1);
    void start().then(again);
  };
  return h('section', { class: 'panel problem', role: 'alert' },
    h('h2', { tabindex: -1, 'data-focus': 'problem' }, title),
    h('p', { class: 'message' }, message),
    h('p', { class: 'note' }, next),
    h('div', { class: 'row' },
      retry && h('button', { type: 'button', onclick: () => (close(), retry()) }, 'Try again'),
      // Fewer samples at a time need less memory.
      retry && settings.peek().threads > 1 && h('button', { type: 'button', id: 'retry-one', onclick: () => onOneThread(retry) }, 'Try again on one thread'),
      h('button', { type: 'button', class: 'quiet', id: 'close-problem', onclick: close }, 'Close'),
    ),
  );
}
