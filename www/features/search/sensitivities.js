// @ts-check
/** The file of sensitivities. */

import { save } from '../../library/download.js';
import { model } from '../../state/page.js';

/** @import { SearchOutcome } from '../../types.js' */

/** Saves what a search measured. @param {SearchOutcome} found */
export function saveSensitivities({ sensitivities }) {
  const stem = (model.peek()?.name ?? 'model').replace(/\.onnx$/i, '');
  save(sensitivities, 'application/json', `${stem}.sensitivities.json`);
}
