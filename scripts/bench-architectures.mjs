// The models of the benches: those of the corpus, and large architectures with random weights, which
// tests/oracle/architectures builds into the corpus.

import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** Path under which the bench's server offers the corpus models. */
export const path = '/corpus/architectures/';

/**
 * Builds an architecture in a few seconds; a file of an older recipe is replaced.
 *
 * @param {string} name
 * @param {string} corpus the corpus folder
 * @param {string} python that has numpy and onnx
 * @returns {string} the file
 */
export function build(name, corpus, python) {
  const file = join(corpus, 'architectures', `${name}.onnx`);
  mkdirSync(dirname(file), { recursive: true });
  const part = `${file}.${process.pid}.part`;
  const env = { ...process.env, PYTHONPATH: join(checkout, 'tests', 'oracle') };
  const done = spawnSync(python, ['-m', 'architectures', name, part], { encoding: 'utf8', env });
  if (done.error) throw new Error(`the architecture ${name} could not be built: ${done.error.message}`);
  if (done.status !== 0) throw new Error(`the architecture ${name} could not be built:\n${done.stderr.trim()}`);
  renameSync(part, file);
  return file;
}

/**
 * The named models of a table, or all: each with its file and its path on the bench's server.
 *
 * @template {{ file: string, from: 'corpus' | 'architecture' }} Model
 * @param {Record<string, Model>} models
 * @param {string[]} only
 * @param {string} corpus the corpus folder
 * @param {string} python that has numpy and onnx
 */
export function* chosen(models, only, corpus, python) {
  for (const key of only.length > 0 ? only : Object.keys(models)) {
    const model = models[key];
    if (!model) throw new Error(`no model is called ${key}; there are ${Object.keys(models).join(', ')}`);
    const built = model.from === 'architecture';
    const source = built ? build(model.file, corpus, python) : join(corpus, 'models', `${model.file}.onnx`);
    yield { model, source, served: `${built ? path : '/corpus/models/'}${model.file}.onnx` };
  }
}
