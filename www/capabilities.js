// @ts-check
/**
 * Capabilities of this browser, and the build that follows from them. Each one has a reason in
 * words, so that the page can explain, for example, “1 thread”.
 */

import { isIsolated, processors } from './environment.js';

/**
 * @typedef {object} Capability
 * @property {string} name
 * @property {boolean} has
 * @property {string} why
 */

/**
 * @typedef {object} Capabilities
 * @property {'threads' | 'baseline' | null} variant the build to load; `null` where none can run
 * @property {string} reason why that build
 * @property {number} threads the most that make sense here
 * @property {Capability[]} list
 */

const header = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
/** One function, `() -> ()`. */
const plainFunction = [0x01, 0x04, 0x01, 0x60, 0x00, 0x00, 0x03, 0x02, 0x01, 0x00];
const splat = [0x41, 0x00, 0xfd, 0x0f];
const [drop, end] = [0x1a, 0x0b];

/** @param {number[]} body the instructions of the only function @param {number[]} [memory] a memory section */
function valid(body, memory = []) {
  const code = [0x00, ...body, end];
  return WebAssembly.validate(
    new Uint8Array([...header, ...plainFunction, ...memory, 0x0a, code.length + 2, 0x01, code.length, ...code]),
  );
}

/** `i8x16.splat` */
const hasSimd = () => valid([...splat, drop]);
/** `i8x16.relaxed_swizzle` */
const hasRelaxedSimd = () => valid([...splat, ...splat, 0xfd, 0x80, 0x02, drop]);
/** `i32.atomic.load` from a shared memory of one page */
const hasAtomics = () => valid([0x41, 0x00, 0xfe, 0x10, 0x02, 0x00, drop], [0x05, 0x04, 0x01, 0x03, 0x01, 0x01]);

/**
 * True if shared memory can be created. A page without isolation may create it, but can't post it.
 */
function hasSharedMemory() {
  try {
    return Boolean(new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer);
  } catch {
    return false;
  }
}

/** @returns {Capabilities} */
export function detect() {
  if (typeof WebAssembly !== 'object') {
    return {
      variant: null,
      reason: 'This browser has no WebAssembly, or it is turned off; Octet cannot run here.',
      threads: 0,
      list: [],
    };
  }
  const simd = hasSimd();
  const relaxed = hasRelaxedSimd();
  const atomics = hasAtomics() && hasSharedMemory();
  const isolated = isIsolated();
  const cores = processors();
  const threads = atomics && relaxed && isolated ? cores : 1;

  /** @type {Capability[]} */
  const list = [
    {
      name: 'SIMD',
      has: simd,
      why: simd
        ? 'This browser computes on 128-bit vectors.'
        : 'This browser has no WebAssembly SIMD (Chrome 91, Firefox 89 and Safari 16.4 have it).',
    },
    {
      name: 'Relaxed SIMD',
      has: relaxed,
      why: relaxed
        ? 'Fused multiply-add and int8 dot products are used.'
        : 'This browser has no relaxed SIMD (Chrome 114, Firefox 145 and Safari 26 have it); fixed SIMD is used.',
    },
    {
      name: 'Isolated page',
      has: isolated,
      why: isolated
        ? 'The server sends the isolation headers, so threads may share memory.'
        : 'The server does not send the headers COOP same-origin and COEP require-corp, so the browser allows no threads.',
    },
    {
      name: threads > 1 ? `${threads} threads` : '1 thread',
      has: threads > 1,
      why:
        threads > 1
          ? `Calibration runs on up to ${threads} cores.`
          : !isolated
            ? 'The page is not isolated, so everything runs on one core. Results are the same, only slower.'
            : !(atomics && relaxed)
              ? 'The build for older browsers has one thread.'
              : 'This machine reports one core.',
    },
  ];
  if (!simd) {
    return { variant: null, reason: 'This browser has no WebAssembly SIMD; Octet needs it.', threads: 0, list };
  }
  if (relaxed && atomics) {
    const reason = 'This browser has relaxed SIMD and atomics, so the full build is loaded.';
    return { variant: 'threads', reason, threads, list };
  }
  const missing = [!relaxed && 'relaxed SIMD', !atomics && 'atomics'].filter(Boolean).join(' and ');
  const reason = `This browser has no ${missing}, so the build for older browsers is loaded.`;
  return { variant: 'baseline', reason, threads, list };
}

/** Advice for a server without a build. @param {'threads' | 'baseline'} variant */
export function absent(variant) {
  if (variant === 'threads') return 'This server lacks the build for current browsers. Run “make serve” on the server to build it.';
  return 'This browser needs the build for older browsers, which this server lacks. Run “make serve VARIANTS=all” on the server to build it, '
    + 'or use a newer browser: Chrome 114, Firefox 145, Safari 26.';
}
