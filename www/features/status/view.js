// @ts-check
/** The status bar: stage, progress, memory, cancel, and the log. */

import { h } from '../../library/dom.js';
import { bytes, plural } from '../../library/format.js';
import { log } from '../../state/messages.js';
import { done, engine, measuring, opening, run } from '../../state/page.js';
import { newerWaits } from '../../state/surroundings.js';
import { cancelOpening } from '../model/open.js';
import { spark } from '../run/memory-curve.js';
import { cancel } from '../run/run.js';
import './announcer.js';

/** The line on a newer version. */
const newer = 'A newer version of this page is here. It is used once all tabs of the page are closed; until then nothing changes.';

export function view() {
  const stage = () => {
    const now = run.value ?? measuring.value;
    if (opening.value) return `Opening ${opening.value.name}`;
    if (now) {
      const { stage: name, done: count = 0, of = 0, unit } = now.progress;
      return unit === 'samples' || unit === 'layers' || unit === 'steps' ? `${name}: ${count} of ${of}` : name;
    }
    if (engine.value.state === 'starting') return 'The engine is starting';
    if (engine.value.state === 'failed') return 'The engine is not running';
    return done.value ? 'Done' : 'Ready';
  };
  const part = () => {
    const { done: count = 0, of = 0 } = (run.value ?? measuring.value ?? opening.value)?.progress ?? {};
    return of > 0 && count > 0 ? String(count / of) : null;
  };
  const busy = () => Boolean(run.value ?? measuring.value ?? opening.value);
  const memory = () => run.value?.progress.memory ?? done.value?.memory ?? null;
  return h('div', { class: 'status-bar', role: 'group', 'aria-label': 'Progress' },
    h('span', { class: 'status-stage' }, stage),
    h('progress', { max: 1, value: part, hidden: () => !busy(), 'aria-label': 'Overall progress' }),
    h('span', { class: 'note', id: 'newer', hidden: () => !newerWaits.value }, newer),
    h('span', { class: 'status-memory' }, () => {
      const points = run.value?.curve ?? done.value?.curve ?? [];
      return points.length > 1 ? spark(points) : null;
    }, () => {
      const used = memory();
      return used ? `${bytes(used.live)} live, ${bytes(used.pages)} allocated` : '';
    }),
    h('button', { type: 'button', class: 'small', hidden: () => !busy(), onclick: () => (run.peek() || measuring.peek() ? cancel() : cancelOpening()) }, 'Cancel'),
    h('details', { class: 'menu log' },
      h('summary', {}, () => `Log, ${plural(log.value.length, 'line')}`),
      h('div', { class: 'sheet up' },
        h('ol', { class: 'log-lines', tabindex: 0, 'aria-label': 'Messages so far' },
          () => log.value.map(({ at, text }) => h('li', {}, h('time', { class: 'note' }, new Date(at).toLocaleTimeString()), ' ', text)))),
    ),
  );
}
