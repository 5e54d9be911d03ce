// @ts-check
/**
 * What a run will take, told before it from the first sample: asked for once model, samples and settings have been as they are for a
 * moment. Where it can't be done here the run is off, with the reason and a way that can.
 */

import { needsSamples } from './settings-document.js';
import { sentence, aborted } from './messages.js';
import { effect, untracked } from './signals.js';
import { done, engine, forecast, misfits, model, modelChanged, opening, preview, run, samples, settings } from './state.js';
import { imageSettings } from './studio.js';

/** How long nothing must have changed, in milliseconds: who is still choosing is not interrupted. */
const pause = 400;

/** Everything that a forecast depends on. */
function ready() {
  modelChanged.value;
  const open = model.value;
  const { document, preset, image, threads } = settings.value;
  const { files, refs } = samples.value;
  if (!open || opening.value || run.value || done.value || engine.value.state !== 'ready') return null;
  if (open.wanted.length > 0 || open.card.alreadyQuantized || refs.length === 0 || !preview.value?.decoded) return null;
  if (!needsSamples(document)) return null;
  // What can't be used tells nothing.
  const bad = new Set(misfits.value.flatMap((one) => refs.find((ref) => ref.name === one.sample)?.parts ?? []));
  const good = files.filter((file) => !bad.has(file.path));
  if (good.length === 0) return null;
  return { open, files, good, key: JSON.stringify([document, preset, image, threads, [...bad]]) };
}

/** Keeps the forecast in step with what is chosen. */
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
      // During a run, and while its result is there, the one from before it stays: it is held against what came.
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
    const told = await open.forecast(good, { method: document.method, samples: { image: imageSettings() }, settings: document });
    if (still()) forecast.value = { told, failure: '' };
  } catch (error) {
    if (still() && !aborted(error)) forecast.value = { told: null, failure: sentence(/** @type {Error} */ (error).message) };
  }
}
