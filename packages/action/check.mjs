// The step of action.yml: makes or takes a quantized model, compares it with the float model, writes
// a summary, and fails with code 4 if a gate does not hold. Inputs are variables named OCTET_….

import { spawnSync } from 'node:child_process';
import { appendFileSync, statSync } from 'node:fs';
import { gates, summary } from './summary.mjs';

const input = (/** @type {string} */ name) => (process.env[`OCTET_${name}`] ?? '').trim();

/** Ends the step with a message that GitHub shows beside the run. @param {string} message @param {number} code */
function fail(message, code) {
  console.error(`::error title=Octet::${message.replaceAll('%', '%25').replaceAll('\n', '%0A')}`);
  process.exit(code);
}

/** Appends to a file that the runner names; elsewhere there is none. @param {string} variable @param {string} text */
function append(variable, text) {
  const file = process.env[variable];
  if (file) appendFileSync(file, text);
}

/**
 * Runs a command of Octet and returns its JSON.
 *
 * @param {string[]} args
 */
function octet(args) {
  const command = ['--yes', '--package', input('PACKAGE') || 'octet-onnx', 'octet-onnx', ...args];
  const { status, stdout, stderr, error } = spawnSync('npx', command, { encoding: 'utf8', maxBuffer: 1 << 30 });
  if (error) fail(`npx did not start: ${error.message}; install Node 20 or newer`, 1);
  process.stderr.write(stderr);
  if (status !== 0) fail(stderr.trim().split('\n').at(-1) || `octet ${args[0]} ended with ${status}`, status ?? 1);
  return JSON.parse(stdout);
}

const lines = (/** @type {string} */ text) => text.split('\n').map((line) => line.trim()).filter(Boolean);
const option = (/** @type {string} */ name, /** @type {string} */ value) => (value ? [name, value] : []);

for (const name of ['MODEL', 'SAMPLES']) {
  if (!input(name)) fail(`the input ${name.toLowerCase()} is empty: give a path in the repository`, 2);
}
const model = input('MODEL');
const samples = ['--samples', ...lines(input('SAMPLES'))];
const wanted = {
  require: input('REQUIRE'),
  maxSize: input('MAX_SIZE'),
  minSqnr: input('MIN_SQNR'),
  minAnswers: input('MIN_ANSWERS'),
  minLayerSqnr: input('MIN_LAYER_SQNR'),
};

let quantized = input('QUANTIZED');
let before = 0;
if (!quantized) {
  quantized = input('OUT') || 'octet-quantized.onnx';
  const made = octet(['quantize', model, ...samples, ...option('--config', input('SETTINGS')), '--out', quantized, '--json']);
  before = made.summary.bytesBefore;
} else {
  const card = octet(['inspect', model, '--json']);
  before = card.bytes + card.dataFiles.reduce((/** @type {number} */ sum, /** @type {{ bytes: number }} */ file) => sum + file.bytes, 0);
}
const comparison = octet(['compare', model, quantized, ...samples, ...option('--labels', input('LABELS')), '--json']);
const size = { before, after: statSync(quantized).size };
const checked = gates(wanted, comparison, size);
append('GITHUB_STEP_SUMMARY', summary(model, quantized, comparison, size, checked));
append('GITHUB_OUTPUT', `quantized=${quantized}\nverdict=${comparison.verdict?.decision ?? ''}\nbytes=${size.after}\n`);
const broken = checked.filter((gate) => !gate.holds);
if (broken.length) fail(broken.map((gate) => `${gate.name}: ${gate.found}, required is ${gate.required}`).join('\n'), 4);
