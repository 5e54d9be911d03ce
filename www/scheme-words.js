// @ts-check
/** Schemes in words: what became of an operator. Pure, so that every place says the same. */

import { count, plural } from './format.js';

/** @import { ModelSummary, Settings, QuantizationSummary } from './types.js' */

/**
 * What an operator that was changed works on: integers, half-precision floats, or floats made of integer weights.
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
 * How many of the operators were changed. The file may have more of them than are left once constants and batch norms are folded: `more`
 * names both.
 *
 * @param {QuantizationSummary} summary @param {Pick<ModelSummary, 'operators'>} card
 */
export function changedOperators({ nodes }, { operators }) {
  const [changed, before] = [nodes.filter((node) => node.quantized).length, operators.reduce((sum, [, times]) => sum + times, 0)];
  return { said: `${count(changed)} of ${plural(nodes.length, 'operator')}`, more: before === nodes.length || before === 0 ? '' : `The file has ${count(before)}; the others were folded into these.` };
}
