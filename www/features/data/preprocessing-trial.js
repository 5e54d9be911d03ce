// @ts-check
/**
 * Runs the float model on some labelled pictures with each usual preprocessing, and takes the one
 * with which it is right most often. Loaded when the first labels are there.
 */

import { batch } from '../../library/signals.js';
import { plural } from '../../library/format.js';
import { inBackground } from '../../state/background-task.js';
import { say, sentence } from '../../state/messages.js';
import { model, presets, samples, settings } from '../../state/page.js';
import { start } from '../../state/session.js';
import { isPicture } from '../../files.js';
import { proposal } from './image-settings.js';
import { classesOf } from './labels.js';
import { byChance, distinct, exchanged, judged, named, ranked, spread, usualWays } from './preprocessings.js';
import { checkSamples } from './sample-check.js';
import { trial, unusable } from './state.js';

/** @import { NamedFile } from '../../types.js' */
/** @import { Octet } from '../../octet.js' */
/** @import { Model } from '../../model.js' */
/** @import { Way } from './preprocessings.js' */
/** @import { Tried } from './state.js' */

/** Pictures of the first round, in which all ways are tried, and of the second. */
const [few, most] = [8, 20];
/** Ways that come to the second round, each in both channel orders. */
const finalists = 2;

/** @typedef {{ name: string, label: number, files: NamedFile[] }} Picture */
/** @typedef {Tried & { way: Way, seen: Set<string> }} Entry */

/** The model and the pictures of the last trial. */
let before = { model: /** @type {Model | null} */ (null), pictures: '' };

/** The labelled pictures that are usable as far as is known. @returns {Picture[]} */
function labelledPictures() {
  const { refs, files, labels } = samples.peek();
  const bad = new Set(unusable.peek().map((one) => one.sample));
  return refs.flatMap(({ name, parts }) => {
    const [label, own] = [labels.get(name), files.filter((file) => parts.includes(file.path))];
    return label !== undefined && !bad.has(name) && own.length === 1 && isPicture(own[0]) ? [{ name, label: Number(label), files: own }] : [];
  });
}

/** @param {{ again?: boolean }} [how] `again`: also if these pictures were tried before */
export async function tryAll({ again = false } = {}) {
  const open = model.peek();
  const classes = classesOf(open?.card.outputs[0]?.shape);
  const pictures = spread(labelledPictures(), ({ label }) => String(label), most);
  if (!open || open.wanted.length > 0 || open.card.alreadyQuantized || classes === null || pictures.length < 2) return;
  const key = JSON.stringify(pictures.map(({ name, label }) => [name, label]));
  if (!again && before.model === open && before.pictures === key) return;
  before = { model: open, pictures: key };
  trial.value = { state: 'running', text: '', tried: [] };
  const error = await inBackground('Trying preprocessings with the labels', async (signal, onProgress) => {
    const octet = await start();
    const [{ blob }, ...data] = open.files;
    const session = await octet.createSession(blob, { name: open.name, data });
    try {
      const tried = await rounds(open, pictures, classes, (inputs) => session.run(inputs), (done, of) => {
        signal.throwIfAborted();
        onProgress({ stage: 'Trying preprocessings with the labels', done, of, unit: 'steps' });
      });
      signal.throwIfAborted();
      decide(tried, classes);
    } finally {
      session.close().catch(() => {});
    }
  });
  if (trial.peek()?.state !== 'running') return;
  trial.value = error ? { state: 'done', text: `The preprocessings could not be tried with the labels. ${sentence(/** @type {Error} */ (error).message)}`, tried: [] } : null;
}

/**
 * Both rounds: all ways on a few pictures, then the best of them on all, in both channel orders.
 *
 * @param {Model} open
 * @param {Picture[]} pictures
 * @param {number} classes
 * @param {(inputs: import('../../types.js').OutputTensor[]) => Promise<Record<string, import('../../types.js').OutputTensor>>} run
 * @param {(done: number, of: number) => void} progress throws where the trial was stopped
 * @returns {Promise<Entry[]>}
 */
async function rounds(open, pictures, classes, run, progress) {
  const { preset, image } = settings.peek();
  const all = presets.peek();
  const unsure = proposal.peek()?.reasons.some(({ of, certainty }) => of === 'layout' && certainty === 'guess');
  const shape = /** @type {string} */ (open.card.inputs[0]?.shape ?? '').split(/[^\w?]+/);
  const colour = shape.includes('3') || Boolean(unsure);
  /** @type {Entry[]} */
  const entries = usualWays(all, { preset, image }, unsure ? ['nchw', 'nhwc'] : []).map((way) => entry(way));
  const first = pictures.slice(0, few);
  let [done, of] = [0, entries.length * first.length + finalists * (colour ? 2 : 1) * pictures.length];
  const output = open.card.outputs[0].name;
  /** @param {Entry[]} which @param {Picture[]} on */
  const round = async (which, on) => {
    for (const { name, label, files } of on) {
      for (const one of which) {
        if (one.seen.has(name)) continue;
        progress(done, of);
        done += 1;
        one.seen.add(name);
        // A picture that can't be read, or a shape that the model refuses, counts as not right.
        const answer = await open.tensors(files, { image: { ...all[one.way.preset], ...one.way.image } }).then(run).catch(() => null);
        one.of += 1;
        const scores = answer?.[output]?.data;
        if (!scores || typeof scores[0] === 'bigint') continue;
        const { right, share } = judged(/** @type {ArrayLike<number>} */ (scores), classes, label);
        one.right += Number(right);
        one.share += share;
      }
    }
  };
  await round(entries, first);
  const [current] = entries;
  const best = ranked(entries).slice(0, finalists);
  const second = distinct([...best.map(({ way }) => way), ...(colour ? best.map(({ way }) => exchanged(way, all)) : [])], all);
  const known = new Map(entries.map((one) => [one.way, one]));
  const last = [...new Set([current, ...second.map((way) => known.get(way) ?? entry(way))])];
  of = done + last.reduce((sum, one) => sum + pictures.length - one.seen.size, 0);
  await round(last, pictures);
  return [...new Set([current, ...last, ...entries])];
}

/** @param {Way} way @returns {Entry} */
const entry = (way) => ({ way, name: named(way, presets.peek()), right: 0, of: 0, share: 0, seen: new Set() });

/** Takes the best way, and says so. @param {Entry[]} tried the current way first @param {number} classes */
function decide(tried, classes) {
  const [current] = tried;
  const best = ranked(tried.filter((one) => one.of === current.of))[0];
  const clear = !byChance(best, classes);
  const taken = clear && best !== current ? best.way : undefined;
  const on = `is right on ${best.right} of ${plural(best.of, 'picture')}`;
  const text = !clear
    ? `With no usual preprocessing is the float model right on the labels more often than by chance (${best.right} of ${best.of} at most). The proposal is kept; its classes may be numbered otherwise than the labels.`
    : taken
      ? `Chosen by the labels: with “${best.name}” the float model ${on}; with “${current.name}”, as before, on ${current.right}.`
      : `The labels agree with this preprocessing: the float model ${on}, and with no other usual one more often.`;
  batch(() => {
    trial.value = { state: 'done', text, tried: ranked(tried).map(({ name, right, of, share }) => ({ name, right, of, share })), taken, clear };
    if (taken) settings.value = { ...settings.peek(), ...taken };
  });
  say(text);
  if (taken) void checkSamples();
}
