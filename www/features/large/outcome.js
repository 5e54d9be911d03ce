// @ts-check
/** The report of a conversion: its weights, what stays float and why, notes, and the YAML. */

import { h } from '../../library/dom.js';
import { download } from '../../library/download.js';
import { bytes, plural } from '../../library/format.js';
import { table } from '../../library/table.js';

/** @import { StreamedOutcome } from '../../types.js' */

/**
 * @param {StreamedOutcome} outcome
 * @param {string} model name of the model file
 */
export function report({ weights, float, notes, report }, model) {
  const name = `${model.replace(/\.onnx$/, '')}.yaml`;
  return h('div', { class: 'gap', id: 'large-report' },
    h('details', {},
      h('summary', {}, plural(weights.length, 'weight')),
      table(['Weight', 'Shape', 'Form', 'Before', 'After'],
        weights.map((one) => [h('code', {}, one.name), one.shape.join(' × '), one.form, bytes(one.bytesBefore), bytes(one.bytesAfter)]), [3, 4])),
    float.length > 0 && h('details', {},
      h('summary', {}, plural(float.length, 'operator stays float', 'operators stay float')),
      table(['Operator', 'Node', 'Why'], float.map(({ operator, node, reason }) => [operator, h('code', {}, node), reason ?? '']))),
    notes.length > 0 && h('details', {}, h('summary', {}, plural(notes.length, 'note')), h('ul', {}, ...notes.map((text) => h('li', {}, text)))),
    h('div', { class: 'row' }, download(() => report, 'application/yaml', name, 'Download the report', '')),
  );
}
