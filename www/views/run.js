// @ts-check
/** The button that starts a run, and the progress of a run. */

import { h } from '../dom.js';
import { bytes, duration, plural, timeLeft } from '../format.js';
import { signal, effect } from '../signals.js';
import { cancel, quantize, suffice } from '../run.js';
import { inWords, needsSamples } from '../settings-document.js';
import { blocked, done, opening, run, settings } from '../state.js';
import { cancelOpening } from '../studio.js';
import { curve } from './memory-curve.js';
import { filling } from './live-ranges.js';

export function runPanel() {
  return h('section', { class: 'panel run', 'aria-labelledby': 'run-title' },
    h('h2', { id: 'run-title', class: 'unseen' }, 'Run'),
    // Not `disabled`, so that a screen reader can reach the button and its reason.
    h('button', {
      type: 'button', id: 'run', class: 'primary wide', 'aria-disabled': () => (blocked.value ? 'true' : null), 'aria-describedby': 'run-why',
      onclick: () => blocked.peek() || quantize(),
    }, () => (done.value ? 'Quantize again' : needsSamples(settings.value.document) ? 'Calibrate and quantize' : 'Quantize')),
    h('p', { class: 'note', id: 'run-why' }, () => blocked.value || `${inWords(settings.value.document).replace(/^./, (letter) => letter.toUpperCase())}. Your file is not changed.`),
  );
}

export function openingPanel() {
  const value = () => {
    const { done = 0, of = 0 } = opening.value?.progress ?? {};
    return of > 0 && done < of ? String(done / of) : null;
  };
  return h('section', { class: 'panel narrow', 'aria-labelledby': 'opening-title' },
    h('h2', { id: 'opening-title', tabindex: -1, 'data-focus': 'opening' }, () => `Opening ${opening.value?.name ?? ''}`),
    h('progress', { max: 1, value, 'aria-labelledby': 'opening-title' }),
    h('p', { class: 'note' }, () => {
      const { stage = '', done = 0, of = 0, unit } = opening.value?.progress ?? {};
      if (unit !== 'bytes') return stage;
      return done < of ? `${bytes(done)} of ${bytes(of)}` : `${bytes(of)} read; parsing the graph`;
    }),
    h('div', { class: 'row' }, h('button', { type: 'button', class: 'quiet', onclick: cancelOpening }, 'Cancel')),
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
      h('button', { type: 'button', id: 'enough', 'aria-disabled': () => (canSuffice() ? null : 'true'), 'aria-describedby': 'enough-why', onclick: () => canSuffice() && suffice() }, 'Stop and use the samples so far'),
      h('span', { class: 'note', id: 'enough-why' }, () => (canSuffice()
        ? `Continues with the ${plural(run.value?.progress.done ?? 0, 'sample')} seen so far. Escape cancels.`
        : 'Escape cancels. Model, samples and settings are kept.'))),
    h('dl', { class: 'facts live' },
      ...live('Samples', () => {
        const { done = 0, of = 0, unit } = run.value?.progress ?? {};
        return unit === 'samples' ? `${done} of ${of}` : '–';
      }),
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
    filling(),
  );
  const timer = setInterval(() => (clock.value = performance.now()), 250);
  effect(() => {
    if (!run.value) clearInterval(timer);
  });
  return panel;
}

const canSuffice = () => {
  const { stage, done = 0, unit } = run.value?.progress ?? {};
  return stage === 'Calibrating' && unit === 'samples' && done > 0;
};

/** @param {string} name @param {() => string} value */
function live(name, value) {
  return [h('div', {}, h('dt', {}, name), h('dd', {}, value))];
}
