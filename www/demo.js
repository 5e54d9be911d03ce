// @ts-check
/** The demo: a model, samples and settings that a server may offer beside the page. */

import { baseName } from './files.js';
import { fail } from './messages.js';
import { signal } from './signals.js';
import { model, opening } from './state.js';
import { addSamples, clearSamples, open, set } from './studio.js';

/** @type {import('./signals.js').Signal<{ name: string, model: { file: string, bytes: number }, samples: { file: string, label: string }[], settings?: any, source?: string, license?: string } | null>} */
export const demo = signal(/** @type {any} */ (null));

/** Finds out whether demo data is served beside the page. */
export async function findDemo() {
  const answer = await fetch(new URL('../demo/manifest.json', import.meta.url)).catch(() => null);
  if (answer?.ok) demo.value = await answer.json().catch(() => null);
}

/** Loads the demo's model, samples and settings. */
export async function openDemo() {
  const about = demo.peek();
  if (!about) return;
  const folder = new URL('../demo/', import.meta.url);
  /** @param {string} file */
  const get = async (file) => {
    const answer = await fetch(new URL(file, folder));
    if (!answer.ok) throw new Error(`${file} is not served (${answer.status}).`);
    return answer.blob();
  };
  opening.value = { name: about.name, progress: { stage: 'Fetching the demo from this server' } };
  try {
    const blob = await get(about.model.file);
    const files = await Promise.all(
      about.samples.map(async ({ file }) => ({ path: baseName(file), blob: await get(file) })),
    );
    const preset = about.settings?.preset;
    set({ ...(preset ? { preset } : {}), image: about.settings?.image ?? {} });
    clearSamples();
    await open({ path: baseName(about.model.file), blob });
    if (model.peek()) {
      const labels = new Map(about.samples.map(({ file, label }) => [baseName(file), label]));
      await addSamples(files, { source: `Demo data: ${about.source ?? about.name}`, labels });
    }
  } catch (error) {
    opening.value = null;
    fail('The demo could not be loaded', error, 'Open a model of your own.');
  }
}
