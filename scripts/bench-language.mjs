// Language models: quality of quantized weights, and memory and speed of large conversions. The
// measuring is in Python (benches/language_model.py, benches/large_model.py); rows for
// scripts/bench.mjs.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** Rows of ours, each with the peer's rows of equal size. */
const pairs = [
  { row: 'Octet q4, search', peers: ['ORT q4', "ORT q4, neural_compressor's RTN"] },
  { row: 'Octet q4, k-quant', peers: ['ORT q4, zero points', 'ORT q4, k-quant'] },
  { row: 'Octet with embeddings, q4, search', peers: ['ORT with embeddings, q4'] },
  { row: 'Octet q8, RTN', peers: ['ORT q8'] },
];

/**
 * @typedef {(bench: string, row: string, value: number, unit: string, judged: { target: string, holds: boolean, peer?: string | null, peer_value?: number | null, ratio?: number | null }) => void} Recorder
 * @typedef {{ name: string, kl: number, top1: number, perplexity: number, bytes: number, seconds?: number, peak_bytes?: number }} Judged
 * @typedef {{ form: string, gigabytes: number, peak_mib: number, seconds: number, pump_seconds: number, speed: number, user_per_gb: number }} Large
 */

/** @param {string} script @param {string} python @param {string[]} words @returns {any[]} */
function rowsOf(script, python, words) {
  const folder = mkdtempSync(join(tmpdir(), 'octet-language-'));
  try {
    const file = join(folder, 'rows.json');
    const done = spawnSync(python, [join(checkout, 'benches', script), ...words, '--json', file], { stdio: ['ignore', 'inherit', 'inherit'] });
    if (done.status !== 0) throw new Error(`benches/${script} failed (above)`);
    return JSON.parse(readFileSync(file, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {Recorder} record @param {string} python @param {string[]} only words in the names of rows */
export function language(record, python, only) {
  /** @type {Judged[]} */
  const rows = rowsOf('language_model.py', python, only);
  const by = new Map(rows.map((row) => [row.name, row]));
  const float = by.get('float32')?.perplexity ?? NaN;
  for (const row of rows.slice(1)) {
    const ratio = row.perplexity / float;
    const eight = row.name.includes('q8');
    record('language', `${row.name}: perplexity`, row.perplexity, `at ${(row.bytes / 1e6).toFixed(0)} MB`, {
      peer: 'float32', peer_value: float, ratio, target: eight ? 'within 0.5 %' : '', holds: !eight || ratio <= 1.005,
    });
  }
  for (const { row, peers } of pairs) {
    const ours = by.get(row);
    for (const name of peers) {
      const theirs = by.get(name);
      if (!ours || !theirs) continue;
      const ratio = ours.kl / theirs.kl;
      record('language', `${row}: KL to float32`, ours.kl, 'nats', {
        peer: name, peer_value: theirs.kl, ratio, target: 'at most 1, at most 1 % more bytes', holds: ratio <= 1 && ours.bytes <= 1.01 * theirs.bytes,
      });
    }
  }
  const [q4, half] = ['Octet q4, RTN', 'Octet float16, q4, RTN'].map((name) => by.get(name));
  if (q4 && half) {
    const ratio = half.kl / q4.kl;
    record('language', `${half.name}: KL to float32`, half.kl, 'nats', { peer: q4.name, peer_value: q4.kl, ratio, target: 'within 5 %', holds: ratio <= 1.05 });
  }
}

/** @param {Recorder} record @param {string} python @param {string[]} only sizes in GB */
export function large(record, python, only) {
  /** @type {Large[]} */
  const rows = rowsOf('large_model.py', python, only);
  for (const row of rows) {
    // The smallest model in the same form.
    const first = rows.find(({ form }) => form === row.form) ?? row;
    const least = first.peak_mib;
    const name = `${row.gigabytes.toFixed(1)} GB to ${row.form}`;
    record('large', `${name}: peak memory`, row.peak_mib, 'MiB', {
      peer: `${first.gigabytes.toFixed(1)} GB`, peer_value: least, ratio: row.peak_mib / least,
      target: 'at most 350, within 5 %', holds: row.peak_mib <= 350 && row.peak_mib <= 1.05 * least,
    });
    record('large', `${name}: time`, row.seconds, 's', {
      peer: 'a pump', peer_value: row.pump_seconds, ratio: row.pump_seconds / row.seconds, target: 'at least 0.9 of its speed', holds: row.speed >= 0.9,
    });
    record('large', `${name}: processor time`, row.user_per_gb, 's/GB', { target: '', holds: true });
  }
}
