// @ts-check
/**
 * The check before a run: operators that will be quantized, operators that stay float with reasons,
 * and problems to fix first. Derived from the model summary, the samples and the settings.
 */

import { needsSamples } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { count, plural, real } from '../../library/format.js';
import { model, modelChanged, randomData, samples, settings } from '../../state/page.js';
import { asProposed, hasPictures, proposal } from '../data/image-settings.js';
import { preview, trial, unusable, usesSamples } from '../data/state.js';
import { forecastView } from './forecast-view.js';

/** @import { ModelSummary } from '../../types.js' */

/** @typedef {{ level: 'good' | 'fair', text: string }} Finding */

/** Fewer samples than this give too narrow ranges. */
const few = 8;
/** Number of reasons listed; the model details have all. */
const listed = 4;

export function preflight() {
  modelChanged.value;
  const open = model.value;
  if (!open || open.wanted.length > 0 || open.card.alreadyQuantized) return null;
  const all = [...operatorFindings(open.card), ...settingsFindings(), ...sampleFindings()];
  const warnings = all.filter(({ level }) => level === 'fair').length;
  return h('section', { class: 'panel', 'aria-labelledby': 'preflight-title' },
    h('h2', { id: 'preflight-title' }, 'Before the run', h('span', { class: 'note' }, warnings === 0 ? ' ready to run' : ` ${plural(warnings, 'note')}`)),
    h('ul', { class: 'preflight' }, ...all.map(({ level, text }) => h('li', {}, h('span', { class: `mark ${level}` }, level === 'good' ? 'OK' : 'Note'), h('span', {}, text)))),
    () => forecastView());
}

/** @param {ModelSummary} card @returns {Finding[]} */
function operatorFindings({ operators, quantizable, float, warnings, parameters }) {
  const scheme = settings.value.document.scheme ?? 'static';
  const nodes = operators.reduce((sum, [, times]) => sum + times, 0);
  /** @type {Finding[]} */
  const findings = warnings.map((text) => ({ level: /** @type {const} */ ('fair'), text }));
  if (scheme !== 'static') {
    const what = { dynamic: 'The weights of matrix products become 8-bit integers; activations are quantized at run time.', weights: 'Weights become 8-bit integers; everything is computed in float.', blocks: 'Constant matrices are quantized block-wise.', float16: `All ${count(parameters)} parameters become half-precision floats.` }[scheme];
    return [...findings, { level: 'good', text: what }];
  }
  const { operators: only, float: kept = [], by_node = {}, by_operator = {}, by_name = {} } = settings.value.document;
  findings.unshift({ level: quantizable > 0 ? 'good' : 'fair', text: `${count(quantizable)} of ${plural(nodes, 'operator')} can be quantized. The result shows how many run in integer arithmetic, and why others do not.` });
  for (const { operator, count: times, reason } of float.slice(0, listed)) findings.push({ level: 'fair', text: `${count(times)} ${operator} ${times === 1 ? 'stays' : 'stay'} float: ${reason}.` });
  if (float.length > listed) findings.push({ level: 'fair', text: `${plural(float.length - listed, 'more kind')} of operators stay float; the reasons are in the model details below.` });
  const byHand = kept.length + [by_node, by_operator, by_name].reduce((sum, scope) => sum + Object.values(scope).filter((one) => one.float).length, 0);
  if (byHand > 0) findings.push({ level: 'fair', text: `Your settings keep ${plural(byHand, 'layer or scope', 'layers or scopes')} float.` });
  if (only && only !== 'all') findings.push({ level: 'fair', text: `Your settings quantize only ${Array.isArray(only) ? only.join(', ') : 'the operators that ONNX Runtime quantizes by default'}.` });
  return findings;
}

/** @returns {Finding[]} what follows from the settings */
function settingsFindings() {
  const { scheme = 'static', guard = true, activations, format } = settings.value.document;
  /** @type {Finding[]} */
  const findings = [];
  if (scheme !== 'static') return findings;
  if (guard === false) findings.push({ level: 'fair', text: 'Mixed precision is off: tensors for which 8 bits are too coarse may ruin the accuracy.' });
  if (/16/.test(activations?.type ?? '')) findings.push({ level: 'fair', text: '16-bit activations are accurate, but few runtimes have fast kernels for them.' });
  if (format === 'simulated') findings.push({ level: 'fair', text: 'A simulated model is as large as the float one: it is for inspection, not for deployment.' });
  return findings;
}

/** @returns {Finding[]} what is known of the samples */
function sampleFindings() {
  const { refs, source, labels, labelFailure } = samples.value;
  const good = refs.length - unusable.value.length;
  const [needed, used] = [needsSamples(settings.value.document), usesSamples(settings.value.document)];
  /** @type {Finding[]} */
  const findings = [];
  if (refs.length === 0) return needed ? [{ level: 'fair', text: 'There are no samples yet: add 10 to 100 representative ones.' }] : [];
  if (source === randomData) findings.push({ level: 'fair', text: 'The samples are random: the result shows how Octet works; its accuracy means nothing.' });
  else if (needed && good < few) findings.push({ level: 'fair', text: `Only ${plural(good, 'sample')}: larger values than these have will be clipped. 10 to 100 are better.` });
  else findings.push({ level: 'good', text: `${plural(good, 'sample')}.` });
  if (good < refs.length) findings.push({ level: 'fair', text: `${count(refs.length - good)} of ${plural(refs.length, 'sample')} can’t be used with the current preprocessing; see Data for reasons and fixes.` });
  if (used && !needed) findings.push({ level: 'good', text: 'The samples show activations that are too large for half precision; what computes them stays float32.' });
  findings.push(...guessFindings());
  if (labelFailure) findings.push({ level: 'fair', text: labelFailure });
  else if (labels.size > 0) findings.push({ level: 'good', text: `${plural(labels.size, 'label')}: the accuracy will be measured.` });
  for (const { input, min, max, std } of preview.value?.decoded?.previews ?? []) {
    if (min === null || max === null) continue;
    if (min === max) findings.push({ level: 'fair', text: `${input ?? 'The input'} is ${real(min)} everywhere in the first sample: is that what the model receives in real use?` });
    else if (hasPictures.value && max > 20 && !(asProposed.value && proposal.value?.preset === 'raw')) findings.push({ level: 'fair', text: `Pixel values are ${real(min)} to ${real(max)}. Most models expect values around 0 to 1: change the preprocessing, unless your model scales them itself.` });
    else if (std !== null && Math.max(Math.abs(min), Math.abs(max)) > 100 * std && std > 0) findings.push({ level: 'fair', text: `${input ?? 'The input'} has outliers (${real(min)} to ${real(max)}, standard deviation ${real(std)}): they make its quantization coarse.` });
  }
  return findings;
}

/** @returns {Finding[]} what of the way images are read nobody knows */
function guessFindings() {
  const guessed = (proposal.value?.reasons ?? []).filter(({ certainty }) => certainty === 'guess').map(({ of }) => ({ size: 'size', resize: 'resize', values: 'values', layout: 'layout' })[of]);
  const { text = '', tried = [], clear } = trial.value ?? {};
  if (hasPictures.value && tried.length > 0) return [{ level: clear ? 'good' : 'fair', text }];
  if (!hasPictures.value || !asProposed.value || guessed.length === 0) return [];
  return [{ level: 'fair', text: `The proposed preprocessing is partly a guess (${guessed.join(', ')}): compare it with the preprocessing used in training.` }];
}
