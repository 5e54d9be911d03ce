// Starts the browsers of this machine for tests and benches. `OCTET_CHROMIUM` and `OCTET_FIREFOX` name other programs than Debian's.

import puppeteer from 'puppeteer-core';

/** The last is Chromium with WebGPU in software, and the interface of WebNN. @typedef {'chromium' | 'firefox' | 'chromium with WebGPU'} Name */

/**
 * A fresh headless browser with a profile of its own.
 *
 * @param {Name} name
 * @param {object} [options]
 * @param {string} [options.downloads] the folder that downloads go to
 * @param {number} [options.patience] milliseconds that one command to the browser may take
 */
export function launch(name, { downloads, patience } = {}) {
  const common = { headless: true, ...(patience ? { protocolTimeout: patience } : {}) };
  if (name === 'firefox') {
    return puppeteer.launch({
      ...common,
      browser: 'firefox',
      executablePath: process.env.OCTET_FIREFOX || '/usr/bin/firefox-esr',
      extraPrefsFirefox: downloads
        ? {
            'browser.download.folderList': 2,
            'browser.download.dir': downloads,
            'browser.download.useDownloadDir': true,
            'browser.download.always_ask_before_handling_new_types': false,
          }
        : {},
    });
  }
  const root = process.getuid?.() === 0; // Chromium's sandbox refuses root.
  return puppeteer.launch({
    ...common,
    ...(downloads ? { downloadBehavior: { policy: 'allow', downloadPath: downloads } } : {}),
    executablePath: process.env.OCTET_CHROMIUM || '/usr/bin/chromium',
    args: [
      ...(root ? ['--no-sandbox'] : []),
      ...(name === 'chromium with WebGPU' ? ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--enable-features=WebMachineLearningNeuralNetwork'] : []),
      '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run',
    ],
  });
}

/**
 * Gives files to the studio, as its button does.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {string} url of the studio
 * @param {string[]} files a model, and its files of weights
 */
export async function openModel(page, url, files) {
  await page.goto(url);
  const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.waitForSelector('input[data-pick=choose-model]'));
  await input.uploadFile(...files);
}

/** The sign that the error of a result is measured, with its layers, or could not be. */
export const measured = '[aria-labelledby=accuracy-title]:not(:has(#layers-pending)) table, #unmeasured-error';

/**
 * Gives a file to a page without Octet. Returns the input that has it.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {string} url of the server
 * @param {string} file
 */
export async function onBlankPage(page, url, file) {
  await page.goto(`${url}bench/blank.html`);
  const input = await page.evaluateHandle(() => document.body.appendChild(Object.assign(document.createElement('input'), { type: 'file' })));
  await input.uploadFile(file);
  return input;
}
