// @ts-check
/** The engine that the page uses: started once, for all panels. */

import { Octet } from '../octet.js';
import { batch } from '../library/signals.js';
import { say } from './messages.js';
import { engine, presets, settings } from './page.js';
import { embedded } from './surroundings.js';

/** Studios in frames of one page share the compiled wasm. @param {'threads' | 'baseline'} variant */
const compiled = async (variant) => {
  const { compiledModule } = await import('../compiled-module.js');
  return compiledModule(variant);
};

/** @type {Promise<Octet> | null} */
let starting = null;
/** Starts the worker once. @returns {Promise<Octet>} */
export function start() {
  starting ??= Octet.start({ threads: settings.peek().threads, onOneThread, ...(embedded && { compiled }) }).then(
    async (octet) => {
      presets.value = await octet.presets();
      engine.value = { ...engine.peek(), state: 'ready', message: '' };
      return octet;
    },
    (error) => {
      starting = null;
      engine.value = { ...engine.peek(), state: 'failed', message: `The engine could not start: ${error.message}` };
      throw error;
    },
  );
  return starting;
}

// A page that is left frees its files at once. If it comes back, the next call starts a new worker.
addEventListener('pagehide', () => void starting?.then((octet) => octet.close(), () => {}));

/** @param {string} why */
function onOneThread(why) {
  batch(() => {
    engine.value = { ...engine.peek(), noThreads: why };
    settings.value = { ...settings.peek(), threads: 1 };
  });
  say('The worker threads did not start; everything runs on one thread.');
}

/** Another number of threads; the engine starts again with it. @param {number} threads */
export function setThreads(threads) {
  settings.value = { ...settings.peek(), threads };
  engine.value = { ...engine.peek(), noThreads: '' };
  start().then((octet) => (octet.threads = settings.peek().threads), () => {});
}
