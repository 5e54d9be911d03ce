// @ts-check
// Calls of Puppeteer that also work where the page renders an element anew in their midst.

/** @param {import('puppeteer-core').Page} page */
export function withoutRaces(page) {
  page.click = clicksAgain(page);
  readsAtOnce(page);
}

/**
 * A click that comes again where the element was rendered anew under it, as figures that arrive do. A
 * person would click again, too.
 *
 * @param {import('puppeteer-core').Page} page
 * @returns {typeof page.click}
 */
function clicksAgain(page) {
  const click = page.click.bind(page);
  return async (...what) => {
    try {
      await click(...what);
    } catch (error) {
      if (!/not clickable/.test(String(error))) throw error;
      await new Promise((next) => setTimeout(next, 300));
      await click(...what);
    }
  };
}

/**
 * Makes `$eval` and `$$eval` find elements and read them in one step. Puppeteer takes several; an
 * element that is rendered anew between them is read as it was when it left the page.
 *
 * @param {import('puppeteer-core').Page} page
 */
function readsAtOnce(page) {
  const reads = (/** @type {string} */ found) => (/** @type {string} */ selector, /** @type {Function} */ read, /** @type {unknown[]} */ ...rest) =>
    page.evaluate(/** @type {any} */ (new Function('selector', '...rest', `return (${read})(${found}, ...rest);`)), selector, ...rest);
  Object.assign(page, {
    $$eval: reads('[...document.querySelectorAll(selector)]'),
    $eval: reads('document.querySelector(selector) ?? (() => { throw new Error(`Nothing on the page matches “${selector}”.`); })()'),
  });
}
