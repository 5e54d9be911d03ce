// @ts-check
/**
 * The forecast of a run from its first sample. It is requested once model, samples and settings
 * have not changed for a moment. If the run is impossible here, it is blocked with a reason and an
 * alternative.
 */

import { effect, untracked } from '../../library/signals.js';
import { aborted, sentence } from '../../state/messages.js';
import { done, engine, model, modelChanged, opening, run, sampleSettings, samples, settings } from '../../state/page.js';
import { preview, trial, unusable, usesSamples } from '../data/state.js';
import { forecast } from './state.js';

/** Time in milliseconds without changes before a forecast is requested. */
const pause = 400;

/** The inputs of a forecast, or `null`. */
function ready() {
  modelChanged.value;
  const open = model.value;
  const { document, preset, image, threads } = settings.value;
  const { files, refs } = samples.value;
  if (!open || opening.value || run.value || done.value || engine.value.state !== 'ready') return null;
  if (open.wanted.length > 0 || open.card.alreadyQuantized || refs.length === 0 || !preview.value?.decoded) return null;
  if (!usesSamples(document) || trial.value?.state === 'running') return null;
  // Unusable samples are left out.
  const bad = new Set(unusable.value.flatMap((one) => refs.find((ref) => ref.name === one.sample)?.parts ?? []));
  const good = files.filter((file) => !bad.has(file.path));
  if (good.length === 0) return null;
  return { open, files, good, key: JSON.stringify([document, preset, image, threads, [...bad]]) };
}

/** Keeps the forecast up to date with model, samples and settings. */
export function keepForecast() {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {ReturnType<typeof ready>} */
  let asked = null;
  effect(() => {
    const now = ready();
    untracked(() => {
      if (now && asked && now.open === asked.open && now.files === asked.files && now.key === asked.key) return;
      clearTimeout(timer);
      // During a run, and while its result is shown, its forecast stays for comparison.
      if (!now && model.peek() && samples.peek().refs.length > 0 && (run.peek() || done.peek())) return;
      asked = now;
      forecast.value = now ? { told: null, failure: '' } : null;
      if (now) timer = setTimeout(() => void ask(now, () => asked === now), pause);
    });
  });
}

/** @param {NonNullable<ReturnType<typeof ready>>} what @param {() => boolean} still */
async function ask({ open, good }, still) {
  const { document } = settings.peek();
  try {
    const told = await open.forecast(good, { method: document.method, samples: sampleSettings(), settings: document });
    if (still()) forecast.value = { told, failure: '' };
  } catch (error) {
    if (still() && !aborted(error)) forecast.value = { told: null, failure: sentence(/** @type {Error} */ (error).message) };
  }
}
