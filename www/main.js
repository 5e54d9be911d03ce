// @ts-check
/**
 * Entry point of the page: defines the elements, starts the engine, handles drops, pastes and keys.
 */

import { dropped, named } from './files.js';
import { start } from './state/session.js';
import { embedded, readOnly } from './state/surroundings.js';
import { cancelOpening, take } from './features/model/open.js';
import { keepForecast } from './features/run/forecast.js';
import { cancel } from './features/run/run.js';
import { followAddress } from './features/settings/address.js';
import { undoByKeys } from './features/settings/undo.js';
import { workOffline } from './features/storage/offline.js';
import { startPersistence } from './features/storage/persistence.js';
import { findDemos } from './features/welcome/demo.js';
import './studio/studio.js';

/** @param {DragEvent} event */
const carriesFiles = (event) => event.dataTransfer?.types.includes('Files') ?? false;

let depth = 0;
/** @param {boolean} over */
function mark(over) {
  document.documentElement.classList.toggle('dropping', over);
}

addEventListener('dragenter', (event) => {
  if (carriesFiles(event)) mark(++depth > 0);
});
addEventListener('dragleave', (event) => {
  if (carriesFiles(event)) mark(--depth > 0);
});
addEventListener('dragover', (event) => {
  if (carriesFiles(event)) event.preventDefault();
});
addEventListener('drop', async (event) => {
  if (!event.dataTransfer || !carriesFiles(event)) return;
  event.preventDefault();
  depth = 0;
  mark(false);
  if (readOnly.peek()) return;
  take(await dropped(event.dataTransfer));
});
addEventListener('paste', (event) => {
  const files = event.clipboardData?.files;
  if (files && files.length > 0 && !readOnly.peek()) take(named(files));
});
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented) return;
  cancel();
  cancelOpening();
});
addEventListener('keydown', undoByKeys);

/** Settings in the fragment are those of the person, who has edited those of the link. */
const edited = new URLSearchParams(location.hash.slice(1)).has('settings');
followAddress();
keepForecast();
start().catch(() => {});
void surround();

/** Starts what depends on the place of the studio: commands of the page around, or storage and links. */
async function surround() {
  if (embedded) {
    const { startEmbedded } = await import('./features/embed/embed.js');
    return startEmbedded(edited);
  }
  findDemos();
  void startPersistence();
  void workOffline();
  if (!/[?&](model|samples|settings)=/.test(location.search)) return;
  const { followLink } = await import('./features/link/open-link.js');
  await followLink(edited);
}
