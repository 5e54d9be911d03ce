// Runs cargo and shows the compiler's messages, except for one warning that can't be avoided.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** @typedef {{ level: string, message: string, rendered: string | null }} Diagnostic one of the compiler's, as JSON */

/**
 * True for messages that should be shown. wasm threads need the target feature `atomics`, which is
 * unstable in every compiler. The compiler warns of it for each of our crates, whatever the lints.
 * The closing count of warnings is omitted as well, as it would include those.
 *
 * @param {Diagnostic} diagnostic
 */
export function isNews({ level, message }) {
  if (level !== 'warning') return true;
  return message !== 'unstable feature specified for `-Ctarget-feature`: `atomics`' && !/^\d+ warnings? emitted$/.test(message);
}

/**
 * @param {string[]} args
 * @param {{ env: NodeJS.ProcessEnv, cwd: string }} options
 * @returns {Promise<{ status: number | null, artifacts: any[] }>} what cargo made or found fresh, as it tells in JSON
 */
export async function cargo(args, options) {
  const format = process.stderr.isTTY ? 'json-diagnostic-rendered-ansi' : 'json';
  const child = spawn('cargo', [args[0], `--message-format=${format}`, ...args.slice(1)], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
  /** @type {Promise<number | null>} */
  const ended = new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  const artifacts = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{')) continue;
    const told = JSON.parse(line);
    if (told.reason === 'compiler-artifact') artifacts.push(told);
    if (told.reason === 'compiler-message' && isNews(told.message)) process.stderr.write(told.message.rendered ?? `${told.message.message}\n`);
  }
  return { status: await ended, artifacts };
}
