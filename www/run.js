// @ts-check
/** One run, from the samples to the quantized model: calibrated only where it must be, cancelled at any moment. */

import { bytes, duration } from './format.js';
import { aborted, fail, problem, say } from './messages.js';
import { batch } from './signals.js';
import { blocked, done, model, quantizeSettings, run, samples } from './state.js';
import { imageSettings, start } from './studio.js';

/** @import { CalibrationSummary, NamedFile, Progress } from './types.js' */
/** @import { Model } from './octet.js' */

/** @type {AbortController | null} */
let running = null;
/**
 * What the ranges that the worker holds were made from. Files are told by identity: another sample may have the name and size of
 * the one before.
 *
 * @type {{ model: Model, files: NamedFile[], reading: string, summary: CalibrationSummary } | null}
 */
let calibration = null;

/** Calibrates where needed, quantizes, and shows what came of it. */
export async function quantize() {
  const open = model.peek();
  if (!open || blocked.peek()) return;
  const mine = (running = new AbortController());
  const { files } = samples.peek();
  const choice = quantizeSettings();
  const image = imageSettings();
  const reading = JSON.stringify(image);
  const started = performance.now();
  batch(() => {
    problem.value = null;
    done.value = null;
    run.value = { started, progress: { stage: 'Preparing the model' }, samplesStarted: null, curve: [] };
  });
  say('The run has started.');
  /** @param {Progress} progress */
  const onProgress = (progress) => {
    const now = run.peek();
    if (running !== mine || !now) return;
    const at = performance.now() - started;
    const { memory, stage } = progress;
    run.value = {
      ...now,
      progress: { ...progress, memory: memory ?? now.progress.memory },
      samplesStarted: stage === now.progress.stage ? now.samplesStarted : progress.unit === 'samples' ? performance.now() : null,
      curve: memory ? [...now.curve, { at, stage, memory }] : now.curve,
    };
  };
  try {
    const { signal } = mine;
    const held = calibration && calibration.model === open && calibration.files === files && calibration.reading === reading;
    if (!calibration || !held || !open.calibrated) {
      const summary = await open.calibrate(files, { samples: { image }, signal }, onProgress);
      calibration = { model: open, files, reading, summary };
    }
    const { summary } = calibration;
    const result = await open.quantize(choice, { signal, onProgress });
    const memory = await start().then((octet) => octet.memory());
    const took = performance.now() - started;
    const curve = [...(run.peek()?.curve ?? []), { at: took, stage: 'Done', memory }];
    batch(() => {
      run.value = null;
      done.value = {
        result, took, memory, curve,
        calibration: summary,
        name: open.name,
        settings: JSON.stringify(choice),
      };
    });
    say(`Done in ${duration(took)}: ${bytes(result.summary.bytesBefore)} became ${bytes(result.summary.bytesAfter)}.`);
  } catch (error) {
    run.value = null;
    calibration = null;
    if (aborted(error)) {
      say('The run was cancelled; model, samples and settings are kept.');
    } else {
      fail('The run stopped', error, 'Model, samples and settings are kept.', quantize);
    }
  } finally {
    if (running === mine) running = null;
  }
}

export function cancel() {
  running?.abort();
}
