// @ts-check
/**
 * All that is needed to use a result: its file under the usual names, other variants of the model,
 * the settings with the preprocessing, the exact command, and code that runs it.
 */

import { h } from '../../library/dom.js';
import { download, save } from '../../library/download.js';
import { choice } from '../../library/fields.js';
import { bytes } from '../../library/format.js';
import { effect, signal } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { write } from '../../library/yaml.js';
import { say, sentence } from '../../state/messages.js';
import { done, imageSettings, measuring, model, run } from '../../state/page.js';
import { explicitImagesOf, hasPictures } from '../data/image-settings.js';
import { calibrationServes, releaseSession } from '../run/run.js';
import { triedHere } from '../runtime/matrix-table.js';
import { commandOf, copied } from '../settings/command.js';
import { rangesOf } from './ranges.js';
import { calibrated, isVariant, namesFor, stemOf, variants } from './variants.js';

/** @import { SnippetKind } from '../../types.js' */
/** @import { Done } from '../../state/page.js' */
/** @import { Variant } from './variants.js' */

/** Kinds of snippets: title, ending of the file. @type {[SnippetKind, string, string][]} */
const kinds = [
  ['onnxruntime', 'ONNX Runtime (Python)', '.py'],
  ['onnxruntime-web', 'onnxruntime-web', '.web.mjs'],
  ['transformers.js', 'transformers.js', '.transformers.mjs'],
  ['samples', 'Write samples (Python)', '_samples.py'],
];

/** The name under which the result is downloaded and the code runs it. @type {import('../../library/signals.js').Signal<{ id: number, name: string }>} */
const chosenName = signal({ id: 0, name: '' });
const kind = signal(/** @type {SnippetKind} */ ('onnxruntime'));

export function view() {
  return h('section', { class: 'stack', 'aria-label': 'Files, command and code' }, () => {
    const shown = done.value;
    return shown ? [file(shown), triedHere(), others(), settingsAndCommand(shown), rangesOf(shown), code(shown)] : h('div', { class: 'panel asks' },
      h('h2', { id: 'download-title' }, 'Download'), h('p', {}, 'There is no result yet: quantize the model first. Its files, the settings, the command and code that runs it are then here.'));
  });
}

/** The name of the result. @param {Done} shown */
const nameOf = (shown) => (chosenName.value.id === shown.id ? chosenName.value.name : shown.result.summary.fileName);

/** @param {Done} shown */
function file(shown) {
  const names = namesFor(shown.name, shown.result.summary.fileName, shown.document);
  return h('section', { class: 'panel', 'aria-labelledby': 'download-title' },
    h('h2', { id: 'download-title' }, 'Download'),
    choice('File name', 'download-name', () => nameOf(shown), names.map((name) => [name, name]), (name) => (chosenName.value = { id: shown.id, name })),
    h('p', { class: 'note' }, 'The bytes are the same under each name. transformers.js finds a model by its ending; the first name says the scheme.'),
    h('div', { class: 'row' }, () => download(() => shown.result.file, 'application/octet-stream', nameOf(shown), 'Download model', 'primary')));
}

/** Other variants of the model: each is made when it is wanted. */
function others() {
  const failure = signal('');
  const making = signal('');
  const busy = () => run.value !== null || measuring.value !== null || making.value !== '';
  const all = () => [...(calibrationServes(calibrated.document) ? [calibrated] : []), ...variants];
  /** @param {Variant} variant */
  const make = async ({ ending, document }) => {
    const open = model.peek();
    if (!open || busy()) return;
    [making.value, failure.value] = [ending, ''];
    const name = `${stemOf(open.name)}${ending}.onnx`;
    try {
      releaseSession();
      const made = await open.quantize(document);
      save(made.file, 'application/octet-stream', name);
      say(`${name} is made: ${bytes(made.file.size)}.`);
    } catch (error) {
      failure.value = `${name} could not be made. ${sentence(/** @type {Error} */ (error).message)}`;
      say(failure.value);
    }
    making.value = '';
  };
  return h('section', { class: 'panel variants', 'aria-labelledby': 'variants-title' },
    h('h2', { id: 'variants-title' }, 'Other variants of this model'),
    h('p', { class: 'note' }, 'Each is made with the defaults of its scheme and is not measured: the settings make one that is.'),
    () => table(['File', 'What it is', ''], all().map((variant) => [
      h('code', {}, `${stemOf(model.value?.name ?? 'model')}${variant.ending}.onnx`),
      h('span', {}, variant.what, done.value && isVariant(variant, done.value.document) && h('span', { class: 'note' }, ' (the result above)')),
      h('button', { type: 'button', class: 'small', 'data-variant': variant.ending, 'aria-label': `Make and download ${variant.ending.slice(1)}`, disabled: busy, onclick: () => void make(variant) }, () => (making.value === variant.ending ? 'Making it' : 'Make and download')),
    ])),
    h('p', { class: 'callout bad', role: 'alert', id: 'variant-failure', hidden: () => !failure.value }, () => failure.value));
}

/** @param {Done} shown */
function settingsAndCommand(shown) {
  const whole = { ...shown.document, ...explicitImagesOf(shown.document) };
  const text = write(whole) || '# all defaults\n';
  const stem = stemOf(shown.result.summary.fileName);
  const command = commandOf(shown.document);
  return h('section', { class: 'panel', 'aria-labelledby': 'repeat-title' },
    h('h2', { id: 'repeat-title' }, 'Make it again'),
    h('p', {}, `The command gives the same bytes${command.includes('SAMPLES') ? '; SAMPLES stands for your samples' : ''}.`),
    block('download-command', command, 'The command line'),
    h('h3', {}, hasPictures.value ? 'Settings with the preprocessing' : 'Settings'),
    block('download-settings', text, 'The settings'),
    h('div', { class: 'row' },
      h('button', { type: 'button', class: 'small', onclick: () => save(text, 'text/yaml', `${stem}.settings.yaml`) }, 'Download YAML'),
      h('button', { type: 'button', class: 'small', onclick: () => save(`${JSON.stringify(whole, null, 2)}\n`, 'application/json', `${stem}.settings.json`) }, 'Download JSON')));
}

/** @param {Done} shown */
function code(shown) {
  const text = signal('');
  const failure = signal('');
  let asked = 0;
  const stop = effect(() => {
    const [open, of, name] = [model.value, kind.value, nameOf(shown)];
    const mine = (asked += 1);
    open?.snippet(of, name, hasPictures.value ? imageSettings() : null).then(
      (found) => mine === asked && ([text.value, failure.value] = [found, '']),
      (error) => mine === asked && ([text.value, failure.value] = ['', sentence(error.message)]));
    if (done.value !== shown) queueMicrotask(() => stop());
  });
  const ending = () => kinds.find(([name]) => name === kind.value)?.[2] ?? '';
  return h('section', { class: 'panel', 'aria-labelledby': 'code-title' },
    h('h2', { id: 'code-title' }, 'Run it'),
    choice('Code for', 'snippet-kind', () => kind.value, kinds.map(([name, title]) => [name, title]), (name) => (kind.value = /** @type {SnippetKind} */ (name))),
    h('p', { class: 'callout fair', role: 'alert', id: 'snippet-failure', hidden: () => !failure.value }, () => failure.value),
    () => text.value && h('div', { class: 'gap' },
      block('snippet', text.value, 'The code'),
      h('div', { class: 'row' }, h('button', { type: 'button', class: 'small', onclick: () => save(text.peek(), 'text/plain', `${stemOf(nameOf(shown))}${ending()}`) }, 'Download the code'))));
}

/** A text with a button that copies it. @param {string} id @param {string} content @param {string} what */
function block(id, content, what) {
  const failure = signal('');
  return h('div', { class: 'gap' },
    h('pre', { class: 'code', id, tabindex: 0, role: 'region', 'aria-label': what }, h('code', {}, content)),
    h('div', { class: 'row' }, h('button', { type: 'button', class: 'small', 'aria-label': `Copy: ${what}`, onclick: async () => (failure.value = await copied(what, content)) }, 'Copy')),
    h('p', { class: 'callout bad', role: 'alert', hidden: () => !failure.value }, () => failure.value));
}
