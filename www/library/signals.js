// @ts-check
/**
 * Signals: values that know their readers. `effect` runs again when a signal that it read changes.
 * Changes inside `batch` are propagated once. Independent of the DOM.
 */

/** @typedef {{ run: () => void, sources: Set<Set<Effect>>, inner: (() => void)[] }} Effect */

/** @type {Effect | null} */
let reading = null;
/** @type {Set<Effect>} */
const pending = new Set();
let depth = 0;

/**
 * @template T
 * @typedef {object} Signal
 * @property {T} value read: subscribes the running effect; write: wakes the readers
 * @property {() => T} peek reads without subscribing
 */

/**
 * @template T
 * @param {T} initial
 * @returns {Signal<T>}
 */
export function signal(initial) {
  let current = initial;
  /** @type {Set<Effect>} */
  const readers = new Set();
  return {
    get value() {
      if (reading) {
        readers.add(reading);
        reading.sources.add(readers);
      }
      return current;
    },
    set value(next) {
      if (Object.is(next, current)) return;
      current = next;
      for (const reader of readers) pending.add(reader);
      if (depth === 0) flush();
    },
    peek: () => current,
  };
}

/**
 * A value computed from other signals, updated when they change.
 *
 * @template T
 * @param {() => T} work
 * @returns {{ readonly value: T, peek: () => T }}
 */
export function computed(work) {
  const result = signal(/** @type {T} */ (undefined));
  effect(() => {
    result.value = work();
  });
  return result;
}

/**
 * Runs `work` now and whenever a signal that it read changes. Effects created by `work` end with
 * its next run, so views leave nothing behind.
 *
 * @param {() => void} work
 * @returns {() => void} stops it
 */
export function effect(work) {
  /** @type {Effect} */
  const self = {
    sources: new Set(),
    inner: [],
    run() {
      end(self);
      const outer = reading;
      reading = self;
      try {
        work();
      } finally {
        reading = outer;
      }
    },
  };
  const outer = reading;
  self.run();
  const stop = () => end(self);
  outer?.inner.push(stop);
  return stop;
}

/**
 * Reads signals without subscribing the running effect to them.
 *
 * @template T
 * @param {() => T} work
 * @returns {T}
 */
export function untracked(work) {
  const outer = reading;
  reading = outer && { run() {}, sources: new Set(), inner: outer.inner };
  const aside = reading;
  try {
    return work();
  } finally {
    reading = outer;
    if (aside) leave(aside);
  }
}

/**
 * Propagates several changes at once.
 *
 * @param {() => void} changes
 */
export function batch(changes) {
  depth += 1;
  try {
    changes();
  } finally {
    depth -= 1;
    if (depth === 0) flush();
  }
}

/** @param {Effect} ended */
function end(ended) {
  leave(ended);
  pending.delete(ended);
  for (const stop of ended.inner.splice(0)) stop();
}

/** @param {Effect} reader */
function leave(reader) {
  for (const readers of reader.sources) readers.delete(reader);
  reader.sources.clear();
}

function flush() {
  // An effect may write signals itself: the readers that it wakes are queued last.
  depth += 1;
  try {
    for (const reader of pending) {
      pending.delete(reader);
      reader.run();
    }
  } finally {
    depth -= 1;
  }
}
