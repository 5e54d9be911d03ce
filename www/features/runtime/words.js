// @ts-check
/** Distances, and errors of the runtime in plain words, with what helps. Pure. */

/** @param {number} value in decibels */
export const distance = (value) => (value === -Infinity ? 'not comparable' : value >= 200 ? 'equal' : `${value.toFixed(1)} dB`);

/** @type {[RegExp, (found: RegExpExecArray) => string][]} */
const known = [
  [/Could not find an implementation for (\w+)\(\d+\) node with name '([^']*)'/, ([, operator, node]) =>
    `It has no ${operator} for these element types (node ${node || 'without a name'}). Keep this layer float, or choose other types of weights and activations.`],
  [/No [Oo]p registered for (\w+) with domain_version of (\d+)/, ([, operator, opset]) =>
    `It does not know the operator ${operator} of opset ${opset}. Export the model with a lower opset, or use a newer release of the runtime.`],
  [/Unsupported model IR version: (\d+), max supported IR version: (\d+)/, ([, has, most]) =>
    `The file has IR version ${has}, and this runtime reads up to ${most}. Use a newer release of the runtime.`],
  [/opset (?:version )?(\d+)[^.]*(?:not supported|only \*guarantees\*)/i, ([, opset]) => `It does not support opset ${opset}. Export the model with a lower opset.`],
  [/(\w+) is not a registered (?:function|op)/i, ([, operator]) => `It does not know the operator ${operator}.`],
  [/bad_alloc|out of memory|Array buffer allocation failed|memory access out of bounds/i, () =>
    'It ran out of memory. A smaller model or fewer threads may fit.'],
  [/no available backend found|not supported in this (?:browser|build)/i, () => 'This browser does not have this provider.'],
];

/** @param {unknown} error @returns {string} */
export function inPlainWords(error) {
  const text = error instanceof Error ? error.message : String(error);
  for (const [pattern, words] of known) {
    const found = pattern.exec(text);
    if (found) return words(found);
  }
  // The numbers of the runtime's own code and its paths say nothing to a person.
  return text.replace(/^.*?ERROR_CODE: \d+, ERROR_MESSAGE: /s, '').replace(/\/\S+\.(?:cc|h):\d+ /g, '').trim() || 'It gave no reason.';
}
