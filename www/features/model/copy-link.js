// @ts-check
/** Copies the link of a model that came by one, with the settings as they are now. */

import { canonical } from '../../settings-document.js';
import { settings } from '../../state/page.js';
import { linkOfModel } from '../../state/surroundings.js';
import { copied } from '../settings/command.js';

/** @returns {Promise<string>} what went wrong, in words; empty if it was copied */
export async function copyLink() {
  const from = linkOfModel();
  if (!from) return 'This model did not come by a link, so others cannot open it by one.';
  const address = new URL(location.pathname, location.href);
  address.searchParams.set('model', from.model);
  for (const path of from.samples) address.searchParams.append('samples', path);
  if (from.settings) address.searchParams.set('settings', from.settings);
  const document = canonical(settings.peek().document);
  // Without edits, the link's own document applies.
  if (document !== '{}' || from.settings) address.hash = `settings=${encodeURIComponent(document)}`;
  return copied('The link', address.href);
}
