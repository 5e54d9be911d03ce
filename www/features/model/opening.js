// @ts-check
/** The progress of a model that is being opened. */

import { h } from '../../library/dom.js';
import { bytes } from '../../library/format.js';
import { opening } from '../../state/page.js';
import { cancelOpening } from './open.js';

export function openingPanel() {
  const value = () => {
    const { done = 0, of = 0 } = opening.value?.progress ?? {};
    return of > 0 && done < of ? String(done / of) : null;
  };
  return h('section', { class: 'panel narrow', 'aria-labelledby': 'opening-title' },
    h('h2', { id: 'opening-title', tabindex: -1, 'data-focus': 'opening' }, () => `Opening ${opening.value?.name ?? ''}`),
    h('progress', { max: 1, value, 'aria-labelledby': 'opening-title' }),
    h('p', { class: 'note' }, () => {
      const { stage = '', done = 0, of = 0, unit } = opening.value?.progress ?? {};
      if (unit !== 'bytes') return stage;
      if (/^Downloading/.test(stage)) return `${stage}: ${bytes(done)}${of > 0 ? ` of ${bytes(of)}` : ''}`;
      return done < of ? `${bytes(done)} of ${bytes(of)}` : `${bytes(of)} read; parsing the graph`;
    }),
    h('div', { class: 'row' }, h('button', { type: 'button', class: 'quiet', onclick: cancelOpening }, 'Cancel')),
  );
}
