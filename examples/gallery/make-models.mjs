// @ts-check
// Writes the gallery's model (a convolution and Relu) and four samples into a folder.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { convolution, npy } from '../../tests/e2e/model.mjs';
import { zip } from '../../www/library/zip.js';

/** Values between −1 and 1 that repeat after 17, another start for each sample. @param {number} sample */
const values = (sample) => Float32Array.from({ length: 3 * 4 * 4 }, (_, at) => (((at + sample) * 7) % 17) / 8 - 1);

/** @param {string} folder */
export function makeModels(folder) {
  mkdirSync(folder, { recursive: true });
  const samples = [0, 1, 2, 3].map((sample) => ({ name: `${sample}.npy`, bytes: npy(values(sample), [1, 3, 4, 4]) }));
  for (const { name, bytes } of samples) writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, 'samples.zip'), zip(samples));
  writeFileSync(join(folder, 'small.onnx'), convolution());
}
