// @ts-check
/** The forecast of a run, and the reason why a run is impossible. */

import { needsSamples, tunes } from '../../settings-document.js';
import { computed, signal } from '../../library/signals.js';
import { engine, model, modelChanged, opening, ranges, run, samples, settings, statistics } from '../../state/page.js';
import { trial, unusable, usesSamples } from '../data/state.js';

/** @import { Forecast } from '../../types.js' */

/**
 * The forecast of a run; `told` is `null` while it is unknown.
 *
 * @type {import('../../library/signals.js').Signal<{ told: Forecast | null, failure: string } | null>}
 */
export const forecast = signal(/** @type {any} */ (null));

/** The reason why Run is disabled; empty if it is enabled. */
export const blocked = computed(() => {
  modelChanged.value;
  if (run.value) return 'A run is in progress.';
  if (engine.value.state === 'failed') return engine.value.message;
  const open = model.value;
  if (opening.value || !open) return opening.value ? 'The model is still being read.' : 'Open a model first.';
  if (open.wanted.length > 0) return `Add the model’s external data first: ${open.wanted.join(', ')}.`;
  if (open.card.alreadyQuantized) return 'This model is already quantized; open the float model it was made from.';
  const { document } = settings.value;
  if (!usesSamples(document)) return '';
  if (ranges.value || statistics.value) {
    return tunes(document) ? `Fine-tuning and closed form learn from samples, and ${ranges.value ? 'ranges' : 'statistics'} hold none. Remove them and add samples, or choose other settings.` : '';
  }
  if (forecast.value?.told?.refusal && !needsSamples(document)) return `${forecast.value.told.refusal} These settings also work without samples.`;
  if (trial.value?.state === 'running') return 'The preprocessings are being tried with the labels. Cancel keeps the one that is set.';
  if (samples.value.refs.length === 0) return 'Add at least one sample: calibration needs it to measure ranges.';
  if (forecast.value?.told?.refusal) return forecast.value.told.refusal;
  const [bad] = unusable.value;
  if (bad && unusable.value.length >= samples.value.refs.length) return `None of the samples can be used with the current preprocessing. ${bad.sample}: ${bad.reason}${/[.!?]$/.test(bad.reason) ? '' : '.'}`;
  return '';
});
