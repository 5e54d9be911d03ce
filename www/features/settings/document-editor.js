// @ts-check
/**
 * The settings as a document: view, edit, paste, download, and copy as a command line. Errors are
 * explained.
 */

import { canonical } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { save } from '../../library/download.js';
import { effect, signal } from '../../library/signals.js';
import { write } from '../../library/yaml.js';
import { say } from '../../state/messages.js';
import { model, run, settings } from '../../state/page.js';
import { wholeDocument } from '../data/image-settings.js';
import { commandOf, copied } from './command.js';
import { redoable, undoable } from './state.js';
import { adopt, redo, undo } from './undo.js';
import { applyImages, readDocument } from './whole-document.js';

const busy = () => run.value !== null && !run.value.quick;

/** @param {any} document */
const yaml = (document) => write(document) || '# all defaults\n';

/** The command line for the settings. */
const command = () => commandOf(settings.value.document);

/** The buttons of undo, redo and the command line. */
export function documentSteps() {
  const failure = signal('');
  const copy = async () => (failure.value = await copied('The command line', command()));
  return h('div', { class: 'gap' },
    h('div', { class: 'row' },
      h('button', { type: 'button', class: 'small', id: 'undo', disabled: () => busy() || undoable.value.length === 0, onclick: undo }, 'Undo'),
      h('button', { type: 'button', class: 'small', id: 'redo', disabled: () => busy() || redoable.value.length === 0, onclick: redo }, 'Redo'),
      h('button', { type: 'button', class: 'small', id: 'copy-command', onclick: copy }, 'Copy as a command line'),
    ),
    h('p', { class: 'callout bad', role: 'alert', hidden: () => !failure.value }, () => failure.value));
}

export function documentEditor() {
  const failure = signal('');
  const text = h('textarea', {
    id: 'document', rows: 8, spellcheck: false, autocomplete: 'off', 'aria-describedby': 'document-note', 'aria-invalid': () => (failure.value ? 'true' : null),
    disabled: busy,
  });
  effect(() => {
    text.value = yaml(wholeDocument());
    failure.value = '';
  });
  const apply = () => {
    try {
      const { document, images } = readDocument(text.value);
      applyImages(images);
      failure.value = '';
      if (canonical(document) === canonical(settings.peek().document)) say('The settings are unchanged.');
      else say('The settings are applied.');
      adopt(document, { now: true });
    } catch (error) {
      failure.value = `This can’t be read: ${/** @type {Error} */ (error).message}.`;
      say(failure.value);
    }
  };
  const name = () => model.value?.name ?? 'model.onnx';
  const stem = () => name().replace(/\.onnx$/i, '');
  return h('div', { class: 'gap' },
    h('details', { id: 'advanced' },
      h('summary', {}, 'All settings as a document'),
      h('label', { class: 'field' }, h('span', {}, 'YAML or JSON'), text),
      h('p', { class: 'callout bad', role: 'alert', hidden: () => !failure.value }, () => failure.value),
      h('p', { class: 'note', id: 'document-note' }, 'Settings can also be given by operator, name, node or tensor; docs/settings.md lists every key. Unknown keys are refused when the model is quantized.'),
      h('div', { class: 'row' },
        h('button', { type: 'button', class: 'small', id: 'apply-document', disabled: busy, onclick: apply }, 'Apply'),
        h('button', { type: 'button', class: 'small', onclick: () => save(yaml(wholeDocument()), 'text/yaml', `${stem()}.settings.yaml`) }, 'Download YAML'),
        h('button', { type: 'button', class: 'small', onclick: () => save(`${JSON.stringify(wholeDocument(), null, 2)}\n`, 'application/json', `${stem()}.settings.json`) }, 'Download JSON'),
      ),
      h('code', { class: 'command', id: 'command-line' }, command),
    ),
  );
}
