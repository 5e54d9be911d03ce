// @ts-check
/** The command line that does what the page does, and copies of texts. */

import { commandLine } from '../../settings-document.js';
import { say } from '../../state/messages.js';
import { model, randomData, ranges, samples, settings, statistics, textSettings } from '../../state/page.js';
import { explicitImagesOf } from '../data/image-settings.js';

/** @import { Settings } from '../../types.js' */

/** The command line for the open model, its samples and these settings. @param {Settings} document */
export function commandOf(document) {
  const { refs, source, textFiles } = samples.value;
  const { rate } = settings.value;
  const texts = textFiles.length > 0 && !model.value?.card.rows ? textSettings.value : undefined;
  return commandLine(model.value?.name ?? 'model.onnx', { ...document, ...explicitImagesOf(document) }, { random: source === randomData ? refs.length : 0, given: refs.length > 0, statistics: statistics.value !== null, ranges: ranges.value?.files[0].path, texts, rate });
}

/**
 * Copies a text.
 *
 * @param {string} what
 * @param {string} content
 * @returns {Promise<string>} why it could not be copied, with the text; empty if it was
 */
export async function copied(what, content) {
  try {
    await navigator.clipboard.writeText(content);
    say(`${what} copied.`);
    return '';
  } catch {
    return `The browser does not allow copying; here it is: ${content}`;
  }
}
