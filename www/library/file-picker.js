// @ts-check
/** Buttons that open a file dialog. The input is hidden; the button has the focus and the name. */

import { h } from './dom.js';

/**
 * @param {string} text
 * @param {{ class?: string, id?: string, accept?: string, multiple?: boolean, folder?: boolean, disabled?: () => boolean }} options
 * @param {(files: File[]) => void} chosen
 */
export function pick(text, options, chosen) {
  const input = h('input', {
    type: 'file', hidden: true, accept: options.accept, multiple: options.multiple, webkitdirectory: options.folder,
    'data-pick': options.id,
    onchange: () => {
      const files = [...(input.files ?? [])];
      // Cleared, so that the same file can be chosen again.
      input.value = '';
      if (files.length > 0) chosen(files);
    },
  });
  const button = h('button', { type: 'button', class: options.class ?? 'quiet', id: options.id, disabled: options.disabled, onclick: () => input.click() }, text);
  return [button, input];
}
