// Archives of samples: what is read equals what was packed, and damage is an error in words.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unzip } from '../../www/library/unzip.js';
import { zip } from '../../www/library/zip.js';
import { archive } from '../e2e/archive.mjs';

const files = { 'a.npy': Buffer.from('first '.repeat(50)), 'folder/b.npy': Buffer.from([1, 2, 3]), 'empty.txt': Buffer.alloc(0) };

/** @param {Uint8Array} bytes */
async function read(bytes) {
  const found = await unzip(new Blob([new Uint8Array(bytes)]));
  return Object.fromEntries(await Promise.all(found.map(async ({ path, blob }) => [path, Buffer.from(await blob.arrayBuffer())])));
}

test('deflated, stored and own archives are read as they were packed', async () => {
  assert.deepEqual(await read(archive(files)), files);
  assert.deepEqual(await read(archive(files, { stored: true })), files);
  assert.deepEqual(await read(zip(Object.entries(files).map(([name, bytes]) => ({ name, bytes })))), files);
});

test('folders and the hidden files of operating systems are left out', async () => {
  const more = { ...files, 'folder/': Buffer.alloc(0), '__MACOSX/a.npy': Buffer.from('x'), 'folder/.DS_Store': Buffer.from('x') };
  assert.deepEqual(Object.keys(await read(archive(more))), Object.keys(files));
});

test('each cut, and a file that is longer or shorter than stated, is refused with a reason', async () => {
  const whole = archive(files);
  for (let end = 0; end < whole.length; end += 1) {
    await assert.rejects(read(whole.subarray(0, end)), /The archive cannot be read: .+ Make it again/, `cut at ${end}`);
  }
  await assert.rejects(read(archive(files, { size: 2 })), /longer than the list of files says/);
  await assert.rejects(read(archive(files, { size: 1000 })), /a\.npy is damaged/);
  await assert.rejects(read(archive(files, { size: 2 ** 31 - 1 })), /at most 2000 MB are read/);
});

test('a changed byte is found, or changes nothing', async () => {
  const whole = archive(files);
  for (let at = 0; at < whole.length; at += 1) {
    const changed = Buffer.from(whole);
    changed[at] ^= 0x55;
    const found = await read(changed).catch((error) => error);
    if (found instanceof Error) assert.match(found.message, /The archive cannot be read/, `byte ${at}`);
    else for (const bytes of Object.values(found)) assert.ok(Object.values(files).some((one) => one.equals(bytes)), `byte ${at}`);
  }
});
