// @ts-check
/** The run history: a plot of size against another measure, and a table. */

import { canonical, inWords } from '../../settings-document.js';
import { h, svg } from '../../library/dom.js';
import { bytes, count, duration, real } from '../../library/format.js';
import { done, runHistory, settings } from '../../state/page.js';
import { settingsLocked } from '../../state/surroundings.js';
import { adopt } from '../settings/undo.js';

/** @import { HistoryEntry } from '../../state/page.js' */

/**
 * Titles of a result's metrics. Figures of the float model are the same for all results, so they
 * are omitted.
 *
 * @type {Record<string, string>}
 */
export const metricNames = { sqnr: 'SQNR, dB', top1: 'Top-1 agreement', cosine: 'Cosine', boxes: 'Boxes matched', accuracy: 'Accuracy', ms: 'Run, ms' };
const [width, height, margin] = [360, 150, { left: 66, right: 14, top: 10, bottom: 30 }];

/** @typedef {{ name: string, up: boolean, of: (one: HistoryEntry) => number }} Axis `up`: whether more is better */

/**
 * The vertical axis: the first measure that all results have, or the number of float operators.
 *
 * @param {HistoryEntry[]} all
 * @returns {Axis}
 */
function axis(all) {
  for (const [key, name, up] of /** @type {[string, string, boolean][]} */ ([['sqnr', 'SQNR, dB', true], ['ms', 'time, ms', false]])) {
    if (all.every((one) => Number.isFinite(one.metrics[key]))) return { name, up, of: (one) => one.metrics[key] };
  }
  return { name: 'operators in float', up: false, of: (one) => one.summary.nodes.filter((node) => !node.quantized).length };
}

/**
 * True if no other result is better in one measure and at least as good in the other.
 *
 * @param {HistoryEntry} one
 * @param {HistoryEntry[]} all
 * @param {Axis} by
 */
const best = (one, all, { of, up }) => !all.some((other) => {
  const [size, mine] = [other.summary.bytesAfter, one.summary.bytesAfter];
  const more = (of(other) - of(one)) * (up ? 1 : -1);
  return size <= mine && more >= 0 && (size < mine || more > 0);
});

export function runHistoryPanel() {
  return h('div', { class: 'run-history' }, () => {
    const all = runHistory.value;
    if (all.length < 2) return null;
    const by = axis(all);
    return h('details', { open: true },
      h('summary', {}, `Run history (${count(all.length)})`),
      h('div', { class: 'run-history-body' },
        h('figure', {}, plot(all, by), h('figcaption', {}, `${by.up ? 'Up' : 'Down'} and left is better. Filled: no other result is better in both. Vertical axis: ${by.name}. The axes do not start at zero (//).`)),
        list(all, by)),
    );
  });
}

/** @param {HistoryEntry[]} all @param {Axis} by */
function plot(all, by) {
  const { name, of } = by;
  const sizes = all.map((one) => one.summary.bytesAfter);
  const values = all.map(of);
  /** @param {number[]} list @param {number} from @param {number} to */
  const scale = (list, from, to) => {
    const [low, high] = [Math.min(...list), Math.max(...list)];
    const pad = (high - low || Math.abs(high) || 1) * 0.12;
    return (/** @type {number} */ value) => from + ((value - low + pad) / (high - low + 2 * pad)) * (to - from);
  };
  const x = scale(sizes, margin.left, width - margin.right);
  const y = scale(values, height - margin.bottom, margin.top);
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'plot', role: 'img', 'aria-label': `Size against ${name} of ${all.length} results; the table beside it has the figures` });
  picture.append(
    svg('line', { class: 'axis', x1: margin.left, y1: height - margin.bottom, x2: width - margin.right, y2: height - margin.bottom }),
    svg('line', { class: 'axis', x1: margin.left, y1: margin.top, x2: margin.left, y2: height - margin.bottom }),
    svg('text', { x: margin.left, y: height - 10 }, bytes(Math.min(...sizes))),
    svg('text', { x: width - margin.right, y: height - 10, 'text-anchor': 'end' }, bytes(Math.max(...sizes))),
    svg('text', { x: margin.left - 6, y: height - margin.bottom, 'text-anchor': 'end' }, real(Math.min(...values))),
    svg('text', { x: margin.left - 6, y: margin.top + 10, 'text-anchor': 'end' }, real(Math.max(...values))),
  );
  // Both axes start beyond zero, which the cut marks show.
  const [left, bottom] = [margin.left, height - margin.bottom];
  picture.append(svg('path', { class: 'axis-cut', d: `M${left + 8} ${bottom + 5}l4 -10m3 10l4 -10M${left - 5} ${bottom - 8}l10 -4m-10 -3l10 -4` }));
  all.forEach((one, index) => {
    const here = one.id === done.value?.id;
    picture.append(
      svg('circle', { class: `dot-mark${best(one, all, by) ? ' best' : ''}${here ? ' here' : ''}`, cx: x(one.summary.bytesAfter), cy: y(of(one)), r: here ? 6 : 4.5 }),
      svg('text', { x: x(one.summary.bytesAfter) + 8, y: y(of(one)) + 4, class: 'number-mark' }, String(index + 1)),
    );
  });
  return picture;
}

/** @param {HistoryEntry[]} all @param {Axis} by */
function list(all, by) {
  const metrics = Object.keys(metricNames).filter((key) => all.some((one) => key in one.metrics));
  const floats = (/** @type {HistoryEntry} */ one) => count(one.summary.nodes.filter((node) => !node.quantized).length);
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Run history' },
    h('table', {},
      h('thead', {}, h('tr', {}, ...['', 'Settings', 'Size', 'In float', 'Time', ...metrics.map((key) => metricNames[key]), ''].map((text, column) => h('th', { scope: 'col', class: [0, 2, 3, 4].includes(column) ? 'figure' : null }, text || h('span', { class: 'unseen' }, column === 0 ? 'Number' : 'Use again'))))),
      h('tbody', {}, ...all.map((one, index) => h('tr', { class: one.id === done.value?.id ? 'chosen' : null },
        h('td', { class: 'figure' }, index + 1), h('td', {}, inWords(one.document), best(one, all, by) && h('span', { class: 'unseen' }, ', among the best')),
        h('td', { class: 'figure' }, bytes(one.summary.bytesAfter)), h('td', { class: 'figure' }, floats(one)), h('td', { class: 'figure' }, duration(one.took)),
        ...metrics.map((key) => h('td', { class: 'figure' }, Number.isFinite(one.metrics[key]) ? real(one.metrics[key]) : '')),
        h('td', {}, canonical(one.document) === canonical(settings.value.document)
          ? h('span', { class: 'note' }, 'current')
          : h('button', { type: 'button', class: 'small', disabled: settingsLocked(), onclick: () => adopt(one.document, { now: true }) }, 'Use again')),
      ))),
    ));
}
