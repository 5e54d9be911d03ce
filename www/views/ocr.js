// @ts-check
/** The text that both models recognize, line by line. */

import { h } from '../dom.js';
import { count, plural } from '../format.js';
import { reading, readLines } from '../ocr.js';
import { measuring, run, samples } from '../state.js';
import { tensorCanvas } from './data.js';
import { table } from './model.js';

/** @import { Done } from '../state.js' */

/** @param {Done} done */
export function readingView(done) {
  if (samples.value.characters.length === 0) return null;
  const now = reading.value;
  return h('section', { class: 'gap', 'aria-labelledby': 'reading-title' },
    h('h3', { id: 'reading-title' }, 'Recognized text'),
    now?.id === done.id ? lines(now.lines) : h('div', { class: 'row' },
      h('button', { type: 'button', id: 'read', disabled: () => run.value !== null || measuring.value !== null, onclick: () => void readLines() }, 'Read the lines with both models'),
      h('span', { class: 'note' }, `${plural(samples.value.refs.length, 'line')}, in float and quantized.`)),
  );
}

/** @param {import('../ocr.js').Line[]} all */
function lines(all) {
  const same = all.filter((line) => line.float === line.quantized).length;
  return h('div', { class: 'gap reading' },
    h('p', { class: same === all.length ? 'callout good' : 'callout fair' }, same === all.length ? `All ${plural(all.length, 'line')} are read the same.` : `${count(same)} of ${plural(all.length, 'line')} are read the same.`),
    table(['Line', 'Float reads', 'Quantized reads', ''], all.map(({ name, decoded, float, quantized }) => [
      tensorCanvas(decoded.previews[0], decoded.first, `Line ${name}`) ?? name, float || '(nothing)', quantized || '(nothing)', float === quantized ? 'same' : h('strong', {}, 'differs'),
    ])));
}
