// @ts-check
/** What a model that reads lines of text reads, in float and quantized: its scores to characters, as it was trained (CTC). */

import { aside } from './background-task.js';
import { fail, say } from './messages.js';
import { effect, signal } from './signals.js';
import { done, model, samples } from './state.js';
import { imageSettings, start } from './studio.js';

/** @import { Decoded, OutputTensor } from './types.js' */

/** @typedef {{ name: string, decoded: Decoded, float: string, quantized: string }} Line */

/** What was read of which result. @type {import('./signals.js').Signal<{ id: number, lines: Line[] } | null>} */
export const reading = signal(/** @type {any} */ (null));
effect(() => {
  void model.value;
  reading.value = null;
});

/**
 * The best character of each step, repeats taken once; the first character stands for none.
 *
 * @param {Pick<OutputTensor, 'shape' | 'data'>} scores steps by characters
 * @param {string[]} characters
 */
export function spelt({ shape, data }, characters) {
  const width = shape[shape.length - 1];
  let text = '';
  let before = 0;
  for (let from = 0; from + width <= data.length; from += width) {
    let best = 0;
    for (let at = 1; at < width; at += 1) if (data[from + at] > data[from + best]) best = at;
    if (best !== 0 && best !== before) text += characters[best] ?? '?';
    before = best;
  }
  // Spaces at the ends, or several in a row, nobody sees.
  return text.replace(/\s+/g, ' ').trim();
}

/** The characters of a list with one a line: before them nothing, behind them a space. @param {string} text */
export const charactersOf = (text) => ['', ...text.replace(/\n$/, '').split('\n'), ' '];

/** Reads all samples with the float model and with the result. */
export async function readLines() {
  const [open, shown] = [model.peek(), done.peek()];
  const { files, refs, characters } = samples.peek();
  if (!open || !shown || characters.length === 0) return;
  const error = await aside('Reading text with both models', async (gently, onProgress) => {
    const options = { samples: { image: imageSettings() }, runs: 1, warmUp: 0, gently };
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
        lines.push({ name, decoded, float: spelt(right.outputs[0], characters), quantized: spelt(now.outputs[0], characters) });
        onProgress({ stage: 'Reading text with both models', done: lines.length, of: refs.length, unit: 'samples' });
      }
    } finally {
      await quantized.close().catch(() => {});
    }
    gently.throwIfAborted();
    reading.value = { id: shown.id, lines };
    say(`${lines.filter((line) => line.float === line.quantized).length} of ${lines.length} lines are read the same by both models.`);
  });
  if (error) fail('The text could not be read', error, 'The result is kept and can be downloaded.');
}
