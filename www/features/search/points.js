// @ts-check
/** The points of the curve as a table, and the tensors of the point that is looked at. */

import { h } from '../../library/dom.js';
import { bytes, count, percent, plural } from '../../library/format.js';
import { effect, signal } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { point, settingsOf } from './state.js';

/** @import { SearchOutcome, Settings } from '../../types.js' */

/** The number of rows, beside the chosen point and the one that is looked at. */
const rows = 12;
/** The number of tensors that are listed. */
const most = 300;
/** Pause in milliseconds before the tensors of a point are read, so that a drag asks once. */
const pause = 200;

/** @param {SearchOutcome} found */
export function pointsTable({ points, point: chosen }) {
  const stride = Math.ceil(points.length / rows);
  const last = points.length - 1;
  const marks = (/** @type {number} */ index) => [index === point.value && 'looked at', index === chosen && 'chosen'].filter(Boolean).join(', ');
  return h('div', { class: 'gap' },
    h('div', {}, () => table(['Size', 'Predicted', 'Measured', 'Time', '4 bits', '16 bits', 'Float'], points
      .map((one, index) => ({ one, index }))
      .filter(({ index }) => index % stride === 0 || index === chosen || index === point.value || index === last)
      .map(({ one, index }) => [
        h('span', { class: index === point.value ? 'search-here' : null },
          h('button', { type: 'button', class: 'link', 'aria-label': `Look at the point of ${bytes(Math.round(one.bytes))}`, onclick: () => (point.value = index) }, bytes(Math.round(one.bytes))),
          marks(index) && h('span', { class: 'note search-mark' }, marks(index))),
        sqnr(one.predictedSqnr), one.chosenSqnr === null ? '' : sqnr(one.chosenSqnr), percent(one.shareOfTime),
        count(one.counts[0]), count(one.counts[2]), count(one.counts[3]),
      ]), [1, 2, 3, 4, 5, 6])),
    points.length > rows && h('p', { class: 'note' }, `Some of ${plural(points.length, 'point')}; the curve has all.`));
}

/** @param {number} value */
const sqnr = (value) => (value >= 200 ? 'exact' : `${value.toFixed(1)} dB`);

/**
 * The tensors to which the point gives other types than the settings. They are read while the list
 * is open.
 *
 * @param {SearchOutcome} found
 */
export function tensorsOf(found) {
  const open = signal(false);
  /** @type {import('../../library/signals.js').Signal<{ index: number, document: Settings } | null>} */
  const read = signal(/** @type {any} */ (null));
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  effect(() => {
    const index = point.value;
    clearTimeout(timer);
    if (!open.value) return;
    timer = setTimeout(async () => {
      const document = await settingsOf(index);
      if (document && point.peek() === index) read.value = { index, document };
    }, read.peek() ? pause : 0);
  });
  const list = () => {
    const now = read.value;
    if (!now) return h('p', { class: 'note' }, 'Reading the settings of this point.');
    const names = new Set(found.tensors);
    const other = Object.entries(now.document.tensors ?? {}).filter(([name, own]) => names.has(name) && (own.float || own.type));
    if (other.length === 0) return h('p', { class: 'note' }, 'All tensors have the types of the settings.');
    return h('div', { class: 'gap' },
      table(['Tensor', 'Type'], other.slice(0, most).map(([name, own]) => [h('code', {}, name), own.float ? 'float' : String(own.type)])),
      other.length > most && h('p', { class: 'note' }, `The first ${most} of ${count(other.length)}.`));
  };
  return h('details', { id: 'search-tensors', ontoggle: (/** @type {Event} */ event) => (open.value = /** @type {HTMLDetailsElement} */ (event.currentTarget).open) },
    h('summary', {}, 'Tensors with other types at this point'),
    () => open.value && list());
}
