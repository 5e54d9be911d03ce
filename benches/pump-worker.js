// A pump for scripts/bench-large.mjs: reads a file in slices as www/streamed-worker.js does, and writes
// as many bytes into the browser's storage as a result has. No arithmetic.

import { ReadAhead } from '/www/read-ahead.js';

const slice = 8 << 20; // octet_quantize::recipe::SLICE

addEventListener('message', async ({ data: { file, size } }) => {
  const folder = await navigator.storage.getDirectory();
  const opened = await folder.getFileHandle('pumped', { create: true });
  const out = await opened.createSyncAccessHandle();
  const began = performance.now();
  const reads = Array.from({ length: Math.ceil(file.size / slice) }, (_, at) => ({ file: '', offset: at * slice, length: Math.min(slice, file.size - at * slice) }));
  const ahead = new ReadAhead(() => file, reads);
  let written = 0;
  for (const read of reads) {
    const bytes = await ahead.take(read);
    const due = Math.floor(size * Math.min(1, (read.offset + read.length) / file.size)) - written;
    written += out.write(bytes.subarray(0, due), { at: written });
  }
  ahead.end();
  out.flush();
  out.close();
  const seconds = (performance.now() - began) / 1000;
  await folder.removeEntry('pumped');
  postMessage(written === size ? { seconds } : { failed: `${written} of ${size} bytes were written` });
});
