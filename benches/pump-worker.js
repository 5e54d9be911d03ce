// A pump for scripts/bench-large.mjs: reads a file in slices like www/streamed-worker.js, and writes
// as many bytes into the browser's storage as a result has. No arithmetic.

const slice = 8 << 20; // octet_quantize::recipe::SLICE

addEventListener('message', async ({ data: { file, size } }) => {
  const folder = await navigator.storage.getDirectory();
  const opened = await folder.getFileHandle('pumped', { create: true });
  const out = await opened.createSyncAccessHandle();
  const began = performance.now();
  const read = (/** @type {number} */ from) => file.slice(from, from + slice).arrayBuffer();
  let [written, coming] = [0, read(0)];
  for (let from = 0; from < file.size; from += slice) {
    const bytes = new Uint8Array(await coming);
    coming = read(from + slice);
    const due = Math.floor(size * Math.min(1, (from + slice) / file.size)) - written;
    written += out.write(bytes.subarray(0, due), { at: written });
  }
  out.flush();
  out.close();
  const seconds = (performance.now() - began) / 1000;
  await folder.removeEntry('pumped');
  postMessage(written === size ? { seconds } : { failed: `${written} of ${size} bytes were written` });
});
