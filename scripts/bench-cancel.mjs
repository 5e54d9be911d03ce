// Time from a cancel to its effect, in every cancellable state of the page.

/** @typedef {(bench: string, row: string, value: number, unit: string, judged: { target: string, holds: boolean }) => void} Record */
/** @typedef {import('puppeteer-core').Page} Page */

/** Delays before the cancel, in milliseconds after the work has begun. */
const moments = [20, 60, 120, 200, 300];

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {{ model: string, large: string, samples: string[] }} files paths: a model, one that takes a while to open, samples
 * @param {Record} record
 */
export async function benchCancel(browser, url, { model, large, samples }, record) {
  const page = await browser.newPage();
  try {
    await page.goto(url);
    await ready(page);
    const opening = [];
    for (const moment of moments) {
      await choose(page, 'choose-model', large);
      await page.waitForSelector('#opening-title');
      opening.push(await cancelled(page, moment));
    }
    await choose(page, 'choose-model', model);
    await page.waitForSelector('#card-title');
    await choose(page, 'choose-samples', ...samples);
    await page.waitForFunction(() => /Your file is not changed/.test(document.querySelector('#run-why')?.textContent ?? ''));
    const calibrating = [];
    for (const moment of moments) {
      await page.click('#run');
      calibrating.push(await cancelled(page, moment));
    }
    await page.click('#run');
    await page.waitForSelector('#done-title', { timeout: 60_000 });
    // The error is measured by itself; stopped, it has a button.
    const measuring = [await cancelled(page, moments[0])];
    for (const [at, moment] of [...moments, ...moments].entries()) {
      const button = at < moments.length ? '#measure' : '#measure-time';
      await page.waitForSelector(`${button}:not([disabled])`);
      await page.click(button);
      measuring.push(await cancelled(page, moment));
    }
    // Weights that learn for minutes.
    const settings = { finetune: { num_iterations: 100_000 } };
    await page.$eval('#document', (area, text) => (/** @type {HTMLTextAreaElement} */ (area).value = text), JSON.stringify(settings));
    await page.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
    const learning = [];
    for (const moment of moments) {
      await page.waitForSelector('#run:not([aria-disabled])');
      await page.click('#run');
      await page.waitForFunction(() => /Fine-tuning/.test(document.querySelector('#progress-title')?.textContent ?? ''), { timeout: 60_000 });
      learning.push(await cancelled(page, moment));
    }
    for (const [what, times] of /** @type {const} */ ([['opening 102 MB', opening], ['calibrating', calibrating], ['measuring error and time', measuring], ['weights learn', learning]])) {
      const ended = times.filter((ms) => ms !== null);
      const worst = Math.max(...ended);
      record('page', `cancelled while ${what}, the worst of ${ended.length}`, worst, 'ms', { target: 'under 200 ms', holds: worst < 200 });
    }
  } finally {
    await page.close();
  }
}

/** @param {Page} page */
const ready = (page) => page.waitForFunction(() => /^(Full|Baseline) build/.test(document.querySelectorAll('summary')[1]?.textContent ?? ''));

/** @param {Page} page @param {string} which @param {...string} files */
async function choose(page, which, ...files) {
  const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.waitForSelector(`input[data-pick=${which}]`));
  await input.uploadFile(...files);
}

/**
 * Presses Cancel and returns the milliseconds until nothing is running; `null` if the work had
 * already ended.
 *
 * @param {Page} page @param {number} moment @returns {Promise<number | null>}
 */
function cancelled(page, moment) {
  return page.evaluate(async (moment) => {
    await new Promise((next) => setTimeout(next, moment));
    /** @type {HTMLButtonElement | null} */
    const button = document.querySelector('.status-bar button.small');
    if (!button || button.hidden) return null;
    const began = performance.now();
    button.click();
    while (!button.hidden && button.isConnected) await new Promise((next) => setTimeout(next, 1));
    return performance.now() - began;
  }, moment);
}
