// Labels of the user's samples, from files and folders.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { classesOf, labelled } from '../../www/features/data/labels.js';

/** @param {string[]} names */
const refs = (...names) => names.map((name) => ({ name, parts: [name] }));
/** @param {string} path @param {...string} lines */
const file = (path, ...lines) => ({ path, text: lines.join('\n') });

test('a file of labels names samples by path or by name, with a heading or without', () => {
  const found = labelled(refs('in/a.jpg', 'in/b.jpg', 'c.jpg'), [file('labels.csv', 'file,class', 'a.jpg,7', 'in/b.jpg;3', '"c.jpg", "12"')], 1000);
  assert.deepEqual([...found.labels], [['in/a.jpg', '7'], ['in/b.jpg', '3'], ['c.jpg', '12']]);
  assert.match(found.source, /^3 of 3 samples have a label, from labels\.csv/);
  assert.deepEqual(found.used, ['labels.csv']);
});

test('folders that are numbers are classes; names are put in order where the model knows as many', () => {
  assert.deepEqual([...labelled(refs('v/0/a.png', 'v/5/b.png'), [], 10).labels.values()], ['0', '5']);
  const found = labelled(refs('pets/dog/1.png', 'pets/cat/2.png'), [], 2);
  assert.deepEqual([...found.labels.values()], ['1', '0']);
  assert.deepEqual([...found.names], [['0', 'cat'], ['1', 'dog']]);
});

test('names are looked up in a list of classes', () => {
  const list = file('synset_words.txt', 'n01 tench, Tinca', 'n02 goldfish', 'n03 shark');
  assert.deepEqual([...labelled(refs('n03/x.jpg', 'n01/y.jpg'), [list], 3).labels.values()], ['2', '0']);
  assert.deepEqual([...labelled(refs('a.jpg'), [file('classes.txt', '0: cat', '1: dog'), file('mine.csv', 'a.jpg,dog')], 2).labels.values()], ['1']);
});

test('what can’t be told is not guessed, and the reason is said', () => {
  assert.match(labelled(refs('dog/1.png', 'cat/2.png'), [], 1000).failure, /names \(cat, dog\).*1000 classes: add a classes\.txt/);
  assert.match(labelled(refs('a.jpg'), [file('l.csv', 'a.jpg,1000')], 1000).failure, /Class 1000 .* does not exist/);
  assert.match(labelled(refs('a.jpg'), [file('classes.txt', 'cat', 'dog'), file('l.csv', 'a.jpg,cow')], 2).failure, /does not contain cow/);
  assert.match(labelled(refs('a.jpg'), [file('classes.txt', 'cat', 'dog')], 2).failure, /no file says which/);
});

test('files that name no sample, one folder for all, and samples of several files are no labels', () => {
  assert.deepEqual(labelled(refs('a.jpg', 'b.jpg'), [file('notes.txt', 'hi')], 10).used, []);
  assert.equal(labelled(refs('photos/a.jpg', 'photos/b.jpg'), [], 10).labels.size, 0);
  assert.equal(labelled([{ name: 'set_0', parts: ['set_0/input_0.pb'] }, { name: 'set_1', parts: ['set_1/input_0.pb'] }], [], 10).labels.size, 0);
});

test('the number of classes is the last size of a list of scores', () => {
  assert.deepEqual(['1×1000', 'N×10', '1×1000×1×1', '1×2×4×4', '1×40×97', '1', undefined].map(classesOf), [1000, 10, 1000, null, null, null, null]);
});
