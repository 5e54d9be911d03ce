// @ts-check
/** Opens a model that is converted piece by piece. Loaded when the first one is opened. */

import { batch } from '../../library/signals.js';
import { fail, problem, say } from '../../state/messages.js';
import { done, large, model, samples, noSamples } from '../../state/page.js';
import { start } from '../../state/session.js';

/** @import { NamedFile } from '../../types.js' */
/** @import { StreamedModel } from '../../streamed-model.js' */

/**
 * @param {NamedFile} file
 * @param {NamedFile[]} beside files among which its weights may be
 * @param {AbortSignal} signal
 */
export async function openLarge(file, beside, signal) {
  const octet = await start();
  const opened = await octet.openStreamed(file, { signal });
  let files = beside;
  if (!opened.card && opened.missing(files).length === 0) await opened.attach(files, { signal });
  const [before, other] = [model.peek(), large.peek()];
  const show = () => {
    large.value = { model: opened, files, add };
  };
  /** @param {NamedFile[]} more */
  const add = async (more) => {
    // A file that is given again replaces the one before.
    files = [...more, ...files];
    const missing = opened.missing(files);
    if (missing.length > 0) {
      say(`Still missing: ${missing.join(', ')}.`);
    } else {
      try {
        await opened.attach(files);
        problem.value = null;
      } catch (error) {
        fail('The files could not be added', error, 'Choose the files that were saved together with this model.');
      }
    }
    if (large.peek()?.model === opened) show();
  };
  batch(() => {
    show();
    model.value = null;
    done.value = null;
    samples.value = noSamples;
  });
  before?.close().catch(() => {});
  other?.model.close().catch(() => {});
  say(opened.card ? `${opened.name} is open, to be converted piece by piece.` : `${opened.name} keeps its weights in other files.`);
}
