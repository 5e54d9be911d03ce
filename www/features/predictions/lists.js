// @ts-check
/** Answers as lists: classes with their probabilities, neighbours, and plain numbers. */

import { neighbours } from '../../answers/vectors.js';
import { h } from '../../library/dom.js';
import { percent, plural, real } from '../../library/format.js';
import { table } from '../../library/table.js';
import { samples } from '../../state/page.js';
import { isPicture, isSound } from '../../files.js';
import { canvasOf, filesOf, seenPicture, thumbnail } from './picture.js';
import { captionOf } from './texts.js';
import { scored } from './words.js';

/** @import { ClassesAnswer, NumbersAnswer, RankedClass, VectorAnswer } from '../../types.js' */
/** @import { Part } from './words.js' */

/** @type {Part<ClassesAnswer>} */
export async function classes({ sample, answer, naming }) {
  const label = samples.peek().labels.get(sample);
  const marks = (/** @type {RankedClass[]} */ ranked) => (label === undefined || ranked.length === 0 ? '' : ranked[0].number === Number(label) ? ': right by the label' : ': wrong by the label');
  const list = (/** @type {string} */ title, /** @type {RankedClass[]} */ ranked) => h('figure', {},
    h('figcaption', {}, title, marks(ranked)),
    h('ol', { class: 'bars' }, ...ranked.map(({ number, share }) => h('li', {}, h('span', { class: 'bar-name' }, naming(number)), h('span', { class: 'figure' }, scored(share, answer.shares)), bar(share)))));
  return [
    ...await inputOf(sample),
    list('Float', answer.float), list('Quantized', answer.quantized),
    ...(label === undefined ? [] : [h('p', { class: 'note whole' }, `By its label it is ${naming(Number(label))}.`)]),
  ];
}

/** @param {number} share */
function bar(share) {
  const part = h('span', { class: 'share-part' });
  part.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return h('span', { class: 'share-bar', 'aria-hidden': 'true' }, part);
}

/** The input, where it is a picture. @param {string} sample @returns {Promise<Node[]>} */
export async function inputOf(sample) {
  const seen = filesOf(sample).some((file) => isPicture(file) || !isSound(file)) ? await seenPicture(sample) : null;
  return seen ? [h('figure', {}, h('figcaption', {}, 'Input'), canvasOf(seen, `The sample ${sample}`))] : [];
}

/** @type {Part<VectorAnswer>} */
export async function vectors({ sample, all }) {
  const vectorsOf = (/** @type {'float' | 'quantized'} */ which) => all.map(({ answer }) => /** @type {VectorAnswer} */ (answer)[which]);
  const found = neighbours(vectorsOf('float'), vectorsOf('quantized'), all.findIndex((one) => one.sample === sample));
  if (found.float.length === 0) return [h('p', { class: 'note' }, 'With more samples, the nearest ones are listed here.')];
  const captions = await Promise.all(all.map((one) => captionOf(one.sample)));
  const own = await captionOf(sample);
  const moved = (/** @type {number} */ now, /** @type {number} */ before, /** @type {string} */ other) => (now === before ? 'same place' : `place ${before + 1} ${other}`);
  const list = (/** @type {string} */ title, /** @type {typeof found.float} */ ranked, /** @type {string} */ other) => h('figure', {},
    h('figcaption', {}, `${title}: nearest samples`),
    h('ol', { class: 'bars' }, ...ranked.map(({ sample: at, cosine, before }, place) => h('li', {},
      h('span', { class: 'bar-name' }, thumbnail(all[at].sample), captions[at]), h('span', { class: 'figure' }, cosine.toFixed(3)),
      place === before ? h('span', { class: 'note' }, moved(place, before, other)) : h('strong', {}, moved(place, before, other))))));
  return [...await inputOf(sample), h('p', { class: 'whole' }, own === sample ? '' : `“${own}”`), list('Float', found.float, 'quantized'), list('Quantized', found.quantized, 'in float')];
}

/** @type {Part<NumbersAnswer>} */
export async function numbers({ sample, answer }) {
  const values = (/** @type {number[]} */ all, /** @type {number[]} */ shape) => `${all.map(real).join(', ')}${shape.reduce((size, side) => size * side, 1) > all.length ? ' …' : ''}`;
  const rows = answer.outputs.map(({ name, shape, float, quantized, apart }) => [h('code', {}, name), shape.join('×') || '1', values(float, shape), values(quantized, shape), percent(apart)]);
  return [
    ...(answer.why ? [h('p', { class: 'callout fair whole' }, `${answer.why} The first values of the outputs stand here instead.`)] : []),
    ...(answer.row ? [] : await inputOf(sample)),
    h('div', { class: 'whole' }, table(['Output', 'Shape', 'Float', 'Quantized', 'Difference'], rows, [4])),
  ];
}

/** The values of a row, with the names of its columns where the table has as many. @param {string} sample @param {number[]} row */
export async function rowOf(sample, row) {
  const file = samples.peek().textFiles.find(({ path }) => sample.startsWith(`${path}:`));
  const head = file ? (await file.blob.slice(0, 1 << 16).text()).split(/\r?\n/)[0].split(/[,;\t]/) : [];
  const names = row.map((_, at) => (head.length === row.length ? head[at].trim().replace(/^"|"$/g, '') : `column ${at + 1}`));
  return h('div', { class: 'whole' }, table(['Column', 'Value'], row.map((value, at) => [names[at], real(value)]), [1]), h('p', { class: 'note' }, `${plural(row.length, 'value')} of the row.`));
}
