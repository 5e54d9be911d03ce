// @ts-check
/** The demos: models with samples and settings that a server may offer beside the page. */

import { baseName } from '../../files.js';
import { signal } from '../../library/signals.js';
import { fail } from '../../state/messages.js';
import { model, opening } from '../../state/page.js';
import { addSamples, clearSamples, setPreprocessing } from '../data/samples.js';
import { open } from '../model/open.js';

/**
 * @typedef {object} Demo
 * @property {string} id
 * @property {string} name
 * @property {string} what what it does, in a sentence
 * @property {{ file: string, bytes: number }} model
 * @property {{ file: string, label?: string }[]} samples
 * @property {{ preset?: string, image?: Record<string, unknown> }} [settings]
 * @property {string} [characters] a file with the characters that the model reads, one a line
 * @property {string} [source]
 * @property {string} [license]
 */

export const demos = signal(/** @type {Demo[]} */ ([]));

/** Loads the list of demos that the server offers. */
export async function findDemos() {
  const answer = await fetch(new URL('../../../demo/manifest.json', import.meta.url)).catch(() => null);
  const manifest = answer?.ok ? await answer.json().catch(() => null) : null;
  if (Array.isArray(manifest?.demos)) demos.value = manifest.demos;
}

/**
 * The characters from a file with one a line: the blank first, a space last.
 *
 * @param {string} text
 */
const charactersOf = (text) => ['', ...text.replace(/\n$/, '').split('\n'), ' '];

/** Loads a demo's model, samples and settings. @param {Demo} about */
export async function openDemo(about) {
  const folder = new URL('../../../demo/', import.meta.url);
  /** @param {string} file */
  const get = async (file) => {
    const answer = await fetch(new URL(file, folder));
    if (!answer.ok) throw new Error(`${file} could not be downloaded (HTTP ${answer.status}).`);
    return answer.blob();
  };
  opening.value = { name: about.name, progress: { stage: 'Downloading the demo' } };
  try {
    const blob = await get(about.model.file);
    const files = await Promise.all(
      about.samples.map(async ({ file }) => ({ path: baseName(file), blob: await get(file) })),
    );
    clearSamples();
    await open({ path: baseName(about.model.file), blob });
    if (model.peek()) {
      const preset = about.settings?.preset;
      // The demo's image settings take precedence over the proposal.
      if (about.settings) setPreprocessing({ ...(preset ? { preset } : {}), image: about.settings.image ?? {} });
      const labels = new Map(about.samples.flatMap(({ file, label }) => (label ? [[baseName(file), label]] : [])));
      const characters = about.characters ? charactersOf(await (await get(about.characters)).text()) : [];
      await addSamples(files, { source: `Demo data: ${about.source ?? about.name}`, labels, characters });
    }
  } catch (error) {
    opening.value = null;
    fail('The demo could not be loaded', error, 'Open a model of your own.');
  }
}
