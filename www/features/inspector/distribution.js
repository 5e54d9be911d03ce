// @ts-check
/**
 * The distribution of a tensor, the range that each method would choose, and the current range:
 * dragged, typed or chosen by a method.
 */

import { get } from '../../settings-document.js';
import { h, svg } from '../../library/dom.js';
import { count, real } from '../../library/format.js';
import { computed, effect, signal } from '../../library/signals.js';
import { say, sentence } from '../../state/messages.js';
import { done, model, settings } from '../../state/page.js';
import { settingsLocked } from '../../state/surroundings.js';
import { change } from '../settings/undo.js';

/** @import { Row } from '../layers/rows.js' */
/** @import { ValueDistribution, ElementType } from '../../types.js' */

const [width, height] = [320, 140];
const base = height - 18;

/** @type {Record<string, ElementType>} */
const types = { uint8: 'u8', int8: 'i8', uint16: 'u16', int16: 'i16', uint4: 'u4', int4: 'i4' };
/** The settings' name of an ONNX element type. @param {string} element @returns {ElementType} */
export const elementOf = (element) => types[element.toLowerCase()] ?? 'u8';

/** @param {{ readonly value: Row | null }} row */
export function distributionView(row) {
  /** @type {import('../../library/signals.js').Signal<{ value: string, seen: ValueDistribution | null, failure: string } | null>} */
  const found = signal(/** @type {any} */ (null));
  const what = computed(() => {
    const now = row.value;
    return now?.tensor?.kind === 'activation' && done.value?.calibration ? `${now.output}\n${now.tensor.element}` : '';
  });
  effect(() => {
    const [value, element = ''] = what.value.split('\n');
    const open = model.peek();
    if (!value || !open?.calibrated) {
      found.value = null;
      return;
    }
    const symmetric = settings.peek().document.activations?.symmetric;
    const mine = what.value;
    open.distribution(value, elementOf(element), symmetric).then(
      (seen) => what.value === mine && (found.value = { value, seen, failure: '' }),
      (error) => what.value === mine && (found.value = { value, seen: null, failure: sentence(error.message) }),
    );
  });
  // A measurement makes another row of the same tensor: the picture stays, and so does a drag.
  const tensor = computed(() => row.value?.tensor ?? null);
  const output = computed(() => row.value?.output ?? '');
  return h('div', {}, () => {
    const [now, has] = [found.value, tensor.value];
    if (!now || !has || output.value !== now.value) return null;
    if (!now.seen) return h('p', { class: 'note' }, now.failure || 'Calibration has no statistics of this tensor: it shares the scale of another one.');
    return histogram(now.value, now.seen, [has.min, has.max]);
  });
}

/**
 * A histogram's bars as a path with logarithmic heights.
 *
 * @param {ValueDistribution} seen
 * @param {(value: number) => number} x
 * @param {number} foot where they stand
 */
export function barsOf(seen, x, foot) {
  const most = Math.log1p(Math.max(...seen.counts, 1));
  return seen.counts.map((number, index) => {
    const [from, to] = [x(seen.low + index * seen.width), x(seen.low + (index + 1) * seen.width)];
    const tall = (Math.log1p(number) / most) * (foot - 6);
    return `M${from.toFixed(2)} ${foot}V${(foot - tall).toFixed(2)}H${Math.max(to, from + 0.4).toFixed(2)}V${foot}Z`;
  }).join('');
}

/** @param {string} name @param {ValueDistribution} seen @param {[number, number]} has the range it has now */
function histogram(name, seen, has) {
  const low = Math.min(seen.low, has[0]);
  const high = Math.max(seen.low + seen.width * seen.counts.length, has[1]);
  const span = high - low || 1;
  const x = (/** @type {number} */ value) => ((value - low) / span) * width;
  const shade = svg('rect', { class: 'range-shade', y: 0, height: base });
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'histogram', role: 'img',
    'aria-label': `Histogram of ${count(seen.count)} values from ${real(seen.ends[0])} to ${real(seen.ends[1])}, logarithmic counts; the range is ${real(has[0])} to ${real(has[1])}` },
    shade, svg('path', { class: 'bars', d: barsOf(seen, x, base) }), svg('line', { class: 'axis', x1: 0, x2: width, y1: base, y2: base }),
    svg('text', { x: 0, y: height - 4 }, real(low)), svg('text', { x: width, y: height - 4, 'text-anchor': 'end' }, real(high)));
  if (low < 0 && high > 0) picture.append(svg('line', { class: 'axis zero', x1: x(0), x2: x(0), y1: base, y2: base + 5 }));

  const own = () => get(settings.value.document, ['tensors', name, 'range']);
  /** @type {[number, number]} */
  const range = own() ? [own()[0], own()[1]] : [has[0], has[1]];
  const put = (/** @type {[number, number] | undefined} */ to) => change(['tensors', name, 'range'], to, { now: true });
  const inputs = [0, 1].map((end) => h('input', {
    type: 'number', step: 'any', id: `range-${end}`, 'aria-label': end === 0 ? 'Range from' : 'Range to', value: String(Number(range[end].toPrecision(6))), disabled: settingsLocked,
    onchange: (/** @type {Event} */ event) => {
      const number = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
      /** @type {[number, number]} */
      const next = end === 0 ? [number, range[1]] : [range[0], number];
      if (!Number.isFinite(number) || next[0] > next[1]) return say('The range needs two numbers, the smaller first.');
      put(next);
    },
  }));
  const handles = [0, 1].map((end) => handle(end));
  picture.append(...handles);
  place();

  function place() {
    const [from, to] = range.map(x);
    shade.setAttribute('x', String(from));
    shade.setAttribute('width', String(Math.max(0, to - from)));
    handles.forEach((one, end) => one.setAttribute('transform', `translate(${end === 0 ? from : to} 0)`));
    inputs.forEach((input, end) => (input.value = String(Number(range[end].toPrecision(6)))));
  }

  /**
   * A draggable end of the range. Keyboard users have the number field beside the picture.
   *
   * @param {number} end
   */
  function handle(end) {
    const grip = svg('g', { class: 'grip' }, svg('rect', { class: 'reach', x: -12, width: 24, y: 0, height: base }), svg('line', { y1: 0, y2: base }), svg('circle', { cy: 12, r: 5 }));
    grip.addEventListener('pointerdown', (event) => {
      if (settingsLocked()) return;
      event.preventDefault();
      grip.setPointerCapture(event.pointerId);
      const move = (/** @type {PointerEvent} */ at) => {
        const box = picture.getBoundingClientRect();
        const value = Math.min(high, Math.max(low, low + ((at.clientX - box.left) / box.width) * span));
        range[end] = Number((end === 0 ? Math.min(value, range[1]) : Math.max(value, range[0])).toPrecision(4));
        place();
      };
      const up = () => {
        grip.removeEventListener('pointermove', move);
        put([...range]);
      };
      grip.addEventListener('pointermove', move);
      grip.addEventListener('pointerup', up, { once: true });
      grip.addEventListener('pointercancel', () => grip.removeEventListener('pointermove', move), { once: true });
    });
    return grip;
  }

  return h('section', { class: 'gap', 'aria-labelledby': 'histogram-title' },
    h('h3', { id: 'histogram-title' }, 'Distribution of its output'),
    picture,
    h('div', { class: 'row range-fields' }, inputs[0], h('span', {}, 'to'), inputs[1],
      h('button', { type: 'button', class: 'small', id: 'range-back', disabled: () => !own() || settingsLocked(), onclick: () => put(undefined) }, 'Use the method')),
    h('p', { class: 'note' }, `${count(seen.count)} values, ${((seen.zeros / Math.max(1, seen.count)) * 100).toFixed(1)} % zero${seen.odd > 0 ? `, ${count(seen.odd)} not finite` : ''}. Bar heights are logarithmic.`),
    h('details', { open: true }, h('summary', {}, 'The range each method would choose'),
      h('table', { class: 'methods' },
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Method'), h('th', { scope: 'col', class: 'figure' }, 'From'), h('th', { scope: 'col', class: 'figure' }, 'To'), h('th', { scope: 'col' }, 'Range'))),
        h('tbody', {}, ...seen.ranges.map(([method, [from, to]]) => h('tr', {}, h('th', { scope: 'row' }, method), h('td', { class: 'figure' }, real(from)), h('td', { class: 'figure' }, real(to)),
          h('td', {}, band(x(from), x(to)))))),
      )),
  );
}

/**
 * A range as a bar on the histogram's axis; the figures are beside it.
 *
 * @param {number} from
 * @param {number} to
 */
function band(from, to) {
  return svg('svg', { viewBox: `0 0 ${width} 16`, preserveAspectRatio: 'none', class: 'band', 'aria-hidden': 'true' }, svg('rect', { x: from, y: 4, width: Math.max(2, to - from), height: 8 }));
}
