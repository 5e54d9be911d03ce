// @ts-check
/** The model: a short form at the side, all details in the centre, and its missing files. */

import { named } from '../../files.js';
import { h } from '../../library/dom.js';
import { pick } from '../../library/file-picker.js';
import { bytes, count, plural } from '../../library/format.js';
import { fact, table } from '../../library/table.js';
import { signal } from '../../library/signals.js';
import { model, modelChanged, run } from '../../state/page.js';
import { embedded, linkOfModel } from '../../state/surroundings.js';
import { take } from './open.js';
import { taskName, taskSentence } from '../data/tasks.js';

const busy = () => run.value !== null;

export function view() {
  return h('section', { class: 'panel', 'aria-labelledby': 'model-title' },
    h('h2', { id: 'model-title', tabindex: -1, 'data-focus': 'ready' }, 'Model'),
    () => {
      const open = model.value;
      modelChanged.value;
      if (!open) return null;
      const { card } = open;
      return [
        h('p', { class: 'file' }, h('strong', {}, card.name)),
        h('p', { class: 'note' }, [taskName(card), bytes(whole(card)), plural(card.parameters, 'parameter')].filter(Boolean).join(', ')),
      ];
    },
    h('div', { class: 'row' }, ...pick('Open another model', { id: 'choose-model', accept: '.onnx', multiple: true, disabled: busy }, (files) => take(named(files)))),
    () => !embedded && linkOfModel() && copying(),
  );
}

/** A model that came by a link is passed on by one. */
function copying() {
  const failure = signal('');
  const copy = async () => (failure.value = await (await import('./copy-link.js')).copyLink());
  return h('div', { class: 'gap' },
    h('div', { class: 'row' }, h('button', { type: 'button', class: 'quiet', id: 'copy-link', onclick: copy }, 'Copy the link')),
    h('p', { class: 'note' }, 'It names the files of the link on this server, with the settings as they are now. Samples that you add are not part of it.'),
    h('p', { class: 'callout bad', role: 'alert', hidden: () => !failure.value }, () => failure.value));
}

/** Asks for the external data files by name. */
export function wantedFiles() {
  modelChanged.value;
  const wanted = model.value?.wanted ?? [];
  if (wanted.length === 0) return null;
  return h('section', { class: 'panel asks' },
    h('h2', {}, 'This model keeps its weights in external files'),
    h('p', {}, 'Add these files, which were saved together with the model:'),
    h('ul', {}, ...wanted.map((name) => h('li', {}, h('code', {}, name)))),
    h('div', { class: 'row' }, ...pick(wanted.length === 1 ? 'Choose the file' : 'Choose the files', { class: 'primary', id: 'choose-external', multiple: true }, (files) => take(named(files)))),
  );
}

export function modelCard() {
  modelChanged.value;
  const open = model.value;
  if (!open) return null;
  const { card } = open;
  const nodes = card.operators.reduce((sum, [, times]) => sum + times, 0);
  return h('section', { class: 'panel', 'aria-labelledby': 'card-title' },
    h('h2', { id: 'card-title' }, 'Model details'),
    ...card.warnings.map((text) => h('p', { class: 'callout fair' }, text)),
    h('p', { id: 'task' }, taskSentence(card)),
    h('dl', { class: 'facts' },
      ...fact('Size', bytes(whole(card))),
      ...fact('Parameters', count(card.parameters)),
      ...fact('Operators', count(nodes)),
      ...fact('Opset', String(card.opset)),
      ...fact('Producer', card.producer || 'unknown'),
    ),
    h('p', { class: 'forecast' }, meter(card.quantizable, nodes), h('span', {}, h('strong', {}, `${count(card.quantizable)} of ${count(nodes)}`), ' operators can be quantized.')),
    h('h3', {}, 'Inputs and outputs'),
    table(['', 'Name', 'Type', 'Shape'], [
      ...card.inputs.map((port) => ['in', h('code', {}, port.name), port.element, port.shape]),
      ...card.outputs.map((port) => ['out', h('code', {}, port.name), port.element, port.shape]),
    ]),
    card.float.length > 0 && h('h3', {}, 'Stays float'),
    card.float.length > 0 && table(['Operator', 'Nodes', 'Why'], card.float.map((one) => [one.operator, count(one.count), one.reason]), [1]),
    h('details', {},
      h('summary', {}, `All ${plural(card.operators.length, 'operator type')}`),
      table(['Operator', 'Nodes'], card.operators.map(([name, times]) => [name, count(times)]), [1]),
    ),
    h('details', {},
      h('summary', {}, 'Checksum and IR version'),
      h('dl', { class: 'facts wide' }, ...fact('SHA-256', h('code', { class: 'long' }, card.sha256)), ...fact('IR version', String(card.irVersion))),
    ),
  );
}

/** The size of the model with its external data. @param {import('../../types.js').ModelSummary} card */
const whole = (card) => card.dataFiles.reduce((sum, file) => sum + file.bytes, card.bytes);

/** @param {number} part @param {number} whole */
function meter(part, whole) {
  return h('meter', { min: 0, max: Math.max(1, whole), value: String(part), 'aria-hidden': 'true' });
}
