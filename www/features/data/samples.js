// @ts-check
/** Actions on the samples: add them with their labels, remove them, change how images are read. */

import { isText, isTokenizer, otherPicture } from '../../files.js';
import { plural } from '../../library/format.js';
import { stopMeasuring } from '../../state/background-task.js';
import { fail, problem, say } from '../../state/messages.js';
import { model, noSamples, randomData, samples, settings } from '../../state/page.js';
import { start } from '../../state/session.js';
import { hasPictures, proposal } from './image-settings.js';
import { classesOf, labelled, mayBeLabels } from './labels.js';
import { checkSamples } from './sample-check.js';
import { chosenByHand, preview, trial, unusable } from './state.js';
import { hasTexts, tabled, tokenized } from './texts.js';

/** @import { NamedFile, SampleRef } from '../../types.js' */
/** @import { PageSettings, Samples } from '../../state/page.js' */

/**
 * Adds samples, files with their labels, and texts with their tokenizer.
 *
 * @param {NamedFile[]} given
 * @param {Partial<Pick<Samples, 'source' | 'labels' | 'names' | 'characters'>>} [about] what a demo says of its own
 * @param {{ texts?: boolean }} [again] `texts`: the texts are tokenized again
 */
export async function addSamples(given, about, again = {}) {
  const files = await decodable(given);
  if (!files) return;
  const before = samples.peek();
  const replaced = (/** @type {NamedFile} */ old) => files.some((file) => file.path === old.path);
  const renew = again.texts || files.some((file) => isText(file) || isTokenizer(file));
  // A tokenized text is called after its file and its line.
  const isMade = (/** @type {NamedFile} */ { path }) => before.textFiles.some((file) => path.startsWith(`${file.path}:`));
  const kept = before.files.filter((old) => !replaced(old) && !(renew && isMade(old)));
  const all = [...kept, ...files.filter((file) => !isTokenizer(file) && !isLines(file))];
  const lists = [...before.labelFiles.filter((old) => !replaced(old)), ...files.filter(mayBeLabels)];
  const language = [...before.textFiles.filter((old) => !replaced(old)), ...files.filter((file) => isTokenizer(file) || isLines(file))];
  try {
    const octet = await start();
    const others = all.filter((file) => !lists.includes(file));
    // Files that turn out not to hold labels are refused with a message.
    const open = model.peek();
    const takesRows = open !== null && open.wanted.length === 0 && open.card.rows;
    const takesTexts = language.length > 0 || takesRows || Boolean(open?.card.texts);
    let refs = others.length > 0 || !takesTexts ? await octet.group((others.length > 0 ? others : all).map((file) => file.path)) : [];
    const read = await labelsFrom(refs, lists);
    const unread = lists.filter((file) => !read.used.includes(file.path));
    const textFiles = takesTexts ? [...language, ...unread.filter(isText)] : language;
    const refused = unread.filter((file) => !textFiles.includes(file));
    if (refused.length > 0) await octet.group([...others, ...refused].map((file) => file.path));
    let textNotes = before.textNotes;
    if (renew) {
      const made = takesRows ? await tabled(open, textFiles) : await tokenized(octet, textFiles);
      textNotes = made.notes;
      others.push(...made.files);
      if (made.files.length > 0) refs = await octet.group(others.map((file) => file.path));
    }
    problem.value = null;
    stopMeasuring();
    samples.value = {
      ...noSamples, files: others, refs, skipped: before.skipped.filter((one) => !one.files.some(replaced)), labelFiles: lists.filter((file) => read.used.includes(file.path)), textFiles, textNotes, labelSource: read.source, labelFailure: read.failure, labels: read.labels, names: read.names, ...about,
    };
    say(refs.length === 0 ? textNotes.join(' ') : `${plural(refs.length, 'sample')} ready.${read.failure || read.source ? ` ${read.failure || read.source}` : ''}`);
    if (read.labels.size === 0) trial.value = null;
    await checkSamples();
    void tryPreprocessings();
  } catch (error) {
    fail('These samples cannot be used', error, 'The previous samples are kept.');
  }
}

/**
 * The files with all pictures in formats that the engine reads; `null` if one can't be decoded.
 *
 * @param {NamedFile[]} files
 */
async function decodable(files) {
  if (!files.some(otherPicture)) return files;
  try {
    return await (await import('./picture-formats.js')).asPngs(files);
  } catch (error) {
    fail('These samples cannot be used', error, 'The previous samples are kept.');
    return null;
  }
}

/** True for files of texts that can't be labels. @param {NamedFile} file */
const isLines = (file) => isText(file) && !mayBeLabels(file);

/** @param {SampleRef[]} refs @param {NamedFile[]} lists */
async function labelsFrom(refs, lists) {
  const texts = await Promise.all(lists.filter(({ blob }) => blob.size <= mostText).map(async ({ path, blob }) => ({ path, text: await blob.text() })));
  return labelled(refs, texts, classesOf(model.peek()?.card.outputs[0]?.shape));
}
/** Largest size of a label file. */
const mostText = 20e6;

/** Labels are read again for another model, which may have other classes. */
export async function relabel() {
  const { refs, labelFiles, source, textFiles } = samples.peek();
  // The length of texts depends on the model, too.
  if (hasTexts(textFiles)) return addSamples([], undefined, { texts: true });
  if (refs.length === 0 || source) return;
  const read = await labelsFrom(refs, labelFiles);
  samples.value = { ...samples.peek(), labelSource: read.source, labelFailure: read.failure, labels: read.labels, names: read.names };
}

/** Adds random samples, marked as such wherever they are shown. */
export async function addRandomSamples() {
  const open = model.peek();
  if (!open) return;
  try {
    const files = await open.demoSamples(randomSamples);
    samples.value = noSamples;
    await addSamples(files, { source: randomData });
  } catch (error) {
    fail('Random samples could not be generated', error, 'Add samples of your own.');
  }
}

/** Removes one sample. @param {string} name */
export async function removeSample(name) {
  const { files, refs, ...about } = samples.peek();
  const parts = new Set(refs.find((ref) => ref.name === name)?.parts);
  const left = files.filter((file) => !parts.has(file.path));
  if (left.length === 0) return clearSamples();
  stopMeasuring();
  samples.value = { files: left, refs: refs.filter((ref) => ref.name !== name), ...about };
  say(`${name} is removed; ${plural(samples.peek().refs.length, 'sample')} remain.`);
  await checkSamples();
}

/** Restores samples that were left out. @param {Samples['skipped']} which */
export function useAgain(which) {
  return addSamples(which.flatMap((one) => one.files));
}

export function clearSamples() {
  stopMeasuring();
  samples.value = noSamples;
  unusable.value = [];
  preview.value = null;
  trial.value = null;
  say('Samples removed.');
}

/** The number of random samples: enough to see a run, and fast. */
const randomSamples = 8;

/** Changes how images are read, by the person. @param {Partial<Pick<PageSettings, 'preset' | 'image'>>} change */
export function setPreprocessing(change) {
  chosenByHand.value = true;
  settings.value = { ...settings.peek(), ...change };
  checkSamples();
}

/** Changes the rate of sound, by the person. @param {number} rate */
export function setRate(rate) {
  settings.value = { ...settings.peek(), rate };
  checkSamples();
}

/**
 * Tries the usual preprocessings with the labels and takes the best, unless the person has chosen
 * one.
 *
 * @param {{ again?: boolean }} [how] `again`: on demand, which also replaces a choice
 */
export async function tryPreprocessings({ again = false } = {}) {
  const { labels, source } = samples.peek();
  if (labels.size === 0 || source || !hasPictures.peek() || !proposal.peek() || (chosenByHand.peek() && !again)) return;
  const { tryAll } = await import('./preprocessing-trial.js');
  await tryAll({ again });
}
