// @ts-check
/** The result: main figures, downloads, measurements, float operators with reasons. */

import { tunes } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { download, save } from '../../library/download.js';
import { bytes, count, duration, plural, real } from '../../library/format.js';
import { fact, table } from '../../library/table.js';
import { fail } from '../../state/messages.js';
import { comparison, done, model, report, run, tab } from '../../state/page.js';
import { leftOut } from '../data/unusable-samples.js';
import { predictions } from '../predictions/place.js';
import { forecastAndActual } from '../run/forecast-view.js';
import { learned } from '../run/learned-layers.js';
import { inSession, quantize } from '../run/run.js';
import { blocked } from '../run/state.js';
import { changedOperators, worksOn } from '../settings/scheme-words.js';
import { wantsRun } from '../settings/undo.js';
import { accuracy, latency } from './accuracy.js';
import { headlines } from './headlines.js';
import { recognizedText } from './recognized-text.js';
import { verdict } from './verdict.js';

/** @import { Done } from '../../state/page.js' */
/** @import { NodeChoice, QuantizedTensor } from '../../types.js' */

const shown = 300;

/** @param {Done} done */
export function resultPanel(done) {
  const { summary } = done.result;
  const { fileName } = summary;
  const stem = fileName.replace(/\.onnx$/i, '');
  const memory = done.memory;
  const guarded = summary.guarded ?? 0;
  const { samples: seen = 0, skipped = [], given: all = seen } = done.calibration ?? {};
  const usable = all - skipped.length;
  const samples = !done.calibration ? 'no samples needed' : all === 0 ? 'ranges of another tool' : seen < usable ? `${count(seen)} of ${plural(usable, 'sample')}` : plural(seen, 'sample');
  const works = worksOn(done.document);
  const changed = changedOperators(summary, model.peek()?.card ?? { operators: [] });
  return h('section', { class: 'panel result', 'aria-labelledby': 'done-title', 'data-result': done.id },
    h('h2', { id: 'done-title', tabindex: -1, 'data-focus': 'done' }, 'The quantized model is ready'),
    h('div', { class: 'callout fair row', id: 'changed', hidden: () => !wantsRun() },
      h('span', {}, 'This result was made with other settings or samples. The current ones need a new calibration.'),
      h('button', { type: 'button', class: 'small', id: 'again', disabled: () => blocked.value !== '', onclick: () => void quantize() }, 'Quantize again')),
    seen < usable && h('p', { class: 'callout fair', id: 'partial' }, `Stopped on request after ${count(seen)} of ${plural(usable, 'sample')}: the ranges come from these. “Quantize again” runs all of them.`),
    leftOut(skipped),
    () => verdict(done),
    done.calibration?.tuned && tunes(done.document) && learned(done.calibration.tuned),
    ...headlines(done),
    h('div', { class: 'row downloads' },
      download(() => done.result.file, 'application/octet-stream', fileName, 'Download model', 'primary'),
      download(() => report.value, 'text/yaml', `${stem}.yaml`, 'Download report', ''),
      h('button', { type: 'button', class: 'quiet', id: 'to-download', onclick: () => (tab.value = 'download') }, 'Names, settings, command and code'),
      h('button', { type: 'button', class: 'quiet', onclick: () => (tab.value = 'layers') }, 'View the layers'),
    ),
    moreFiles(stem),
    h('dl', { class: 'facts', id: 'result-facts' },
      ...fact(works.title, h('span', {}, changed.text, changed.more && h('span', { class: 'note more' }, changed.more))), ...fact('Calibrated on', samples), ...fact('Quantization time', duration(done.took)),
      ...(memory ? fact('Peak memory', bytes(memory.peak)) : [])),
    predictions(done),
    () => recognizedText(done),
    accuracy(done),
    latency(done),
    forecastAndActual(done),
    notes(summary.notes.slice(0, guarded), `${plural(guarded, 'tensor')} in mixed precision: 8 bits are too coarse for ${guarded === 1 ? 'it' : 'them'}`),
    notes(summary.notes.slice(guarded), guarded > 0 ? `${plural(summary.notes.length - guarded, 'more note')}` : plural(summary.notes.length, 'note')),
    left(summary.nodes.filter((node) => !node.quantized), works),
    tensors(summary.tensors),
    done.calibration && done.calibration.prepared.length > 0 && h('details', {}, h('summary', {}, 'Graph changes before quantization'), h('ul', {}, ...done.calibration.prepared.map((text) => h('li', {}, text)))),
  );
}

/** Notes under one heading. @param {string[]} texts @param {string} title */
const notes = (texts, title) => texts.length > 0 && h('details', { open: texts.length <= 5 },
  h('summary', {}, title),
  h('ul', {}, ...texts.slice(0, shown).map((note) => h('li', {}, note))));

/**
 * Export formats of the measurements.
 *
 * @type {['html' | 'trace' | 'speedscope' | 'csv' | 'modelExplorer', string, string, string][]}
 */
const forms = [
  ['html', 'HTML report', 'report.html', 'text/html'],
  ['trace', 'Chrome trace', 'trace.json', 'application/json'],
  ['speedscope', 'speedscope', 'speedscope.json', 'application/json'],
  ['csv', 'Layers as CSV', 'timed.csv', 'text/csv'],
  ['modelExplorer', 'Model Explorer', 'explorer.json', 'application/json'],
];

/** @param {string} stem */
function moreFiles(stem) {
  return h('details', { id: 'more-files' }, h('summary', {}, 'Other files'),
    h('div', { class: 'row' }, ...forms.map(([kind, text, ending, type]) => h('button', {
      type: 'button', class: 'small', disabled: () => run.value !== null && !run.value.quick,
      onclick: async () => {
        try {
          await inSession();
          const written = await /** @type {import('../../octet.js').Model} */ (model.peek()).export(kind);
          save(kind === 'html' ? await withAnswers(written) : written, type, `${stem}.${ending}`);
        } catch (error) {
          fail(`${text} could not be created`, error, 'Measure the time first (again after a reload): most of these files hold measurements.');
        }
      } }, text))),
    h('p', { class: 'note' }, 'For an offline browser, Perfetto, speedscope.app, spreadsheets and Model Explorer. They contain what has been measured so far.'));
}

/** The HTML report with some of the predictions, if there are any. @param {string} report */
async function withAnswers(report) {
  const now = comparison.peek();
  if (now?.id !== done.peek()?.id || !now?.found.answers.length) return report;
  return (await import('../predictions/report.js')).withPredictions(report, now.found.answers);
}

/** Float nodes, grouped by operator and reason. @param {NodeChoice[]} nodes @param {ReturnType<typeof worksOn>} works */
function left(nodes, works) {
  if (nodes.length === 0) return h('p', {}, `Every operator that computes runs ${works.on}.`);
  /** @type {Map<string, { operator: string, reason: string, names: string[] }>} */
  const groups = new Map();
  for (const { node, operator, reason } of nodes) {
    const key = `${operator}\n${reason}`;
    const group = groups.get(key) ?? { operator, reason: reason ?? '', names: [] };
    group.names.push(node);
    groups.set(key, group);
  }
  const rows = [...groups.values()].sort((a, b) => b.names.length - a.names.length);
  return h('div', { class: 'gap' },
    h('h3', {}, `${plural(nodes.length, 'operator stays', 'operators stay')} ${works.unlike}`),
    table(['Operator', 'Nodes', 'Why', 'Names'], rows.map(({ operator, reason, names }) => [
      operator, count(names.length), reason,
      names.length === 1 ? h('code', {}, names[0]) : h('details', {}, h('summary', {}, `${count(names.length)} names`), h('ul', { class: 'names' }, ...names.slice(0, shown).map((name) => h('li', {}, h('code', {}, name))))),
    ]), [1]),
  );
}

/** @param {QuantizedTensor[]} all */
function tensors(all) {
  const details = h('details', {}, h('summary', {}, `${plural(all.length, 'quantized tensor')} with scales`));
  // The table is built when it is opened, as it may have hundreds of rows.
  details.addEventListener('toggle', () => {
    details.append(
      table(['Tensor', 'Kind', 'Type', 'Scales', 'Scale', 'Zero point', 'Range'], all.slice(0, shown).map((one) => [
        h('code', {}, one.name), one.kind, String(one.element).toLowerCase(), count(one.scales), real(one.scale), String(one.zeroPoint), `${real(one.min)} to ${real(one.max)}`,
      ]), [3, 4, 5]),
      all.length > shown ? h('p', { class: 'note' }, `The first ${shown}; all are in the report.`) : '',
    );
  }, { once: true });
  return details;
}
