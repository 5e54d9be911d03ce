// @ts-check
/**
 * Forecast sizes of the schemes without samples, from plans of conversions. A plan reads the graph
 * only. Loaded when the first model is open.
 */

import { computed, effect, signal, untracked } from '../../library/signals.js';
import { engine, model, modelChanged, opening, run } from '../../state/page.js';
import { start } from '../../state/session.js';
import { forms } from './goals.js';

/** @import { Sizes } from './goals.js' */
/** @import { Model } from '../../octet.js' */

/** Bytes of a float32. */
const word = 4;

/** @type {import('../../library/signals.js').Signal<{ of: Model, sizes: Sizes } | null>} */
const known = signal(/** @type {any} */ (null));

/** The sizes for the open model; `null` while they are not known. */
export const sizes = computed(() => (known.value?.of === model.value ? known.value?.sizes ?? null : null));

/** Forecasts the sizes of each model that is opened. */
export function keepSizes() {
  /** @type {Model | null} */
  let asked = null;
  effect(() => {
    modelChanged.value;
    const open = model.value;
    const ready = open && !opening.value && !run.value && engine.value.state === 'ready' && open.wanted.length === 0 && !open.card.alreadyQuantized;
    if (!ready || asked === open) return;
    asked = open;
    untracked(() => void forecast(open));
  });
}

/** @param {Model} open */
async function forecast(open) {
  const [file, ...data] = open.files;
  const { card } = open;
  // What is in the file beside its constants: the graph, the names.
  const graph = Math.max(0, card.dataFiles.reduce((sum, one) => sum + one.bytes, card.bytes) - word * card.parameters);
  /** @type {Sizes} */
  const found = {};
  try {
    const streamed = await (await start()).openStreamed(file);
    try {
      if (!streamed.card) await streamed.attach(data);
      for (const [name, settings] of Object.entries(forms)) {
        if (model.peek() !== open) return;
        // Some operators are refused by some schemes; the others still have a size.
        const plan = await streamed.plan({ settings, limit: Number.MAX_SAFE_INTEGER, place: null }).then((told) => told.plan, () => null);
        // Constants that stay in the graph are too small to be planned; then the size is not told.
        if (plan) found[name] = { bytes: plan.bytesToWrite > 0 ? plan.bytesToWrite + graph : null, changed: plan.quantized / Math.max(1, plan.quantized + plan.float.reduce((sum, [, nodes]) => sum + nodes, 0)) };
      }
    } finally {
      streamed.close().catch(() => {});
    }
  } catch {
    // Without a forecast the goals have no sizes.
  }
  if (model.peek() === open) known.value = { of: open, sizes: found };
}
