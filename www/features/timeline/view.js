// @ts-check
/**
 * The timeline of the last calibrated run: stages, samples, memory and its growth, and the layers
 * of one run, also as tables.
 */

import { h, svg } from '../../library/dom.js';
import { bytes, count, duration, plural } from '../../library/format.js';
import { fact, table } from '../../library/table.js';
import { done, run } from '../../state/page.js';
import { curve, curveTable } from '../run/memory-curve.js';
import { layerLanes } from './layer-lanes.js';

/** @import { Run } from '../../state/page.js' */
/** @typedef {{ name: string, from: number, to: number, samples: number, pages: number, grown: number }} Stage */

export function view() {
  return h('section', { class: 'panel', 'aria-labelledby': 'timeline-title' },
    h('h2', { id: 'timeline-title' }, 'Timeline'),
    () => {
      const points = run.value && !run.value.quick ? run.value.curve : done.value?.curve ?? [];
      return points.length > 1 ? timelineOf(points) : h('p', { class: 'note' }, 'After a run this shows its stages, its samples and its memory over time.');
    },
    () => done.value && layerLanes(),
  );
}

/**
 * Consecutive checkpoints with one name form a stage; it ends where the next begins.
 *
 * @param {Run['curve']} points
 * @returns {Stage[]}
 */
function stages(points) {
  /** @type {Stage[]} */
  const found = [];
  points.forEach((point, index) => {
    const next = points[index + 1];
    if (!next) return;
    let stage = found.at(-1);
    if (!stage || stage.name !== point.stage) {
      stage = { name: point.stage, from: point.at, to: point.at, samples: 0, pages: point.memory.pages, grown: 0 };
      found.push(stage);
    }
    stage.to = next.at;
    stage.samples = Math.max(stage.samples, point.done ?? 0, next.stage === point.stage ? (next.done ?? 0) : 0);
    if (next.memory.pages > point.memory.pages) stage.grown += 1;
    stage.pages = next.memory.pages;
  });
  return found;
}

/** @param {Run['curve']} points */
function timelineOf(points) {
  const all = stages(points);
  const [first, last] = [points[0], points[points.length - 1]];
  const growths = all.reduce((sum, stage) => sum + stage.grown, 0);
  const span = Math.max(last.at, 1);
  // The final width, so that letters keep their size.
  const [wide, line] = [Math.min(1000, Math.max(300, document.documentElement.clientWidth - 60)), 30];
  const picture = svg('svg', { viewBox: `0 0 ${wide} ${all.length * line}`, class: 'lanes', role: 'img', 'aria-label': `${all.length} stages over ${duration(last.at)}; the table below has their times` });
  all.forEach((stage, index) => {
    const from = (stage.from / span) * wide;
    const long = Math.max(((stage.to - stage.from) / span) * wide, 1.5);
    const text = `${stage.name}, ${duration(stage.to - stage.from)}`;
    // The text is beside a short bar and on a long one.
    const place = long > text.length * 8 + 20 ? { x: from + 10, class: 'on' } : from > wide * 0.6 ? { x: from - 8, 'text-anchor': 'end' } : { x: from + long + 8 };
    picture.append(svg('rect', { x: from, y: index * line + 4, width: long, height: line - 8, rx: 4 }));
    // Marks for the ends of samples, from the checkpoints.
    for (const point of points.filter((one) => one.stage === stage.name && one.done)) {
      picture.append(svg('line', { class: 'tick', x1: (point.at / span) * wide, x2: (point.at / span) * wide, y1: index * line + 5, y2: (index + 1) * line - 5 }));
    }
    picture.append(svg('text', { y: index * line + 20, ...place }, text));
  });
  return h('div', { class: 'stack' },
    h('dl', { class: 'facts' },
      ...fact('Whole run', duration(last.at)), ...fact('Peak live memory', bytes(last.memory.peak)), ...fact('WebAssembly memory at the start', bytes(first.memory.pages)),
      ...fact('At the end', bytes(last.memory.pages)), ...fact('Growths', count(growths)),
    ),
    picture,
    table(['Stage', 'Start', 'Duration', 'Samples', 'WebAssembly memory at its end', 'Growths'], all.map((stage) => [
      stage.name, duration(stage.from), duration(stage.to - stage.from), stage.samples > 0 ? plural(stage.samples, 'sample') : '', bytes(stage.pages), count(stage.grown),
    ]), [1, 2, 3, 4, 5]),
    h('h3', {}, 'Memory'),
    curve(points), curveTable(points),
    h('p', { class: 'note' }, 'WebAssembly memory only grows; it is released when the engine restarts. Growths between two checkpoints count as one.'),
  );
}
