// @ts-check
/**
 * Checks the samples whenever they or the preprocessing change. The first usable one is shown, and
 * every unusable one is listed.
 */

import { isPicture } from '../../files.js';
import { plural } from '../../library/format.js';
import { batch } from '../../library/signals.js';
import { aborted, say, sentence } from '../../state/messages.js';
import { model, randomData, run, sampleSettings, samples } from '../../state/page.js';
import { preview, unusable } from './state.js';

/** @import { UnusableSample, NamedFile, SampleRef } from '../../types.js' */
/** @import { Model } from '../../octet.js' */

/** Number of samples per call, so that the worker can answer other calls in between. */
const portion = 8;
/** Number of undecodable samples to skip in search of one to show. */
const tries = 5;

/** Counts checks; a new one replaces the one before. */
let checks = 0;

/** Decodes the first sample with the current settings, then checks all. */
export async function checkSamples() {
  const mine = ++checks;
  const open = model.peek();
  const { refs } = samples.peek();
  unusable.value = [];
  if (!open || refs.length === 0 || open.wanted.length > 0) {
    preview.value = null;
    return;
  }
  const still = () => mine === checks;
  await showFirst(open, still);
  if (still()) void checkAll(open, still);
}

/** The samples without a known problem. @returns {SampleRef[]} */
function usable() {
  const bad = new Set(unusable.peek().map((one) => one.sample));
  return samples.peek().refs.filter((ref) => !bad.has(ref.name));
}

/** @param {Model} open @param {() => boolean} still */
async function showFirst(open, still) {
  for (let left = tries; left > 0; left -= 1) {
    const first = usable()[0] ?? samples.peek().refs[0];
    const parts = filesOf(first);
    const picture = parts.find(isPicture)?.blob ?? null;
    try {
      const decoded = await open.preview(parts, sampleSettings());
      if (still()) preview.value = { decoded, failure: '', picture, name: first.name };
      return;
    } catch (error) {
      if (!still() || aborted(error)) return;
      const message = sentence(/** @type {Error} */ (error).message);
      note([{ sample: first.name, reason: message.replace(`sample ${first.name}: `, '').replace(`Sample ${first.name}: `, ''), asksForSize: false }]);
      if (usable().length > 0 && left > 1) continue;
      preview.value = { decoded: null, failure: message, picture, name: first.name };
      say(message);
      return;
    }
  }
}

/** @param {Model} open @param {() => boolean} still */
async function checkAll(open, still) {
  const { refs, source } = samples.peek();
  // Random samples fit by construction.
  if (source === randomData) return;
  for (let at = 0; at < refs.length; at += portion) {
    // A run checks samples itself and must not wait.
    if (!still() || run.peek()) return;
    const files = refs.slice(at, at + portion).flatMap(filesOf);
    try {
      const list = await open.check(files, sampleSettings());
      if (still()) note(list);
    } catch {
      return; // whatever it is, the run says it
    }
  }
  if (!still()) return;
  const bad = unusable.peek();
  if (bad.length > 0) say(`${bad.length} of ${plural(refs.length, 'sample')} can’t be used with the current preprocessing.`);
  const shown = preview.peek();
  if (shown && bad.some((one) => one.sample === shown.name) && usable().length > 0) await showFirst(open, still);
}

/** @param {SampleRef} ref @returns {NamedFile[]} */
function filesOf(ref) {
  return samples.peek().files.filter((file) => ref.parts.includes(file.path));
}

/** @param {UnusableSample[]} list */
function note(list) {
  const known = unusable.peek();
  const all = [...known.filter((old) => !list.some((one) => one.sample === old.sample)), ...list];
  if (list.length > 0) unusable.value = all.sort((a, b) => place(a) - place(b));
}

/** @param {UnusableSample} one */
const place = (one) => samples.peek().refs.findIndex((ref) => ref.name === one.sample);

/**
 * Leaves out samples with their reasons; they can be restored.
 *
 * @param {{ sample: string, reason: string }[]} which
 * @returns {NamedFile[]} the files that are left
 */
export function setAside(which) {
  const { files, refs, skipped, ...about } = samples.peek();
  const reasons = new Map(which.map((one) => [one.sample, one.reason]));
  const out = refs.filter((ref) => reasons.has(ref.name));
  if (out.length === 0) return files;
  const gone = new Set(out.flatMap((ref) => ref.parts));
  const left = files.filter((file) => !gone.has(file.path));
  batch(() => {
    samples.value = {
      ...about,
      files: left,
      refs: refs.filter((ref) => !reasons.has(ref.name)),
      skipped: [...skipped, ...out.map((ref) => ({ sample: ref.name, reason: reasons.get(ref.name) ?? '', files: files.filter((file) => ref.parts.includes(file.path)) }))],
    };
    unusable.value = unusable.peek().filter((one) => !reasons.has(one.sample));
  });
  return left;
}

/** Leaves out unusable samples. @param {UnusableSample[]} which */
export function skip(which) {
  const shown = preview.peek()?.name;
  setAside(which);
  const { refs } = samples.peek();
  say(`${plural(which.length, 'sample')} left out; ${plural(refs.length, 'sample')} remain.`);
  if (refs.length === 0 || which.some((one) => one.sample === shown)) void checkSamples();
}
