// @ts-check
/**
 * Entry point of the page: defines the elements, starts the engine, handles drops, pastes and keys.
 */

import { dropped, named } from './files.js';
import { start } from './state/session.js';
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
  take(await dropped(event.dataTransfer));
});
addEventListener('paste', (event) => {
  const files = event.clipboardData?.files;
  if (files && files.length > 0) take(named(files));
});
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented) return;
  cancel();
  cancelOpening();
});
addEventListener('keydown', undoByKeys);

followAddress();
keepForecast();
start().catch(() => {});
findDemos();
void startPersistence();
void workOffline();
