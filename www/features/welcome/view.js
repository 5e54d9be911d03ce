// @ts-check
/**
 * The welcome view: a drop area for a model, the demos, and the steps. It works before wasm is
 * loaded.
 */

import { named } from '../../files.js';
import { h } from '../../library/dom.js';
import { pick } from '../../library/file-picker.js';
import { bytes, plural } from '../../library/format.js';
import { capabilities, engine, waiting } from '../../state/page.js';
import { embedded, hubAddress } from '../../state/surroundings.js';
import { take } from '../model/open.js';
import { findKeptResults, keptResults, removeKeptResults } from '../storage/kept-results.js';
import { deleteStored, restore, stored } from '../storage/persistence.js';
import { demos, openDemo } from './demo.js';

export function view() {
  void findKeptResults();
  return h('div', { class: 'welcome' },
    h('h1', {}, 'Shrink an ONNX model to a quarter of its size'),
    h('p', { class: 'lead' }, `Octet quantizes float models to int8 with your own data, in this page. Nothing to install${embedded ? '' : hubAddress ? ', nothing of yours is sent' : ', nothing is sent anywhere'}.`),
    h('div', { class: 'drop' },
      h('p', { class: 'drop-title' }, 'Drop an .onnx file here'),
      h('div', { class: 'row centred' }, ...pick('Choose a model', { class: 'primary', id: 'choose-model', accept: '.onnx', multiple: true }, (files) => take(named(files)))),
      h('p', { class: 'note' }, 'If its weights are in files beside it, choose them together with it.'),
      () => waiting.value.length > 0 && h('p', { id: 'waiting', role: 'status' }, `${plural(waiting.value.length, 'file')} of data kept. They become samples when the model is here.`),
      !embedded && !hubAddress && h('p', { class: 'note' }, 'This page reaches no other site. ', h('a', { href: 'hub.html', id: 'to-hub' }, 'Another page searches Hugging Face'), '.'),
    ),
    () => stored.value && h('div', { class: 'panel asks row spread', id: 'stored' },
      h('p', {}, h('strong', {}, stored.value.name), h('span', { class: 'note' }, ` ${bytes(stored.value.bytes)}, kept in this browser from your last visit`)),
      h('span', { class: 'row' },
        h('button', { type: 'button', id: 'restore', class: 'primary', onclick: () => void restore() }, 'Continue'),
        h('button', { type: 'button', onclick: () => void deleteStored() }, 'Forget everything'))),
    () => keptResults.value && h('div', { class: 'panel asks row spread', id: 'kept-results' },
      h('p', {}, h('strong', {}, keptResults.value.names.join(', ')), h('span', { class: 'note' }, ` ${bytes(keptResults.value.bytes)}, converted here, complete or not; open the same model again for it`)),
      h('button', { type: 'button', onclick: () => void removeKeptResults() }, 'Remove')),
    () => demos.value.length > 0 && h('section', { class: 'demos', 'aria-labelledby': 'demos-title' }, h('h2', { id: 'demos-title' }, 'No model at hand?'), h('ul', {}, ...demos.value.map(demoCard))),
    h('ol', { class: 'steps' },
      step('1', 'Open', 'Drop a float model. You see what is in it, and which layers can be int8.'),
      step('2', 'Add data', 'A handful of real samples: .npy, .npz, images or test_data_set folders. Their ranges set the scales.'),
      step('3', 'Download', 'A standard QDQ model for any ONNX runtime, and a YAML report of time and memory.'),
    ),
    () => (engine.value.state === 'failed' || !capabilities.variant) && h('p', { class: 'callout bad', role: 'alert' }, engine.value.message || capabilities.reason),
  );
}

/** @param {string} number @param {string} title @param {string} text */
function step(number, title, text) {
  return h('li', {}, h('span', { class: 'number', 'aria-hidden': 'true' }, number), h('div', {}, h('h2', {}, title), h('p', {}, text)));
}

/** @param {import('./demo.js').Demo} about */
function demoCard(about) {
  const { id, name, what, model, samples, source, license } = about;
  return h('li', { class: 'demo' },
    h('div', {},
      h('strong', {}, name),
      h('p', {}, what),
      h('p', { class: 'note' }, `${bytes(model.bytes)}, ${plural(samples.length, 'sample')}, from this server. `, source ?? '', license ? ` (${license})` : ''),
    ),
    h('button', { type: 'button', id: `demo-${id}`, 'aria-label': `Try it: ${name}`, onclick: () => void openDemo(about) }, 'Try it'),
  );
}
