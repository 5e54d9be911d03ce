// @ts-check
/** Ranges of other tools, in place of a calibration. */

import { plural } from '../../library/format.js';
import { stopMeasuring } from '../../state/background-task.js';
import { fail, problem, say } from '../../state/messages.js';
import { model, ranges } from '../../state/page.js';

/** @import { NamedFile } from '../../types.js' */

/** Takes a file of ranges; it replaces an earlier one. @param {NamedFile} file */
export async function addRanges(file) {
  const open = model.peek();
  if (!open) return fail('These ranges cannot be used yet', new Error('They belong to a model, and none is open.'), 'Open the float model first, then add them again.');
  try {
    const summary = await open.readRanges(file);
    stopMeasuring();
    problem.value = null;
    ranges.value = { files: [file], summary };
    say(`Ranges of ${plural(summary.ranges, 'tensor')} added.`);
  } catch (error) {
    fail('These ranges cannot be used', error, ranges.peek() ? 'The ranges from before are kept.' : 'Nothing was changed.');
  }
}

export function removeRanges() {
  stopMeasuring();
  ranges.value = null;
  say('Ranges removed.');
}
