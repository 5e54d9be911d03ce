// @ts-check
/**
 * Recognized text of models that read lines, float and quantized. Decodes CTC scores into
 * characters.
 */

import { effect, signal } from '../../library/signals.js';
import { inBackground } from '../../state/background-task.js';
import { fail, say } from '../../state/messages.js';
import { done, model, sampleSettings, samples } from '../../state/page.js';
import { start } from '../../state/session.js';

/** @import { Decoded, OutputTensor } from '../../types.js' */

/** @typedef {{ name: string, decoded: Decoded, float: string, quantized: string }} Line */

/**
 * The recognized lines, and the id of their result.
 *
 * @type {import('../../library/signals.js').Signal<{ id: number, lines: Line[] } | null>}
 */
export const recognized = signal(/** @type {any} */ (null));
effect(() => {
  void model.value;
  recognized.value = null;
});

/**
 * Greedy CTC decoding: the best character of each step, without repeats. Character 0 is the blank.
 *
 * @param {Pick<OutputTensor, 'shape' | 'data'>} scores steps by characters
 * @param {string[]} characters
 */
export function decodeCtc({ shape, data }, characters) {
  const width = shape[shape.length - 1];
  let text = '';
  let before = 0;
  for (let from = 0; from + width <= data.length; from += width) {
    let best = 0;
    for (let at = 1; at < width; at += 1) if (data[from + at] > data[from + best]) best = at;
    if (best !== 0 && best !== before) text += characters[best] ?? '?';
    before = best;
  }
  // Leading, trailing and repeated spaces are invisible.
  return text.replace(/\s+/g, ' ').trim();
}

/** Reads all samples with the float model and the result. */
export async function readLines() {
  const [open, shown] = [model.peek(), done.peek()];
  const { files, refs, characters } = samples.peek();
  if (!open || !shown || characters.length === 0) return;
  const error = await inBackground('Reading text with both models', async (gently, onProgress) => {
    const options = { samples: sampleSettings(), runs: 1, warmUp: 0, gently };
    const octet = await start();
    const quantized = await octet.open(shown.result.file);
    /** @type {Line[]} */
    const lines = [];
    try {
      for (const { name, parts } of refs) {
        const sample = files.filter((file) => parts.includes(file.path));
        gently.throwIfAborted();
        const decoded = await open.preview(sample, options.samples);
        const [right, now] = [await open.run(sample, options), await quantized.run(sample, options)];
        lines.push({ name, decoded, float: decodeCtc(right.outputs[0], characters), quantized: decodeCtc(now.outputs[0], characters) });
        onProgress({ stage: 'Reading text with both models', done: lines.length, of: refs.length, unit: 'samples' });
      }
    } finally {
      await quantized.close().catch(() => {});
    }
    gently.throwIfAborted();
    recognized.value = { id: shown.id, lines };
    say(`${lines.filter((line) => line.float === line.quantized).length} of ${lines.length} lines are read the same by both models.`);
  });
  if (error) fail('The text could not be read', error, 'The result is kept and can be downloaded.');
}
