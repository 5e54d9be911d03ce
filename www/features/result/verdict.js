// @ts-check
/** The verdict on the result: ship, look or don't, with its reason and the best next step. */

import { get } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { percent } from '../../library/format.js';
import { sentence } from '../../state/messages.js';
import { comparison, settings } from '../../state/page.js';
import { settingsLocked } from '../../state/surroundings.js';
import { adopt } from '../settings/undo.js';
import { withAll } from './remedies.js';

/** @import { Done } from '../../state/page.js' */
/** @import { NextStep, Settings, Verdict } from '../../types.js' */

/** Titles and kinds of callouts. @type {Record<Verdict['decision'], [string, 'good' | 'fair' | 'bad']>} */
const decisions = {
  ship: ['Ship it', 'good'],
  look: ['Look before you ship it', 'fair'],
  dont: ['Don’t ship it', 'bad'],
};

/** @param {Done} done */
export function verdict(done) {
  const now = comparison.value;
  const judged = now?.id === done.id ? now.found.verdict : null;
  if (!judged) return null;
  const [title, kind] = decisions[judged.decision];
  return h('section', { class: `callout ${kind}`, id: 'verdict', 'data-decision': judged.decision, 'aria-labelledby': 'verdict-title' },
    h('h3', { id: 'verdict-title' }, title),
    h('p', {}, h('code', {}, judged.output), ': ', sentence(judged.reason)),
    now?.whole ? nextStep(judged.next, done.document) : judged.decision !== 'ship' && h('p', { class: 'note' }, 'The best next step is known once the layers are compared.'));
}

/**
 * The best step that the result's settings don't hold yet. It is applied to the current settings,
 * which may have changed since.
 *
 * @param {NextStep[]} steps
 * @param {Settings} made the settings of the result
 */
function nextStep(steps, made) {
  for (const step of steps) {
    if (step.step === 'addSamples') return h('p', {}, `Next: compare on at least ${step.samples} samples that are like those of real use.`);
    const remedy = remedyOf(step, made);
    if (!remedy) continue;
    const apply = () => {
      const now = remedyOf(step, settings.peek().document);
      if (now) adopt(now.document, { now: true });
    };
    return h('div', { class: 'row' },
      h('button', { type: 'button', id: 'next-step', disabled: settingsLocked, onclick: apply }, remedy.title),
      remedy.why && h('span', { class: 'note' }, remedy.why));
  }
  return null;
}

/**
 * The document with a step applied; `null` if the step changes nothing.
 *
 * @param {NextStep} step
 * @param {Settings} document
 */
function remedyOf(step, document) {
  if ((document.scheme ?? 'static') !== 'static' && step.step !== 'keepFloat') return null;
  switch (step.step) {
    case 'keepFloat': {
      const layers = step.layers.filter((name) => get(document, ['by_node', name, 'float']) !== true);
      if (layers.length === 0) return null;
      return { title: `Keep ${named(layers)} float`, why: cause(step), document: withAll(document, layers, { float: true }) };
    }
    case 'widerActivations': {
      const layers = step.layers.filter((name) => !/16/.test(get(document, ['by_node', name, 'activations', 'type']) ?? ''));
      if (layers.length === 0 || isWide(document)) return null;
      return { title: `16 bits for ${named(layers)}`, why: cause(step), document: withAll(document, layers, { activations: { type: wide(document) } }) };
    }
    case 'autoRanges':
      if (document.method === 'auto') return null;
      return { title: 'Choose ranges by their error', why: 'The error is spread over the layers.', document: { ...document, method: 'auto' } };
    case 'widerModel':
      if (isWide(document)) return null;
      return { title: '16 bits for all activations', why: 'The error is spread over the layers.', document: { ...document, activations: { ...document.activations, type: wide(document) } } };
    default:
      return null;
  }
}

/** @param {Settings} document */
const isWide = (document) => /16/.test(document.activations?.type ?? '');

/** The 16-bit type with the signedness of the activations. @param {Settings} document */
const wide = (document) => /** @type {'i16' | 'u16'} */ (document.activations?.type === 'i8' ? 'i16' : 'u16');

/** @param {string[]} layers */
const named = (layers) => (layers.length === 1 ? layers[0] : `the ${layers.length} worst layers`);

/** @param {{ layers: string[], share: number }} step */
const cause = ({ layers, share }) => `${layers.length === 1 ? 'It causes' : 'They cause'} ${percent(share)} of the error${layers.length === 1 ? '' : `: ${layers.join(', ')}`}.`;
