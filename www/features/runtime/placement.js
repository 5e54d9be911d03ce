// @ts-check
/** Places of the nodes of a loaded model: with the provider, or on the processor. Pure. */

/**
 * Nodes by place, each as `Operator (name)`. These are nodes of the optimized model: the runtime has
 * fused and inserted some.
 *
 * @typedef {{ own: string[], fallen: string[] }} Placement
 */

/** Copies between the processor and the provider, which the runtime inserts. */
const copy = /^Memcpy/;

/**
 * Reads the verbose log of a load. `null` where the log does not say it.
 *
 * @param {string[]} log
 * @returns {Placement | null}
 */
export function placementOf(log) {
  /** @type {Placement} */
  const found = { own: [], fallen: [] };
  /** @type {string[] | null} */
  let place = null;
  let due = 0;
  for (const line of log) {
    const [, said] = /VerifyEachNodeIsAssignedToAnEp\] (.*)$/.exec(line) ?? [];
    if (said === undefined) continue;
    const [, provider, number] = /placed on \[(\w+)\]\. Number of nodes: (\d+)/.exec(said) ?? [];
    if (provider) {
      if (due !== 0) return null;
      place = provider === 'CPUExecutionProvider' ? found.fallen : found.own;
      due = Number(number);
      // Where all are in one place, they are only counted.
      if (/All nodes/.test(said)) {
        place.push(...Array(due).fill(''));
        due = 0;
      }
    } else if (place && due > 0) {
      due -= 1;
      const node = said.trim();
      if (!copy.test(node)) place.push(node);
    }
  }
  return place && due === 0 ? found : null;
}

/** The place in words. @param {Placement | null} placement @param {string} title of the provider */
export function inWords(placement, title) {
  if (!placement) return 'Which nodes fell back to the processor is not known.';
  const { own, fallen } = placement;
  const all = own.length + fallen.length;
  if (fallen.length === 0) return `All ${all} nodes run with ${title}.`;
  /** @type {Map<string, number>} */
  const operators = new Map();
  for (const node of fallen) operators.set(node.split(' ')[0], (operators.get(node.split(' ')[0]) ?? 0) + 1);
  const named = [...operators].filter(([operator]) => operator).sort((a, b) => b[1] - a[1]).slice(0, 4).map(([operator, times]) => `${times} ${operator}`);
  return `${fallen.length} of ${all} nodes fell back to the processor${named.length > 0 ? `: ${named.join(', ')}${operators.size > 4 ? ' …' : ''}` : ''}.`;
}
