// @ts-check
/**
 * One compiled wasm module for all studios in frames of one page: the first studio loads and
 * compiles it, the others take it from there. Each studio has its own worker and memory, so a run or
 * a crash in one does not stop another.
 *
 * Frames of one origin can read one another's windows, whatever the origin of the page around them.
 */

/** The key of the modules at a window, the same in all frames. */
const key = Symbol.for('octet compiled wasm');

/** Interval in milliseconds at which a studio looks whether the one that compiles is still there. */
const glance = 500;

/** @typedef {Partial<Record<string, Promise<WebAssembly.Module>>>} Modules */

/** The modules of a window; those of another origin have none. @param {Window} of @returns {Modules} */
function modulesOf(of) {
  try {
    return /** @type {any} */ (of)[key] ?? {};
  } catch {
    return {};
  }
}

/**
 * A promise of another frame. It fails if that frame is removed, as it would never settle.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {Window} frame
 * @returns {Promise<T>}
 */
function whileThere(promise, frame) {
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => frame.closed && reject(new Error('The frame was removed.')), glance);
    promise.then(resolve, reject).finally(() => clearInterval(timer));
  });
}

/** @param {'threads' | 'baseline'} variant @returns {Promise<WebAssembly.Module>} */
export async function compiledModule(variant) {
  /** @type {Modules} */
  const own = (/** @type {any} */ (window)[key] ??= {});
  for (const frame of parent === window ? [] : Array.from({ length: parent.length }, (_, index) => parent[index])) {
    const theirs = frame === window ? undefined : modulesOf(frame)[variant];
    if (!theirs) continue;
    // Kept here, too: a third studio then finds it, whichever frame is removed.
    own[variant] = whileThere(theirs, frame);
    try {
      return await own[variant];
    } catch {
      delete own[variant];
    }
  }
  const address = new URL(`../pkg/${variant}/octet_bg.wasm`, import.meta.url);
  own[variant] = WebAssembly.compileStreaming(fetch(address));
  own[variant].catch(() => delete own[variant]);
  return own[variant];
}
