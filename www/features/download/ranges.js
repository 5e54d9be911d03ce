// @ts-check
/** The ranges of a result, in the formats of other tools. */

import { h } from '../../library/dom.js';
import { save } from '../../library/download.js';
import { choice } from '../../library/fields.js';
import { signal } from '../../library/signals.js';
import { say, sentence } from '../../state/messages.js';
import { model } from '../../state/page.js';
import { stemOf } from './variants.js';

/** @import { RangeFormat } from '../../types.js' */
/** @import { Done } from '../../state/page.js' */

/** Formats: title, ending of the file, and true if they hold scales of a QDQ model. @type {[RangeFormat, string, string, boolean][]} */
const formats = [
  ['octet', 'Octet (JSON)', '.ranges.json', false],
  ['onnxruntime', 'ONNX Runtime, calibration cache (JSON)', '.calibration.json', false],
  ['onnxruntime-flatbuffers', 'ONNX Runtime, table for TensorRT (FlatBuffers)', '.flatbuffers', false],
  ['onnxruntime-text', 'ONNX Runtime, table as text', '.calibration.txt', false],
  ['tensorrt', 'TensorRT, calibration cache', '.cache', false],
  ['aimet', 'AIMET, encodings 1.0.0', '.encodings', true],
  ['aimet-0.6.1', 'AIMET, encodings 0.6.1', '.0.6.1.encodings', true],
];

const format = signal(/** @type {RangeFormat} */ ('octet'));

/** @param {Done} shown */
export function rangesOf(shown) {
  const { ranges, summary } = shown.result;
  if (Object.keys(ranges).length === 0) return null;
  const notes = signal(/** @type {string[]} */ ([]));
  const failure = signal('');
  const write = async () => {
    const open = model.peek();
    if (!open) return;
    [notes.value, failure.value] = [[], ''];
    const name = `${stemOf(summary.fileName)}${formats.find(([one]) => one === format.peek())?.[2]}`;
    try {
      const written = await open.writeRanges(format.peek(), shown.result);
      save(written.file, 'application/octet-stream', name);
      notes.value = written.notes;
      say(`${name} is saved.`);
    } catch (error) {
      failure.value = sentence(/** @type {Error} */ (error).message);
    }
  };
  return h('section', { class: 'panel', 'aria-labelledby': 'ranges-title' },
    h('h2', { id: 'ranges-title' }, 'Ranges for other tools'),
    h('p', { class: 'note' }, 'The ranges of the activations, as other quantizers read them. Add such a file under “Share a calibration” to quantize by it.'),
    choice('Format', 'ranges-format', () => format.value, formats.map(([name, title]) => [name, title]), (name) => {
      [notes.value, failure.value] = [[], ''];
      format.value = /** @type {RangeFormat} */ (name);
    }),
    h('div', { class: 'row' }, h('button', { type: 'button', class: 'small', id: 'save-ranges', onclick: () => void write() }, 'Download ranges')),
    () => notes.value.map((note) => h('p', { class: 'note ranges-note' }, sentence(note))),
    h('p', { class: 'callout bad', role: 'alert', id: 'ranges-failure', hidden: () => !failure.value }, () => failure.value));
}
