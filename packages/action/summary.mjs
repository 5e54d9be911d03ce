// The gates of the action and its summary in Markdown, from the JSON of `octet compare`.

/**
 * @typedef {{ sqnr: number }} Difference
 * @typedef {{ name: string, kind: string, apart: Difference, top1: number | null }} Output
 * @typedef {{ layer: string, operator: string, added: Difference | null, accumulated: Difference, harm: number }} Layer
 * @typedef {{ samples: number, outputs: Output[], layers: Layer[], headline: string | null, verdict: { decision: string, reason: string } | null }} Comparison
 * @typedef {{ name: string, holds: boolean, found: string, required: string }} Gate
 * @typedef {{ require: string, maxSize: string, minSqnr: string, minAnswers: string, minLayerSqnr: string }} Wanted
 */

const NOT_JUDGED = ['integers', 'passed'];
const VERDICTS = ['ship', 'look', 'dont'];
const WORST = 10;

/** A number of an input. @param {string} name @param {string} text */
function number(name, text) {
  const value = Number(text.replace(/%$/, ''));
  if (!Number.isFinite(value)) throw new Error(`the input ${name} is ${text}: give a number`);
  return value;
}

/**
 * The gates that are asked for, and their results.
 *
 * @param {Wanted} wanted
 * @param {Comparison} comparison
 * @param {{ before: number, after: number }} size
 * @returns {Gate[]}
 */
export function gates(wanted, comparison, size) {
  /** @type {Gate[]} */
  const all = [];
  if (wanted.require) {
    const worst = VERDICTS.indexOf(wanted.require);
    if (worst < 0) throw new Error(`the input require is ${wanted.require}: give ship or look`);
    const found = comparison.verdict?.decision ?? 'none';
    const place = VERDICTS.indexOf(found);
    all.push({ name: 'verdict', holds: place >= 0 && place <= worst, found, required: wanted.require });
  }
  if (wanted.maxSize) {
    const limit = number('max-size', wanted.maxSize);
    const bytes = wanted.maxSize.endsWith('%') ? (limit / 100) * size.before : limit;
    all.push({ name: 'size', holds: size.after <= bytes, found: `${size.after} bytes`, required: `at most ${wanted.maxSize}` });
  }
  /**
   * A gate on the least value of several.
   *
   * @param {string} name @param {string} input @param {string} text @param {string} unit @param {{ of: string, value: number }[]} values
   */
  const least = (name, input, text, unit, values) => {
    if (!text) return;
    const limit = number(input, text);
    const worst = values.reduce((/** @type {{ of: string, value: number } | null} */ low, one) => (low && low.value <= one.value ? low : one), null);
    const found = worst ? `${worst.value.toFixed(1)} ${unit} (${worst.of})` : 'nothing to measure';
    all.push({ name, holds: worst !== null && worst.value >= limit, found, required: `at least ${text} ${unit}` });
  };
  const judged = comparison.outputs.filter((output) => !NOT_JUDGED.includes(output.kind));
  least('error', 'min-sqnr', wanted.minSqnr, 'dB', judged.map((output) => ({ of: output.name, value: output.apart.sqnr })));
  const answers = judged.flatMap((output) => (output.top1 === null ? [] : [{ of: output.name, value: 100 * output.top1 }]));
  least('answers', 'min-answers', wanted.minAnswers, '%', answers);
  const layers = comparison.layers.flatMap((layer) => (layer.added ? [{ of: layer.layer, value: layer.added.sqnr }] : []));
  least('layers', 'min-layer-sqnr', wanted.minLayerSqnr, 'dB', layers);
  return all;
}

/** Text of a cell. @param {string} text */
const cell = (text) => text.replace(/[|\\`<>&*_[\]]/g, (sign) => `&#${sign.charCodeAt(0)};`).replaceAll('\n', ' ');
const row = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |\n`;
const table = (/** @type {string[]} */ names, /** @type {string[][]} */ rows) => row(names) + row(names.map(() => '---')) + rows.map(row).join('');
const decibels = (/** @type {Difference | null} */ error) => (error ? `${error.sqnr.toFixed(1)} dB` : '');

/**
 * The summary of a run.
 *
 * @param {string} model
 * @param {string} quantized
 * @param {Comparison} comparison
 * @param {{ before: number, after: number }} size
 * @param {Gate[]} checked
 */
export function summary(model, quantized, comparison, size, checked) {
  const verdict = comparison.verdict;
  const worst = comparison.layers.filter((layer) => layer.added).sort((a, b) => b.harm - a.harm).slice(0, WORST);
  const parts = [
    `## Octet: ${cell(model)}\n`,
    verdict ? `**Verdict: ${verdict.decision}.** ${cell(verdict.reason)}\n` : 'No output is a computed float, so there is no verdict.\n',
    `${cell(quantized)} has ${size.after} bytes, ${Math.round((100 * size.after) / Math.max(1, size.before))} % of ${size.before}; compared on ${comparison.samples} samples.\n`,
  ];
  if (checked.length) {
    const rows = checked.map((gate) => [gate.name, gate.holds ? 'holds' : '**fails**', cell(gate.found), cell(gate.required)]);
    parts.push(table(['gate', 'result', 'found', 'required'], rows));
  }
  parts.push(table(['output', 'kind', 'SQNR', 'equal answers'], comparison.outputs.map((output) => [
    cell(output.name), output.kind, decibels(output.apart), output.top1 === null ? '' : `${(100 * output.top1).toFixed(1)} %`,
  ])));
  if (worst.length) {
    parts.push('### The worst layers\n', table(['layer', 'operator', 'own error', 'error so far', 'share'], worst.map((layer) => [
      cell(layer.layer), cell(layer.operator), decibels(layer.added), decibels(layer.accumulated), `${(100 * layer.harm).toFixed(1)} %`,
    ])));
  }
  return `${parts.join('\n')}\n`;
}
