// @ts-check
/** The ranges of all tensors during calibration: one bar each, and the same as a table. */

import { h, svg } from '../../library/dom.js';
import { count, real } from '../../library/format.js';
import { computed, signal } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { run } from '../../state/page.js';

/** @import { SeenRange } from '../../types.js' */

const [wide, high] = [600, 90];

/** Number of rows in the table while it changes. */
const most = 60;

/**
 * Maps numbers of any magnitude to one axis: linear near zero, logarithmic further out.
 *
 * @param {number} value
 */
const bent = (value) => Math.sign(value) * Math.log10(1 + Math.abs(value) * 10);

export function liveRanges() {
  const ranges = computed(() => run.value?.progress.ranges ?? []);
  const open = signal(false);
  return h('div', { class: 'gap', hidden: () => ranges.value.length === 0 },
    () => ranges.value.length > 0 && picture(ranges.value),
    h('details', { ontoggle: (/** @type {Event} */ event) => (open.value = /** @type {HTMLDetailsElement} */ (event.currentTarget).open) },
      h('summary', {}, 'Ranges as a table'),
      () => open.value && table(['Tensor', 'Min', 'Max'], ranges.value.slice(0, most).map(([name, min, max]) => [name, real(min), real(max)]), [1, 2]),
      () => ranges.value.length > most && h('p', { class: 'note' }, `The first ${most} of ${count(ranges.value.length)}.`)),
  );
}

/** @param {SeenRange[]} ranges */
function picture(ranges) {
  const [low, top] = [Math.min(...ranges.map(([, min]) => bent(min)), 0), Math.max(...ranges.map(([, , max]) => bent(max)), 0)];
  const place = (/** @type {number} */ value) => 4 + ((top - bent(value)) / Math.max(top - low, 1e-6)) * (high - 8);
  const step = wide / ranges.length;
  const [name, min, max] = ranges.reduce((a, b) => (b[2] - b[1] > a[2] - a[1] ? b : a));
  const text = `Ranges of ${count(ranges.length)} tensors so far; the widest is ${name}, ${real(min)} to ${real(max)}`;
  const drawn = svg('svg', { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: 'none', class: 'curve ranges', role: 'img', 'aria-label': text });
  ranges.forEach(([, from, to], index) => {
    drawn.append(svg('rect', { x: (index * step + step * 0.15).toFixed(2), width: (step * 0.7).toFixed(2), y: place(to).toFixed(1), height: Math.max(place(from) - place(to), 1).toFixed(1) }));
  });
  drawn.append(svg('line', { x1: 0, x2: wide, y1: place(0).toFixed(1), y2: place(0).toFixed(1) }));
  return h('figure', { class: 'chart' }, drawn, h('figcaption', {}, h('span', {}, text)));
}
