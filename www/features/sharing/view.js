// @ts-check
/** Shares a calibration: saves the statistics of the samples, adds those of others, and ranges of other tools. */

import { named } from '../../files.js';
import { h } from '../../library/dom.js';
import { pick } from '../../library/file-picker.js';
import { measuring, model, run, samples } from '../../state/page.js';
import { addRanges } from './ranges.js';
import { addStatistics, saveStatistics, source } from './statistics.js';

const busy = () => run.value !== null || measuring.value !== null;
const unready = () => busy() || !model.value || model.value.wanted.length > 0;

export function view() {
  return [
    h('p', { class: 'note' }, 'Each person saves the statistics of their own samples and sends the file. One person adds all files and quantizes, as if all samples were here. A file holds ranges and histograms, and no sample.'),
    h('label', { class: 'field' }, h('span', {}, 'Name of these samples'),
      h('input', { id: 'statistics-source', value: source.peek(), maxlength: 60, oninput: (/** @type {Event} */ event) => (source.value = /** @type {HTMLInputElement} */ (event.target).value) })),
    h('div', { class: 'row' },
      h('button', { type: 'button', id: 'save-statistics', disabled: () => unready() || samples.value.refs.length === 0 || source.value.trim() === '', onclick: () => void saveStatistics() }, 'Save statistics'),
      ...pick('Add statistics', { id: 'add-statistics', accept: '.stats', multiple: true, disabled: unready }, (files) => void addStatistics(named(files))),
    ),
    h('p', { class: 'note' }, 'Ranges of another tool take the place of samples: a calibration table of ONNX Runtime or TensorRT, encodings of AIMET, or JSON {"tensor": [min, max]}.'),
    h('div', { class: 'row' }, ...pick('Add ranges', { id: 'add-ranges', disabled: unready }, (files) => void addRanges(named(files)[0]))),
  ];
}
