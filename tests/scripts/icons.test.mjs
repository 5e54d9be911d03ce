// The PNG icons equal the SVG icon, and the files that the manifest names exist.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inflateSync } from 'node:zlib';
import { bars, ground, icon, makeIcons } from '../../scripts/icons.mjs';

test('they have the shapes of the SVG icon', () => {
  const drawn = [...readFileSync('www/icon.svg', 'utf8').matchAll(/<rect ([^>]*)\/>/g)].map(([, text]) => Object.fromEntries([...text.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key, value])));
  const boxes = [ground, ...bars].map(({ x, y, width, height, radius, opacity }) => [x, y, width, height, radius, opacity]);
  assert.deepEqual(drawn.map((one) => [one.x ?? 0, one.y ?? 0, one.width, one.height, one.rx, one.opacity ?? 1].map(Number)), boxes);
  assert.equal(drawn[0].fill, `#${ground.colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`);
});

test('a pixel in the corner is clear, on the ground green, on a bar white', () => {
  const file = icon(64, false);
  assert.equal(file.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n');
  assert.deepEqual([file.readUInt32BE(16), file.readUInt32BE(20)], [64, 64]);
  const rows = inflateSync(file.subarray(file.indexOf('IDAT') + 4, file.indexOf('IEND') - 8));
  const pixel = (/** @type {number} */ x, /** @type {number} */ y) => [...rows.subarray(y * 257 + 1 + x * 4, y * 257 + 5 + x * 4)];
  assert.equal(pixel(0, 0)[3], 0);
  assert.deepEqual(pixel(32, 4), [...ground.colour, 255]);
  assert.deepEqual(pixel(15, 32), [255, 255, 255, 255]);
});

test('the manifest names what is made', () => {
  const folder = mkdtempSync(join(tmpdir(), 'octet-icons-'));
  makeIcons(folder);
  const { icons } = JSON.parse(readFileSync('manifest.webmanifest', 'utf8'));
  const named = icons.map((/** @type {{ src: string }} */ { src }) => src).filter((/** @type {string} */ src) => src.endsWith('.png')).map((/** @type {string} */ src) => src.replace('pkg/icons/', ''));
  assert.deepEqual(readdirSync(folder).sort(), named.sort());
  rmSync(folder, { recursive: true });
});
