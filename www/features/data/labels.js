// @ts-check
/**
 * Class labels of samples, from label files or from folders. A label without a class number is not
 * guessed: the failure text says why and what helps. Independent of the page.
 */

import { baseName } from '../../files.js';

/** @import { SampleRef } from '../../types.js' */

/**
 * @typedef {object} Labelled
 * @property {Map<string, string>} labels the number of each sample's class, by the sample's name
 * @property {Map<string, string>} names what a class is called, by its number
 * @property {string} source where they are from, in a sentence; empty where there are none
 * @property {string} failure why labels that are here can't be used; empty where they can
 */

/** @typedef {{ path: string, text: string }} LabelFile */

/** @type {Labelled} */
export const unlabelled = { labels: new Map(), names: new Map(), source: '', failure: '' };

/** True for files that may hold labels. @param {{ path: string }} file */
export const mayBeLabels = ({ path }) => /\.(csv|tsv|txt)$/i.test(path);

/**
 * True for names of class lists: one class name per line, the first is class 0.
 *
 * @param {string} path
 */
const isList = (path) => /(class|label|names|synset|words|categor)[^/]*$/i.test(path);

const whole = /^\d+$/;

/** @param {string} text */
const linesOf = (text) => text.replace(/^\uFEFF/, '').split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));

/**
 * The file and the label in a line; `null` if one of them is missing.
 *
 * @param {string} line
 * @returns {[string, string] | null}
 */
function pairOf(line) {
  const result = /^"?([^",;\t]+)"?\s*[,;\t]\s*"?([^",;\t]+)"?/.exec(line) ?? /^(\S+)\s+(.+)$/.exec(line);
  return result ? [result[1].trim().replaceAll('\\', '/'), result[2].trim()] : null;
}

/**
 * @param {LabelFile} file
 * @param {Map<string, string>} known samples by their name, and by its last part
 * @returns {Map<string, string> | null} the label of each sample it names; `null` where it names none
 */
function pairsOf({ text }, known) {
  /** @type {Map<string, string>} */
  const result = new Map();
  for (const line of linesOf(text)) {
    const [file, label] = pairOf(line) ?? ['', ''];
    const sample = known.get(file) ?? known.get(baseName(file));
    if (sample !== undefined && label !== '') result.set(sample, label);
  }
  return result.size > 0 ? result : null;
}

/**
 * The class names of a list, without leading numbers if all lines have them.
 *
 * @param {string} text
 */
function listOf(text) {
  const lines = linesOf(text);
  const numbered = lines.every((line, index) => new RegExp(`^${index}[:,;\\s]\\s*\\S`).test(line));
  return lines.map((line) => (numbered ? line.replace(/^\d+[:,;\s]\s*/, '') : line));
}

/** The folder of a sample; empty if there is none. @param {SampleRef} ref */
function folderOf({ name, parts }) {
  return parts.length === 1 && !parts[0].endsWith('.pb') ? (name.split('/').at(-2) ?? '') : '';
}

/**
 * @param {SampleRef[]} refs
 * @param {LabelFile[]} files those among the given that may be labels
 * @param {number | null} classes how many the model knows; `null` where that can't be told
 * @returns {Labelled & { used: string[] }} `used`: the files that are labels; others are for somebody else
 */
export function labelled(refs, files, classes) {
  // The base name identifies a sample only if it is unique.
  /** @type {Map<string, string>} */
  const known = new Map();
  for (const { name } of refs) known.set(baseName(name), known.has(baseName(name)) ? '' : name);
  for (const [key, name] of known) if (name === '') known.delete(key);
  for (const { name } of refs) known.set(name, name);
  const pairs = files.flatMap((file) => {
    const result = pairsOf(file, known);
    return result ? [{ path: file.path, result }] : [];
  });
  const list = files.find((file) => isList(file.path) && !pairs.some(({ path }) => path === file.path));
  const names = list ? listOf(list.text) : [];
  const listed = new Map(names.map((name, number) => /** @type {[string, string]} */ ([String(number), name])));
  const used = [...pairs.map(({ path }) => path), ...(list ? [list.path] : [])];
  const folders = new Map(refs.map((ref) => [ref.name, folderOf(ref)]));
  const byFolder = pairs.length === 0 && new Set(folders.values()).size > 1 && ![...folders.values()].includes('');
  if (pairs.length === 0 && !byFolder) {
    return { ...unlabelled, used, names: listed, failure: list ? `${list.path} lists class names, but no file says which class a sample has: add a file with lines “sample, class”, or put the samples into one folder per class.` : '' };
  }
  const labelOf = byFolder ? folders : new Map(pairs.flatMap(({ result }) => [...result]));
  const from = byFolder ? 'the folders' : pairs.map(({ path }) => path).join(', ');
  const kinds = [...new Set(labelOf.values())];
  /** @type {Map<string, string>} the number of each label */
  let numbers;
  let order = '';
  if (kinds.every((kind) => whole.test(kind))) {
    numbers = new Map(kinds.map((kind) => [kind, String(Number(kind))]));
  } else if (names.length > 0) {
    // A list may have several names a line: `n01440764 tench, Tinca tinca`.
    const at = new Map(names.flatMap((name, index) => [name, ...name.split(/[\s,;]+/)].map((word) => /** @type {[string, string]} */ ([word.toLowerCase(), String(index)]))).reverse());
    const missing = kinds.filter((kind) => !at.has(kind.toLowerCase()));
    if (missing.length > 0) return { ...unlabelled, used, failure: `${list?.path} does not contain ${missing.slice(0, 3).join(', ')}, so the labels from ${from} are not used.` };
    numbers = new Map(kinds.map((kind) => [kind, at.get(kind.toLowerCase()) ?? '']));
    order = `, numbered as in ${list?.path}`;
  } else if (classes !== null && kinds.length === classes) {
    numbers = new Map([...kinds].sort().map((kind, index) => [kind, String(index)]));
    order = ', numbered in alphabetical order';
  } else {
    return { ...unlabelled, used, failure: `The labels from ${from} are names (${[...kinds].sort().slice(0, 3).join(', ')}${kinds.length > 3 ? ' …' : ''}), and the model has ${classes ?? 'an unknown number of'} classes: add a classes.txt with one name per line in the model’s order, or use class numbers.` };
  }
  const beyond = classes === null ? undefined : [...numbers.values()].find((number) => Number(number) >= classes);
  if (beyond !== undefined) return { ...unlabelled, used, failure: `Class ${beyond} in ${from} does not exist: the model has ${classes} classes, numbered from 0. The labels are not used.` };
  return {
    labels: new Map([...labelOf].map(([name, label]) => [name, numbers.get(label) ?? ''])),
    names: new Map([...listed, ...[...numbers].flatMap(([label, number]) => {
      const name = names[Number(number)] ?? (whole.test(label) ? '' : label);
      return name ? [/** @type {[string, string]} */ ([number, name])] : [];
    })]),
    source: `${labelOf.size} of ${refs.length} samples have a label, from ${from}${order}.`,
    failure: '',
    used,
  };
}

/**
 * The number of classes: the last dimension of the first output, if that is a list of scores.
 *
 * @param {string | undefined} shape such as `1×1000`
 */
export function classesOf(shape) {
  const sizes = (shape ?? '').split(/[^\w?]+/).filter(Boolean);
  // Spatial outputs (N, C, H, W) have dimensions of 1 after the classes, or belong to no
  // classifier.
  while (sizes.length > 2 && sizes.at(-1) === '1') sizes.pop();
  const last = Number(sizes.at(-1));
  return sizes.length === 2 && Number.isInteger(last) && last > 1 ? last : null;
}
