// @ts-check
/**
 * A calibration that several people share: each saves the statistics of their samples, and one adds
 * all files. The samples stay where they are.
 */

import { inFull } from '../../settings-document.js';
import { save } from '../../library/download.js';
import { plural } from '../../library/format.js';
import { signal } from '../../library/signals.js';
import { inBackground, stopMeasuring } from '../../state/background-task.js';
import { fail, problem, say } from '../../state/messages.js';
import { model, randomData, sampleSettings, samples, settings, statistics } from '../../state/page.js';

/** @import { NamedFile } from '../../types.js' */

/** The name of this page's samples. Statistics of different names add up. */
export const source = signal(`samples-${crypto.getRandomValues(new Uint16Array(1))[0].toString(16).padStart(4, '0')}`);

/** Adds files of statistics to those that are here. @param {NamedFile[]} files */
export async function addStatistics(files) {
  const open = model.peek();
  if (!open) return fail('These statistics cannot be used yet', new Error('They belong to a model, and none is open.'), 'Open the float model first, then add them again.');
  const before = statistics.peek()?.files ?? [];
  const all = [...before.filter((old) => !files.some((file) => file.path === old.path)), ...files];
  try {
    const summary = await open.statistics(all);
    stopMeasuring();
    problem.value = null;
    statistics.value = { files: all, summary };
    say(`Statistics of ${plural(summary.samples, 'sample')} added.`);
  } catch (error) {
    fail('These statistics cannot be used', error, before.length > 0 ? 'The statistics from before are kept.' : 'Nothing was changed.');
  }
}

export function removeStatistics() {
  stopMeasuring();
  statistics.value = null;
  say('Statistics removed.');
}

/** Runs the samples and saves what they showed. */
export async function saveStatistics() {
  const open = model.peek();
  const { files, source: origin, skipped } = samples.peek();
  if (!open || files.length === 0) return;
  const name = source.peek().trim();
  const reading = { ...sampleSettings(), demo: origin === randomData, skipped: skipped.map(({ sample, reason }) => ({ sample, reason })) };
  const error = await inBackground('Observing the samples', async (stop, onProgress) => {
    const blob = await open.observe(files, { source: name, statistics: statistics.peek()?.files, settings: inFull(settings.peek().document), samples: reading, signal: stop }, onProgress);
    const file = `${open.name.replace(/\.\w+$/, '')}.${name.replace(/[^\w.-]+/g, '-')}.stats`;
    save(blob, 'application/octet-stream', file);
    say(`${file} is saved. It holds ranges and histograms, and no sample.`);
  });
  if (error) fail('The statistics could not be saved', error, 'Model, samples and settings are kept.', () => void saveStatistics());
}
