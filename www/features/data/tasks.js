// @ts-check
/** Tasks of models in words, and the samples that fit each. */

/** @import { Certainty, ModelSummary, ModelTask } from '../../types.js' */

/** @type {Record<ModelTask, [name: string, samples: string]>} */
const tasks = {
  classifier: ['an image classifier', 'Pictures of what it will see, such as 5 of each class; with labels, the accuracy is measured.'],
  detector: ['a detector', 'Photos like those in which it will find things.'],
  segmenter: ['a segmenter', 'Photos like those that it will divide.'],
  'image-to-image': ['a model that makes images from images', 'Images like those that it will change.'],
  'image-encoder': ['an image encoder', 'Pictures like those that it will encode.'],
  'text-encoder': ['a text encoder', 'Texts (.txt, .jsonl, .csv) with the model’s tokenizer.json.'],
  'text-classifier': ['a text classifier', 'Texts (.txt, .jsonl, .csv) with the model’s tokenizer.json.'],
  'language-model': ['a language model', 'Texts (.txt, .jsonl, .csv) with the model’s tokenizer.json.'],
  speech: ['a speech model', 'Recordings.'],
  audio: ['a model of sound', 'Recordings.'],
  table: ['a model of tables', 'A .csv file with a column for each feature.'],
  other: ['', ''],
};

/** @type {Record<Certainty, string>} */
const certainties = { sure: 'sure', likely: 'likely', guess: 'a guess' };

/** The task in one or two words; empty if it is not known. @param {ModelSummary} card */
export function taskName({ task }) {
  const name = tasks[task.task][0].replace(/^an? /, '');
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** A sentence on the task, with its reason. @param {ModelSummary} card */
export function taskSentence({ task: { task, why, certainty } }) {
  return task === 'other' ? `What the model is for could not be told: ${why}.` : `Octet takes this for ${tasks[task][0]}: ${why} (${certainties[certainty]}).`;
}

/** The samples that fit the model. Sound needs an input for a waveform. @param {ModelSummary} card */
export function fittingSamples(card) {
  const { task: { task }, audio } = card;
  if (task === 'speech' || task === 'audio') return audio ? `Recordings (.wav); they become ${audio.rate} values a second in one channel.` : '.npy or .npz files of what it takes, such as spectrograms.';
  if (task === 'table' && !card.rows) return '.npy or .npz files with an array for each input.';
  return tasks[task][1];
}
