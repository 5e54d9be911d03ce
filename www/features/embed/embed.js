// @ts-check
/**
 * The studio in a frame: it takes commands from the page around it and tells what happens
 * (docs/embedding.md). Commands arrive at a port that the surrounding page gives with a greeting.
 * The greeting counts only from that page, and only if its origin may embed the studio.
 */

import { effect } from '../../library/signals.js';
import { problem } from '../../state/messages.js';
import { done, engine, model, opening, report, run, settings } from '../../state/page.js';
import { readOnly, shownPanels } from '../../state/surroundings.js';
import { addSamples } from '../data/samples.js';
import { trial } from '../data/state.js';
import { followLink, linkInAddress, openLink } from '../link/open-link.js';
import { take } from '../model/open.js';
import { cancel, quantize } from '../run/run.js';
import { blocked } from '../run/state.js';
import { adopt } from '../settings/undo.js';
import { showEmbedder } from './note.js';

/** @import { NamedFile, Settings } from '../../types.js' */

/** The version of the protocol. */
export const version = 1;

/** Origins that may embed the studio, besides its own. */
const embedders = (document.querySelector('meta[name=octet-embedders]')?.getAttribute('content') ?? '').split(/\s+/).filter(Boolean);

/** The port to the page around. @type {MessagePort | null} */
let port = null;

/** Openings run one after another. @type {Promise<unknown>} */
let openings = Promise.resolve();

/** @param {boolean} edited whether the fragment of the address has settings */
export function startEmbedded(edited) {
  const given = new URLSearchParams(location.search);
  if (given.has('panels')) shownPanels.value = (given.get('panels') ?? '').split(/[\s,]+/).filter(Boolean);
  readOnly.value = given.has('readonly');
  if (linkInAddress()) openings = followLink(edited);
  if (parent === window) return;
  addEventListener('message', greet);
  // Without content: it only asks for a greeting.
  parent.postMessage({ octet: 'waiting' }, '*');
}

/** @param {MessageEvent} event */
function greet({ source, origin, data, ports: [given] }) {
  if (source !== parent || data?.octet !== 'hello' || !given || port) return;
  /** @param {string} message */
  const refuse = (message) => given.postMessage({ type: 'refused', message });
  if (origin !== location.origin && !embedders.includes(origin)) {
    return refuse(`The studio at ${location.origin} may not be controlled by ${origin}. Its host allows that with “OCTET_EMBEDDERS=${origin} make dist”.`);
  }
  if (!Array.isArray(data.versions) || !data.versions.includes(version)) {
    return refuse(`The studio at ${location.origin} speaks version ${version} of the protocol, and the page asks for ${String(data.versions)}. Use the element of the same release.`);
  }
  port = given;
  port.onmessage = ({ data: asked }) => void answer(asked);
  showEmbedder(origin);
  tell({ type: 'ready', version });
  follow();
}

/** @param {Record<string, unknown>} message */
function tell(message) {
  port?.postMessage(message);
}

/** Tells what happens, from now on and once how it stands. */
function follow() {
  effect(() => {
    const { stage = '', done: count, of, unit } = (run.value ?? opening.value)?.progress ?? {};
    if (stage) tell({ type: 'progress', stage, done: count, of, unit });
  });
  effect(() => {
    const now = problem.value;
    if (now) tell({ type: 'error', title: now.title, message: now.message, next: now.next });
  });
  effect(() => {
    if (done.value) tell({ type: 'result', result: resultOf(done.value) });
  });
}

/** @param {import('../../state/page.js').Done} now */
const resultOf = ({ result, document }) => ({ name: result.summary.fileName, bytesBefore: result.summary.bytesBefore, bytesAfter: result.summary.bytesAfter, settings: document, summary: result.summary });

/** @param {() => boolean} holds @returns {Promise<void>} */
const until = (holds) => new Promise((next) => {
  let over = false;
  const stop = effect(() => {
    if (over || !holds()) return;
    over = true;
    next();
    queueMicrotask(() => stop());
  });
});

/** Fails with the problem that the page shows. @param {string} otherwise */
function failed(otherwise) {
  const now = problem.peek();
  return new Error(now ? `${now.title}. ${now.message}` : otherwise);
}

/**
 * The commands of the page around.
 *
 * @type {Record<string, (asked: any) => unknown>}
 */
const commands = {
  set({ panels, readonly }) {
    if (panels !== undefined) shownPanels.value = panels;
    if (readonly !== undefined) readOnly.value = Boolean(readonly);
  },

  /** A link: addresses that this origin serves. @param {{ model: string, samples?: string[], settings?: string }} asked */
  async openLink({ model: address, samples = [], settings: document = '' }) {
    if (!await openLink({ model: address, samples, settings: document })) throw failed('The opening was cancelled.');
  },

  /** Files of a model, of its weights, and samples. @param {{ files: NamedFile[] }} asked */
  async open({ files }) {
    const before = model.peek();
    await take(files);
    if (problem.peek()) throw failed('');
    if (!model.peek() || (model.peek() === before && files.some(({ path }) => /\.onnx$/i.test(path)))) throw new Error('The files hold no model that could be opened here.');
  },

  /** @param {{ files: NamedFile[] }} asked */
  async addSamples({ files }) {
    if (!model.peek()) throw new Error('No model is open: open one before its samples.');
    await addSamples(files);
    if (problem.peek()) throw failed('');
  },

  /** @param {{ settings?: Settings }} asked */
  async quantize({ settings: document }) {
    if (document) adopt(document, { byOwner: true });
    await until(() => engine.value.state !== 'starting' && opening.value === null && run.value === null && trial.value?.state !== 'running');
    if (blocked.peek()) throw new Error(blocked.peek());
    const former = done.peek();
    await quantize();
    const made = done.peek();
    if (!made || made === former) throw failed('The run was cancelled.');
    return resultOf(made);
  },

  /** The last result; `null` if there is none. */
  result() {
    const made = done.peek();
    return made && { ...resultOf(made), file: made.result.file, report: report.peek() };
  },

  settings: () => settings.peek().document,

  cancel,
};

/** Commands that wait for the openings before them. */
const inOrder = ['openLink', 'open', 'addSamples', 'quantize', 'result'];

/** @param {{ id: number, command: string }} asked */
async function answer({ id, command, ...asked }) {
  try {
    if (!Object.hasOwn(commands, command)) throw new Error(`The studio knows no command “${command}”: it has ${Object.keys(commands).join(', ')}.`);
    const work = inOrder.includes(command) ? openings.then(() => commands[command](asked)) : commands[command](asked);
    if (inOrder.includes(command)) openings = Promise.resolve(work).catch(() => {});
    tell({ type: 'answer', id, value: await work });
  } catch (error) {
    tell({ type: 'answer', id, failure: /** @type {Error} */ (error).message });
  }
}
