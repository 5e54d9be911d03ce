#!/usr/bin/env node
// The command line. This thread receives signals and watches for a panic; a worker runs the command
// (command-worker.js), since it blocks until it has ended.

import { Worker } from 'node:worker_threads';
import { slot } from '../../../www/shared-memory.js';
import { compileLazily, prepareNode } from './flags.js';

/** Exit code of a program that a signal ends. */
const killed = 130;

/** Exit code of an internal error. */
const internal = 70;

/** Interval in milliseconds at which a panic is looked for. */
const glance = 50;

/** First arguments of commands that start no threads (`threads_wanted` in src/bin/octet.rs). */
const withoutThreads = ['inspect', 'check', 'completions', 'help', '--help', '-h', '--version', '-V'];

const words = process.argv.slice(2);
prepareNode({ threads: !withoutThreads.includes(words[0] ?? 'help') });
compileLazily();

/** @type {{ control: Int32Array, panic: Uint8Array } | undefined} */
let shared;

/** @param {string} line @returns {never} */
function fail(line) {
  console.error(`octet: ${line}`);
  process.exit(internal);
}

const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: { name: 'octet', arguments: words } });
worker.on('message', ({ memory, code }) => {
  if (memory) shared = memory;
  else process.exit(code);
});
worker.on('exit', () => {
  look();
  fail('internal error, the command ended without a result; please report this line and the model\'s name');
});
worker.on('error', (error) => {
  look();
  fail(`internal error, ${error.message}; please report this line and the model's name`);
});

/** Ends the process after a panic, which it finds in shared memory. */
function look() {
  if (!shared || Atomics.load(shared.control, slot.panicked) === 0) return;
  fail(new TextDecoder().decode(shared.panic.slice()).replace(/\0+$/, ''));
}

setInterval(look, glance);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    // The first signal is a request, if the command follows one; a second one ends it.
    const follows = shared && Atomics.load(shared.control, slot.watching) !== 0;
    if (!shared || !follows || Atomics.exchange(shared.control, slot.cancel, 1) !== 0) process.exit(killed);
  });
}
