// Large architectures with random weights, for the benches: filled from their skeletons, once, into the cache.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** Where the server of the bench offers the models. */
export const path = '/skeletons/';

/** The folder to offer there. @param {string} cache Octet's cache folder */
export const folder = (cache) => join(cache, 'skeletons');

/**
 * Fills a skeleton, or says what is missing for it.
 *
 * @param {string} name
 * @param {string} cache
 * @param {string} python
 * @returns {{ file: string, missing: string | null }}
 */
export function fill(name, cache, python) {
  const file = join(folder(cache), `${name}.onnx`);
  if (existsSync(file)) return { file, missing: null };
  mkdirSync(folder(cache), { recursive: true });
  const part = `${file}.part`;
  const program = 'import sys; from pathlib import Path; from corpus import CorpusError, inflate\n'
    + 'try: inflate(sys.argv[1] + ".skeleton.onnx", Path(sys.argv[2]))\n'
    + 'except (CorpusError, OSError) as error: sys.exit(str(error))';
  const env = { ...process.env, PYTHONPATH: join(checkout, 'tests', 'oracle') };
  const done = spawnSync(python, ['-c', program, name, part], { encoding: 'utf8', env });
  if (done.status !== 0) return { file, missing: (done.stderr ?? '').trim().split('\n').at(-1) || 'its skeleton was not filled' };
  renameSync(part, file);
  return { file, missing: null };
}
