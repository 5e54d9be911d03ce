// @ts-check
/**
 * The search under a budget in the worker. It has a session of its own, since only one half of the
 * samples calibrates it; what it found stays for the settings of each point.
 */

import { calibrateSession } from './calibration-worker.js';
import { loaded, memory, samplesOf, stopped } from './loaded-engine.js';

/** @import { SearchOutcome, SearchProgress, Settings } from './types.js' */
/** @import { Arguments } from './calls.js' */
/** @import { Report, Sample, Session } from './loaded-engine.js' */

/** The curves of open models, by their number. @type {Map<number, import('../pkg/threads/octet.js').SearchCurve>} */
const curves = new Map();

/** Words for the stages of a search. @type {Record<string, string>} */
const words = {
  quantizing: 'Quantizing with 4, 8 and 16 bits',
  'float model': 'Running the float model',
  'single tensors': 'Measuring tensors one by one',
  'worst tensors': 'Measuring the worst tensors on more samples',
  'float outputs': 'Running the float model on all samples',
  'points of the curve': 'Trying points of the curve',
};

/**
 * Searches, and keeps the curve.
 *
 * @param {Arguments<'search'>} args
 * @param {Report} report
 * @param {() => Promise<boolean>} enough
 * @returns {Promise<SearchOutcome>}
 */
export async function search({ key, name, blob, attached, files, samples, labels, settings, calibration, options }, report, enough) {
  const all = samplesOf(files);
  const choosing = new Set(loaded().choosingHalf(all.length, 0));
  const quiet = () => {};
  const unlessStopped = async () => {
    if (await enough()) throw stopped();
  };
  report({ stage: 'Preparing the model', memory: memory() });
  loaded().resetControl();
  const open = await loaded().Session.open(name, blob, quiet);
  try {
    if (attached.length > 0) await open.attach(attached, quiet);
    open.beginSearch(settings, options);
    await calibrateSession(open, all.filter((_, index) => choosing.has(index)), { ...calibration, samples }, report, async () => (await unlessStopped(), false));
    report({ stage: 'Reading the samples', memory: memory() });
    for (const [index, sample] of all.entries()) {
      await unlessStopped();
      await open.addSearchSample(sample.name, sample.files, samples, labels[sample.name], !choosing.has(index));
    }
    for (let now; (now = /** @type {SearchProgress | null} */ (open.searchStep()));) {
      report({ stage: words[now.stage] ?? now.stage, done: now.done, of: now.of, unit: 'steps', memory: memory() });
      await unlessStopped();
    }
    forget(key);
    const curve = open.takeCurve();
    curves.set(key, curve);
    return { ...curve.result(), sensitivities: curve.sensitivities() };
  } finally {
    open.free();
  }
}

/** The settings of a point. @param {Arguments<'searchSettings'>} args @returns {Settings} */
export function searchSettings({ key, point }) {
  const curve = curves.get(key);
  if (!curve) throw Object.assign(new Error('The worker that searched has ended, and its curve with it. Search again.'), { kind: 'order' });
  return curve.settings(point);
}

/** Frees the curve of a model. @param {number} key */
export function forget(key) {
  curves.get(key)?.free();
  curves.delete(key);
}
