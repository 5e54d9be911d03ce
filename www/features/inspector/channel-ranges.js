// @ts-check
/**
 * The channels of a weight side by side, each from its minimum to its maximum. A single scale has
 * to cover the largest.
 */

import { h, svg } from '../../library/dom.js';
import { count, real } from '../../library/format.js';
import { computed, effect, signal } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { model } from '../../state/page.js';

/** @import { Row } from '../layers/rows.js' */
/** @import { ChannelRanges } from '../../types.js' */

const [width, height] = [320, 90];
const listed = 256;

/** @param {{ readonly value: Row | null }} row */
export function channelRanges(row) {
  /** @type {import('../../library/signals.js').Signal<{ weight: string, channels: ChannelRanges } | null>} */
  const found = signal(/** @type {any} */ (null));
  const weight = computed(() => row.value?.weightName ?? '');
  effect(() => {
    const mine = weight.value;
    found.value = null;
    const open = model.peek();
    if (mine && open) open.channels(mine).then((channels) => channels && weight.value === mine && (found.value = { weight: mine, channels }), () => {});
  });
  return h('div', {}, () => found.value && picture(found.value.weight, found.value.channels));
}

/** @param {string} weight @param {ChannelRanges} channels */
function picture(weight, { min, max }) {
  const reach = Math.max(...max.map(Math.abs), ...min.map(Math.abs)) || 1;
  const step = width / Math.max(1, min.length);
  const y = (/** @type {number} */ value) => height / 2 - (value / reach) * (height / 2 - 2);
  const path = min.map((low, index) => `M${(index * step).toFixed(2)} ${y(max[index]).toFixed(2)}H${((index + 1) * step - (step > 3 ? 0.75 : 0)).toFixed(2)}V${Math.max(y(low), y(max[index]) + 0.75).toFixed(2)}H${(index * step).toFixed(2)}Z`).join('');
  const own = max.map((value, index) => Math.max(value, -min[index]));
  const least = own.length > 0 ? Math.min(...own.filter((value) => value > 0)) : 0;
  const text = `${count(min.length)} channels of ${weight}; largest absolute value per channel from ${real(least)} to ${real(reach)}`;
  const drawn = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'histogram channel-ranges', role: 'img', 'aria-label': text });
  drawn.append(svg('path', { class: 'bars', d: path }), svg('line', { class: 'axis', x1: 0, x2: width, y1: height / 2, y2: height / 2 }));
  const details = h('details', {}, h('summary', {}, 'Channels as a table'));
  details.addEventListener('toggle', () => {
    details.append(table(['Channel', 'Min', 'Max'], min.slice(0, listed).map((low, index) => [String(index), real(low), real(max[index])]), [0, 1, 2]));
    if (min.length > listed) details.append(h('p', { class: 'note' }, `The first ${listed} of ${count(min.length)}.`));
  }, { once: true });
  return h('section', { class: 'gap', 'aria-labelledby': 'channel-ranges-title' },
    h('h3', { id: 'channel-ranges-title' }, 'Weight ranges by channel'), drawn, h('p', { class: 'note' }, `${text}.`), details);
}
