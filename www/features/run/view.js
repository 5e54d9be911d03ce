// @ts-check
/** The button that starts a run, and the progress of a run. */

import { inWords } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { bytes, duration, plural, timeLeft } from '../../library/format.js';
import { effect, signal } from '../../library/signals.js';
import { done, run, settings } from '../../state/page.js';
import { usesSamples } from '../data/state.js';
import { liveRanges } from './live-ranges.js';
import { learnedSoFar } from './learned-layers.js';
import { curve } from './memory-curve.js';
import { cancel, endCalibration, quantize } from './run.js';
import { blocked } from './state.js';

export function view() {
  return h('section', { class: 'panel run', 'aria-labelledby': 'run-title' },
    h('h2', { id: 'run-title', class: 'unseen' }, 'Run'),
    // Not `disabled`, so that a screen reader can reach the button and its reason.
    h('button', {
      type: 'button', id: 'run', class: 'primary wide', 'aria-disabled': () => (blocked.value ? 'true' : null), 'aria-describedby': 'run-why',
      onclick: () => blocked.peek() || quantize(),
    }, () => (done.value ? 'Quantize again' : usesSamples(settings.value.document) ? 'Calibrate and quantize' : 'Quantize')),
    h('p', { class: 'note', id: 'run-why' }, () => blocked.value || `${inWords(settings.value.document).replace(/^./, (letter) => letter.toUpperCase())}. Your file is not changed.`),
  );
}

export function progressPanel() {
  const clock = signal(performance.now());
  const panel = h('section', { class: 'panel', 'aria-labelledby': 'progress-title' },
    h('h2', { id: 'progress-title', tabindex: -1, 'data-focus': 'running' }, () => run.value?.progress.stage ?? 'Running'),
    h('progress', { max: 1, 'aria-labelledby': 'progress-title', value: () => {
      const { done = 0, of = 0 } = run.value?.progress ?? {};
      return of > 0 && done > 0 ? String(done / of) : null;
    } }),
    // Above the growing content, so that the buttons don't move.
    h('div', { class: 'row' },
      h('button', { type: 'button', id: 'cancel', onclick: cancel }, 'Cancel'),
      // Enabled from the first sample on, during the first pass only.
      h('button', { type: 'button', id: 'enough', 'aria-disabled': () => (canEnd() ? null : 'true'), 'aria-describedby': 'enough-why', onclick: () => canEnd() && endCalibration() }, 'Stop and use the samples so far'),
      h('span', { class: 'note', id: 'enough-why' }, () => (canEnd()
        ? `Continues with the ${plural(run.value?.progress.done ?? 0, 'sample')} seen so far. Escape cancels.`
        : 'Escape cancels. Model, samples and settings are kept.'))),
    h('dl', { class: 'facts live' },
      h('div', {}, h('dt', {}, () => (run.value?.progress.unit === 'layers' ? 'Layers' : 'Samples')), h('dd', {}, () => {
        const { done = 0, of = 0, unit } = run.value?.progress ?? {};
        return unit === 'samples' || unit === 'layers' ? `${done} of ${of}` : '–';
      })),
      ...live('Time', () => (run.value ? duration(clock.value - run.value.started) : '')),
      ...live('Time left', () => {
        const now = run.value;
        const { done = 0, of = 0 } = now?.progress ?? {};
        if (!now?.samplesStarted || done === 0 || done === of) return '–';
        return timeLeft(((clock.value - now.samplesStarted) / done) * (of - done)).replace(' left', '');
      }),
      ...live('Live memory', () => bytes(run.value?.progress.memory?.live)),
      ...live('WebAssembly memory', () => bytes(run.value?.progress.memory?.pages)),
    ),
    h('div', {}, () => run.value && run.value.curve.length > 1 && curve(run.value.curve)),
    learnedSoFar(),
    liveRanges(),
  );
  const timer = setInterval(() => (clock.value = performance.now()), 250);
  effect(() => {
    if (!run.value) clearInterval(timer);
  });
  return panel;
}

const canEnd = () => {
  const { stage, done = 0, unit } = run.value?.progress ?? {};
  return stage === 'Calibrating' && unit === 'samples' && done > 0;
};

/** @param {string} name @param {() => string} value */
function live(name, value) {
  return [h('div', {}, h('dt', {}, name), h('dd', {}, value))];
}
