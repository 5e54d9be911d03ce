#!/usr/bin/env node
// PNG icons for installing the page. The shapes are those of www/icon.svg, drawn here without other
// programs.
//
//   node scripts/icons.mjs [DIR]        (pkg/icons where none is given)

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deflateSync } from 'node:zlib';

/** @typedef {{ x: number, y: number, width: number, height: number, radius: number, colour: [number, number, number], opacity: number }} Box in a square of 32 */

/** The shapes of www/icon.svg; tests/scripts/icons.test.mjs compares them. @type {Box[]} */
export const bars = [6, 11.5, 17, 22.5].map((x, index) => ({ x, y: 7, width: 3.6, height: 18, radius: 1.2, colour: [255, 255, 255], opacity: index % 2 === 0 ? 1 : 0.45 }));
/** @type {Box} */
export const ground = { x: 0, y: 0, width: 32, height: 32, radius: 7, colour: [0x0b, 0x6e, 0x63], opacity: 1 };

/** Number of subpixels per side that each pixel averages. */
const fine = 4;

/** @param {Box} box @param {number} x @param {number} y */
function inside({ x: left, y: top, width, height, radius }, x, y) {
  // Distance from the box without its rounded corners; within their radius is inside.
  const across = Math.max(left + radius - x, x - (left + width - radius), 0);
  const down = Math.max(top + radius - y, y - (top + height - radius), 0);
  return Math.hypot(across, down) <= radius;
}

/**
 * @param {number} side in pixels
 * @param {boolean} maskable filled to its edges, its signs in the middle: the system cuts its own form out
 * @returns {Buffer} a PNG file
 */
export function icon(side, maskable) {
  const shrunk = (/** @type {Box} */ box) => ({ ...box, x: 16 + (box.x - 16) * 0.85, y: 16 + (box.y - 16) * 0.85, width: box.width * 0.85, height: box.height * 0.85, radius: box.radius * 0.85 });
  const boxes = maskable ? [{ ...ground, radius: 0 }, ...bars.map(shrunk)] : [ground, ...bars];
  // The filter byte of each row: 0, unfiltered.
  const rows = Buffer.alloc(side * (side * 4 + 1));
  for (let row = 0; row < side; row += 1) {
    for (let column = 0; column < side; column += 1) {
      const sum = [0, 0, 0, 0];
      for (let part = 0; part < fine * fine; part += 1) {
        const x = ((column + ((part % fine) + 0.5) / fine) * 32) / side;
        const y = ((row + (Math.floor(part / fine) + 0.5) / fine) * 32) / side;
        let [red, green, blue, alpha] = [0, 0, 0, 0];
        for (const box of boxes) {
          if (!inside(box, x, y)) continue;
          const { opacity, colour } = box;
          [red, green, blue] = [red, green, blue].map((under, at) => colour[at] * opacity + under * (1 - opacity));
          alpha = opacity + alpha * (1 - opacity);
        }
        [red, green, blue, alpha].forEach((value, at) => (sum[at] += value));
      }
      const at = row * (side * 4 + 1) + 1 + column * 4;
      // PNG colours are not premultiplied by alpha.
      for (let colour = 0; colour < 3; colour += 1) rows[at + colour] = sum[3] === 0 ? 0 : Math.round(sum[colour] / sum[3]);
      rows[at + 3] = Math.round((sum[3] / (fine * fine)) * 255);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 6, 0, 0, 0], 8); // eight bits, red green blue alpha
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

/** @param {string} name @param {Buffer} data */
function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(checksum(body));
  return Buffer.concat([length, body, sum]);
}

/** CRC-32 of PNG: the reflected polynomial 0xedb88320. @param {Buffer} bytes */
function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

/** @param {string} folder */
export function makeIcons(folder) {
  mkdirSync(folder, { recursive: true });
  for (const side of [192, 512]) writeFileSync(join(folder, `${side}.png`), icon(side, false));
  writeFileSync(join(folder, 'maskable.png'), icon(512, true));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  makeIcons(process.argv[2] ?? join(dirname(dirname(fileURLToPath(import.meta.url))), 'pkg', 'icons'));
}
