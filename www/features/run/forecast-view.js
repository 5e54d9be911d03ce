// @ts-check
/** The forecast before a run, and its comparison with the actual figures afterwards. */

import { h } from '../../library/dom.js';
import { bytes, duration, plural } from '../../library/format.js';
import { fact, table } from '../../library/table.js';
import { forecast } from './state.js';

/** @import { Done } from '../../state/page.js' */

export function forecastView() {
  const now = forecast.value;
  if (!now) return null;
  if (now.failure) return h('p', { class: 'callout fair', id: 'forecast' }, `No forecast: ${now.failure}`);
  if (!now.told) return h('p', { class: 'note', id: 'forecast' }, 'Forecasting time, memory and size from the first sample.');
  const { ms, peakBytes, outputBytes, samples, threads, limitBytes, refusal } = now.told;
  return h('div', { class: 'gap', id: 'forecast' },
    refusal && h('p', { class: 'callout bad' }, refusal),
    h('dl', { class: 'facts' },
      ...fact('Estimated time', duration(ms)),
      ...fact('Peak memory', bytes(peakBytes)),
      ...fact('Quantized size', bytes(outputBytes)),
    ),
    h('p', { class: 'note' }, `Forecast for ${plural(samples, 'sample')} on ${plural(threads, 'thread')}, from a run of the first one.${limitBytes === null ? '' : ` This page can use at most ${bytes(limitBytes)}.`}`),
  );
}

/** @param {Done} done */
export function forecastAndActual({ forecast: told, took, memory, result, calibration }) {
  if (!told) return null;
  // A run that was stopped early has no comparable time.
  const whole = !calibration || calibration.samples === told.samples;
  const apart = (/** @type {number} */ was, /** @type {number} */ is) => `${is >= was ? '+' : '−'}${Math.abs((is / was - 1) * 100).toFixed(0)} %`;
  /** @type {string[][]} */
  const rows = [['Size', bytes(told.outputBytes), bytes(result.summary.bytesAfter), apart(told.outputBytes, result.summary.bytesAfter)]];
  if (whole) rows.unshift(['Time', duration(told.ms), duration(took), apart(told.ms, took)]);
  if (memory) rows.push(['Peak memory', bytes(told.peakBytes), bytes(memory.peak), apart(told.peakBytes, memory.peak)]);
  return h('details', { id: 'forecast-actual' }, h('summary', {}, 'Forecast and actual'), table(['', 'Forecast', 'Actual', 'Difference'], rows, [1, 2, 3]));
}
