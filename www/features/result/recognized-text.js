// @ts-check
/** The text that both models recognize, line by line. */

import { h } from '../../library/dom.js';
import { count, plural } from '../../library/format.js';
import { table } from '../../library/table.js';
import { measuring, run, samples } from '../../state/page.js';
import { tensorCanvas } from '../data/view.js';
import { readLines, recognized } from './ocr.js';

/** @import { Done } from '../../state/page.js' */

/** @param {Done} done */
export function recognizedText(done) {
  if (samples.value.characters.length === 0) return null;
  const now = recognized.value;
  return h('section', { class: 'gap', 'aria-labelledby': 'ocr-title' },
    h('h3', { id: 'ocr-title' }, 'Recognized text'),
    now?.id === done.id ? lines(now.lines) : h('div', { class: 'row' },
      h('button', { type: 'button', id: 'read', disabled: () => run.value !== null || measuring.value !== null, onclick: () => void readLines() }, 'Read the lines with both models'),
      h('span', { class: 'note' }, `${plural(samples.value.refs.length, 'line')}, in float and quantized.`)),
  );
}

/** @param {import('./ocr.js').Line[]} all */
function lines(all) {
  const same = all.filter((line) => line.float === line.quantized).length;
  return h('div', { class: 'gap ocr' },
    h('p', { class: same === all.length ? 'callout good' : 'callout fair' }, same === all.length ? `All ${plural(all.length, 'line')} are read the same.` : `${count(same)} of ${plural(all.length, 'line')} are read the same.`),
    table(['Line', 'Float reads', 'Quantized reads', ''], all.map(({ name, decoded, float, quantized }) => [
      tensorCanvas(decoded.previews[0], decoded.first, `Line ${name}`) ?? name, float || '(nothing)', quantized || '(nothing)', float === quantized ? 'same' : h('strong', {}, 'differs'),
    ])));
}
