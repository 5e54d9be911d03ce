// @ts-check
/**
 * The curve of size and error. One point can be dragged along it, or moved by the arrow keys, Page
 * Up and Down, Home and End. A table beside it has the same figures.
 */

import { h, svg } from '../../library/dom.js';
import { effect, signal } from '../../library/signals.js';
import { bytes, percent } from '../../library/format.js';
import { moved, ticks } from './axes.js';
import { point } from './state.js';

/** @import { SearchOutcome, SearchPoint } from '../../types.js' */

const [high, left, right, top, foot] = [300, 58, 18, 14, 40];
/** The greatest SQNR in decibels that is drawn: beyond it nothing differs. */
const most = 70;

/** @param {number} sqnr */
const shown = (sqnr) => Math.min(sqnr, most);
/** @param {number} sqnr */
const sqnrText = (sqnr) => (sqnr >= most ? `over ${most} dB` : `${sqnr.toFixed(1)} dB`);

/** Words for a point. @param {SearchPoint} one */
export function inWords(one) {
  const [four, eight, sixteen, float] = one.counts;
  return `${bytes(Math.round(one.bytes))}, ${percent(one.shareOfBytes)} of the float file; ${sqnrText(one.predictedSqnr)} predicted; ${percent(one.shareOfTime)} of the float time. Tensors with 4 bits: ${four}, 8 bits: ${eight}, 16 bits: ${sixteen}, float: ${float}`;
}

/** @param {SearchOutcome} found */
export function curve(found) {
  const wide = signal(560);
  const box = h('div', { class: 'search-picture' }, () => /** @type {any} */ (picture(found, Math.max(wide.value, 240))));
  const watch = new ResizeObserver(() => {
    const width = Math.round(box.clientWidth);
    if (width > 0) wide.value = width;
  });
  watch.observe(box);
  return h('figure', { class: 'chart' }, box,
    h('figcaption', { class: 'search-keys' },
      h('span', { class: 'search-key here' }, 'the point looked at'),
      h('span', { class: 'search-key chosen' }, 'chosen, on held-out samples'),
      h('span', { class: 'search-key measured' }, 'measured, on the samples that chose'),
      h('span', { class: 'search-key without' }, 'without a search'),
      h('span', {}, 'The line is predicted.')));
}

/** @param {SearchOutcome} found @param {number} wide */
function picture({ points, point: chosen, chosen: verified, withoutSearch }, wide) {
  const marks = [verified, withoutSearch].map((one) => ({ size: one.bytes, sqnr: shown(one.heldSqnr) }));
  const measured = points.flatMap(({ bytes: size, chosenSqnr }) => (chosenSqnr === null ? [] : [{ size, sqnr: shown(chosenSqnr) }]));
  const line = points.map((one) => ({ size: one.bytes, sqnr: shown(one.predictedSqnr) }));
  const all = [...marks, ...measured, ...line];
  const [least, greatest] = [Math.min(...all.map(({ size }) => size)), Math.max(...all.map(({ size }) => size))];
  const [worst, best] = [Math.min(...all.map(({ sqnr }) => sqnr)), Math.max(...all.map(({ sqnr }) => sqnr))];
  const x = (/** @type {number} */ size) => left + ((size - least) / (greatest - least || 1)) * (wide - left - right);
  const y = (/** @type {number} */ sqnr) => high - foot - ((sqnr - worst) / (best - worst || 1)) * (high - foot - top);
  const at = (/** @type {{ size: number, sqnr: number }} */ { size, sqnr }) => /** @type {[number, number]} */ ([x(size), y(sqnr)]);
  const places = line.map(at);
  const last = points.length - 1;
  const spread = Math.max(2, Math.floor((wide - left) / 110));
  const sizes = ticks(least, greatest).filter((_, index, every) => index % Math.ceil(every.length / spread) === 0);
  const drawn = svg('svg', { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, class: 'search-curve', role: 'group', 'aria-label': 'Size and error of all points; the table has the same figures' });
  for (const sqnr of ticks(worst, best)) {
    drawn.append(svg('line', { x1: left, x2: wide - right, y1: y(sqnr), y2: y(sqnr), class: 'grid' }), svg('text', { x: left - 8, y: y(sqnr) + 4, 'text-anchor': 'end' }, `${Math.round(sqnr)} dB`));
  }
  for (const size of sizes) {
    drawn.append(svg('line', { x1: x(size), x2: x(size), y1: top, y2: high - foot, class: 'grid' }), svg('text', { x: x(size), y: high - foot + 18, 'text-anchor': 'middle' }, bytes(Math.round(size))));
  }
  drawn.append(svg('polyline', { points: places.map((place) => place.map((part) => part.toFixed(1)).join(',')).join(' '), class: 'line' }));
  for (const one of measured) drawn.append(svg('circle', { cx: at(one)[0], cy: at(one)[1], r: 3.5, class: 'measured' }));
  const [[cx, cy], [wx, wy]] = marks.map(at);
  drawn.append(
    svg('path', { d: `M${wx - 6} ${wy - 6}L${wx + 6} ${wy + 6}M${wx - 6} ${wy + 6}L${wx + 6} ${wy - 6}`, class: 'without' }),
    svg('path', { d: `M${cx} ${cy - 7}L${cx + 7} ${cy}L${cx} ${cy + 7}L${cx - 7} ${cy}Z`, class: 'chosen' }),
    handle(points, places, chosen, last, drawn),
  );
  return drawn;
}

/**
 * The point that moves.
 *
 * @param {SearchPoint[]} points
 * @param {[number, number][]} places
 * @param {number} chosen
 * @param {number} last
 * @param {SVGSVGElement} drawn
 */
function handle(points, places, chosen, last, drawn) {
  const dot = svg('g', { id: 'search-point', role: 'slider', tabindex: 0, class: 'handle', 'aria-label': 'Point of the curve', 'aria-valuemin': 0, 'aria-valuemax': last },
    svg('circle', { r: 14, class: 'reach' }), svg('circle', { r: 7, class: 'dot' }));
  effect(() => {
    const index = Math.min(point.value, last);
    const [cx, cy] = places[index];
    dot.setAttribute('transform', `translate(${cx.toFixed(1)} ${cy.toFixed(1)})`);
    dot.setAttribute('aria-valuenow', String(index));
    dot.setAttribute('aria-valuetext', `${index === chosen ? 'The chosen point: ' : ''}${inWords(points[index])}`);
  });
  dot.addEventListener('keydown', (event) => {
    const next = moved(event.key, point.peek(), last);
    if (next === null) return;
    event.preventDefault();
    point.value = next;
  });
  const nearest = (/** @type {PointerEvent} */ event) => {
    const box = drawn.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top].map((part) => (part * drawn.viewBox.baseVal.width) / box.width);
    const far = places.map(([cx, cy]) => (cx - px) ** 2 + (cy - py) ** 2);
    point.value = far.indexOf(Math.min(...far));
  };
  drawn.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    dot.focus();
    drawn.setPointerCapture(event.pointerId);
    nearest(event);
  });
  drawn.addEventListener('pointermove', (event) => {
    if (drawn.hasPointerCapture(event.pointerId)) nearest(event);
  });
  return dot;
}
