// @ts-check
/** Sound of a sample and of both models: drawn, and played. */

import { isSound } from '../../files.js';
import { h } from '../../library/dom.js';
import { sampleSettings } from '../../state/page.js';
import { waveform } from '../data/sound-fields.js';
import { filesOf } from './picture.js';

/** @import { SoundAnswer } from '../../types.js' */
/** @import { Part } from './words.js' */

/** @type {AudioContext | null} */
let output = null;
/** @type {AudioBufferSourceNode | null} */
let playing = null;

/**
 * The recording of a sample, drawn and playable.
 *
 * @param {string} sample
 * @returns {Promise<Node[]>}
 */
export async function recordingOf(sample) {
  const file = filesOf(sample).find(isSound);
  if (!file) return [];
  try {
    output ??= new AudioContext();
    const recorded = await output.decodeAudioData(await file.blob.arrayBuffer());
    return [figure('Input', recorded)];
  } catch {
    return [h('p', { class: 'note' }, 'This browser cannot play the recording.')];
  }
}

/** @type {Part<SoundAnswer>} */
export async function sounds({ sample, answer }) {
  const { rate } = sampleSettings().audio;
  output ??= new AudioContext();
  const buffer = (/** @type {Float32Array} */ values) => {
    const made = /** @type {AudioContext} */ (output).createBuffer(1, values.length, rate);
    made.getChannelData(0).set(values);
    return made;
  };
  return [...await recordingOf(sample), figure('Float', buffer(answer.float)), figure('Quantized', buffer(answer.quantized))];
}

/** @param {string} title @param {AudioBuffer} sound */
function figure(title, sound) {
  const play = h('button', { type: 'button', class: 'small', 'aria-label': `Play: ${title}`, onclick: () => toggle(sound) }, 'Play');
  return h('figure', {}, h('figcaption', {}, title), waveform(sound.getChannelData(0)), h('div', { class: 'row' }, play, h('span', { class: 'note' }, `${sound.duration.toFixed(1)} s`)));
}

/** Plays a sound in place of the one before; the same one stops. @param {AudioBuffer} sound */
function toggle(sound) {
  const before = playing;
  playing = null;
  before?.stop();
  if (!output || before?.buffer === sound) return;
  void output.resume();
  const source = output.createBufferSource();
  source.buffer = sound;
  source.connect(output.destination);
  source.addEventListener('ended', () => playing === source && (playing = null));
  source.start();
  playing = source;
}
