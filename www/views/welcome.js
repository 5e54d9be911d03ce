// @ts-check
/** The way in: one place to drop a model, the demo, and what will happen. Works before wasm is loaded. */

import { h } from '../dom.js';
import { bytes, plural } from '../format.js';
import { demo, openDemo } from '../demo.js';
import { capabilities, engine } from '../state.js';
import { take } from '../studio.js';
import { pick } from './pick.js';

export function welcome() {
  return h('div', { class: 'welcome' },
    h('h1', {}, 'Make an ONNX model a quarter of its size'),
    h('p', { class: 'lead' }, 'Octet quantizes float models to int8 with your own data, in this page. Nothing to install, nothing is sent anywhere.'),
    h('div', { class: 'drop' },
      h('p', { class: 'drop-title' }, 'Drop an .onnx file here'),
      h('div', { class: 'row centred' }, ...pick('Choose a model', { class: 'primary', id: 'choose-model', accept: '.onnx', multiple: true }, take)),
      h('p', { class: 'note' }, 'If its weights are in files beside it, choose them together with it.'),
    ),
    h('div', {}, () => demoCard()),
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

function demoCard() {
  const about = demo.value;
  if (!about) return null;
  return h('div', { class: 'demo' },
    h('div', {},
      h('strong', {}, `No model at hand? ${about.name}`),
      h('p', { class: 'note' }, `${bytes(about.model.bytes)} and ${plural(about.samples.length, 'labelled sample')}, from this server. `, about.source ?? '', about.license ? ` (${about.license})` : ''),
    ),
    h('button', { type: 'button', id: 'demo', onclick: openDemo }, 'Try the demo'),
  );
}
