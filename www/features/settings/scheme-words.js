// @ts-check
/** Texts about quantization schemes. Pure, so that they are the same everywhere. */

import { count, plural } from '../../library/format.js';

/** @import { ModelSummary, Settings, QuantizationSummary } from '../../types.js' */

/**
 * The arithmetic of a quantized operator: integers, half precision, or float with integer weights.
 *
 * @param {Settings} document
 * @returns {{ title: string, on: string, chip: string, unlike: string }} a title; behind a number; of one operator; of those that were not changed
 */
export function worksOn({ scheme = 'static' }) {
  if (scheme === 'float16') return { title: 'In half precision', on: 'in half precision', chip: 'half', unlike: 'in float32' };
  if (scheme === 'weights' || scheme === 'blocks') return { title: 'With integer weights', on: 'with integer weights', chip: 'int. weights', unlike: 'with float weights' };
  return { title: 'In integer arithmetic', on: 'in integer arithmetic', chip: 'integers', unlike: 'in float' };
}

/**
 * The number of quantized operators. The file may have more operators than remain after constants
 * and batch norms are folded; `more` then gives both numbers.
 *
 * @param {QuantizationSummary} summary @param {Pick<ModelSummary, 'operators'>} card
 */
export function changedOperators({ nodes }, { operators }) {
  const [changed, before] = [nodes.filter((node) => node.quantized).length, operators.reduce((sum, [, times]) => sum + times, 0)];
  return { text: `${count(changed)} of ${plural(nodes.length, 'operator')}`, more: before === nodes.length || before === 0 ? '' : `The file has ${count(before)}; the others were folded into these.` };
}
