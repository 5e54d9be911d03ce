// The result that a page leaves as `globalThis.result`.

/**
 * Opens an address and waits for its result.
 *
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @returns {Promise<any>}
 */
export async function resultAt(browser, url) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const errors = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  try {
    await page.goto(url);
    await page.waitForFunction('globalThis.result', { timeout: 60_000 }).catch((cause) => {
      throw new Error(`${url} gave no result: ${errors.join('; ') || cause.message}`);
    });
    return await page.evaluate('globalThis.result');
  } finally {
    await page.close();
  }
}
