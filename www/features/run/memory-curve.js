// @ts-check
/** Memory over time as a picture and as a table. */

import { h, svg } from '../../library/dom.js';
import { bytes, duration } from '../../library/format.js';
import { table } from '../../library/table.js';

/** @import { Memory } from '../../types.js' */
/** @typedef {{ at: number, stage: string, memory: Memory }} Point */

const [width, height] = [600, 90];

/** @param {Point[]} points */
export function curve(points) {
  const last = points[points.length - 1];
  const most = Math.max(...points.map(({ memory }) => Math.max(memory.pages, memory.live)), 1);
  const span = Math.max(last.at - points[0].at, 1);
  /** @param {(memory: Memory) => number} of */
  const line = (of) => points
    .map(({ at, memory }) => `${(((at - points[0].at) / span) * width).toFixed(1)},${(height - 4 - (of(memory) / most) * (height - 10)).toFixed(1)}`)
    .join(' ');
  const text = `Live memory ${bytes(last.memory.live)}, peak ${bytes(last.memory.peak)}; WebAssembly memory ${bytes(last.memory.pages)}`;
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'curve', role: 'img', 'aria-label': text });
  const live = line((memory) => memory.live);
  picture.append(
    svg('polygon', { class: 'area', points: `0,${height} ${live} ${width},${height}` }),
    svg('polyline', { class: 'held', points: line((memory) => memory.pages) }),
    svg('polyline', { class: 'used', points: live }),
  );
  return h('figure', { class: 'chart' }, picture, h('figcaption', {}, h('span', { class: 'key used' }, 'live'), h('span', { class: 'key held' }, 'WebAssembly memory'), h('span', {}, text)));
}

/** A small version without text; the figures are beside it. @param {Point[]} points */
export function spark(points) {
  const [wide, high] = [96, 20];
  const [first, last] = [points[0].at, points[points.length - 1].at];
  const most = Math.max(...points.map(({ memory }) => memory.pages), 1);
  const line = points.map(({ at, memory }) => `${(((at - first) / Math.max(last - first, 1)) * wide).toFixed(1)},${(high - 1 - (memory.live / most) * (high - 2)).toFixed(1)}`).join(' ');
  const picture = svg('svg', { viewBox: `0 0 ${wide} ${high}`, width: String(wide), height: String(high), class: 'curve spark', 'aria-hidden': 'true' });
  picture.append(svg('polyline', { class: 'used', points: line }));
  return picture;
}

/** The memory curve as a table. @param {Point[]} points */
export function curveTable(points) {
  // One row per stage, and the last.
  const rows = points.filter((point, index) => index === points.length - 1 || points[index + 1].stage !== point.stage || index === 0);
  return h('details', {}, h('summary', {}, 'Memory as a table'),
    table(['Stage', 'Time', 'Live', 'Peak', 'WebAssembly memory'], rows.map(({ at, stage, memory }) => [stage, duration(at), bytes(memory.live), bytes(memory.peak), bytes(memory.pages)]), [1, 2, 3, 4]));
}
