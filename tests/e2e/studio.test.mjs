// The tabs of the studio: fixing a layer, the graph, the settings document.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { convolution, npy } from './model.mjs';
import { methods as methodList } from '../../www/methods.js';
import { inBrowsers, model, out, photos, scratch } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** Quantizes a convolution. @param {Visit} visit */
async function small(visit) {
  const values = Float32Array.from({ length: 48 }, (_, i) => ((i * 7) % 19) / 9 - 1);
  const sample = join(scratch, 'sample.npy');
  writeFileSync(sample, npy(values, [1, 3, 4, 4]));
  await visit.drop({ 'small.onnx': convolution() });
  await visit.tab.waitForSelector('#card-title');
  await visit.choose('choose-samples', sample);
  await visit.says('#run-why', /Your file is not changed/);
  await visit.quantize();
  visit.tab.setDefaultTimeout(240_000);
}

/**
 * Waits until the run history has this many results.
 *
 * @param {Visit} visit
 * @param {number} results
 */
const tried = (visit, results) => visit.tab.waitForFunction((wanted) => document.querySelectorAll('.run-history tbody tr').length === wanted, {}, results);

/** @param {Visit} visit @param {string} tab */
async function open(visit, tab) {
  visit.tab.setDefaultTimeout(240_000);
  await visit.tab.click(`#tab-${tab}`);
  await visit.tab.waitForSelector(`#panel-${tab}:not([hidden])`);
}

/** Applies a settings document. @param {Visit} visit @param {string} text */
async function paste({ tab }, text) {
  await tab.$eval('#document', (area, value) => (/** @type {HTMLTextAreaElement} */ (area).value = value), text);
  await tab.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
}

inBrowsers('the studio', (visit, name) => {
  test('a layer is kept float, given 16 bits and another method, without a new calibration, and all of it undone', () => visit({}, async (visit) => {
    await visit.ready(2);
    await visit.quantize();
    const { tab } = visit;
    const stages = await visit.stages();
    await open(visit, 'layers');
    await visit.says('#layers-note', /^94 of 94 layers; 94 in integer arithmetic; 5\.07 MB/);
    await tab.click('[aria-label="Keep _conv_stem float"]');
    await visit.says('#layers-note', /; 9[0-3] in integer arithmetic/);
    await tried(visit, 2);
    assert.equal(await tab.$eval('[aria-label="Keep _conv_stem float"]', (button) => button.getAttribute('aria-pressed')), 'true');
    await tab.click('[aria-label="16 bits for _blocks.0._depthwise_conv"]');
    await tried(visit, 3);
    await tab.waitForFunction(() => /uint16/.test(document.querySelector('[data-row="_blocks.0._depthwise_conv"]')?.textContent ?? ''));
    await tab.select('[aria-label="Range method of _blocks.0._project_conv"]', 'percentile:99.9');
    await tried(visit, 4);
    assert.match(await visit.text('[data-row="_blocks.0._project_conv"]'), /percentile:99\.9/);
    assert.doesNotMatch(await stages(), /Calibrating|Preparing/);
    await open(visit, 'overview');
    assert.match(await visit.text('.headlines'), /the previous result|unchanged/);
    writeFileSync(join(out, `efficientnet_lite0-${name}-mended.onnx`), await visit.downloaded('.onnx'));
    await open(visit, 'layers');
    for (const id of [3, 2, 1]) {
      await visit.press('Undo');
      await visit.shows(id);
    }
    await tried(visit, 4);
    await visit.says('#layers-note', /94 in integer arithmetic; 5\.07 MB/);
  }));

  test('the error is measured, the worst layer kept float, and the error of that is measured at once; the time when asked', () => visit({}, async (visit) => {
    await visit.ready(2);
    await visit.quantize();
    const { tab } = visit;
    tab.setDefaultTimeout(240_000);
    const section = '[aria-labelledby=accuracy-title]';
    await visit.says(section, /Top-1 agreement.*_fc_out.*dB.*%.*Measured on the 2 loaded samples/s);
    await visit.judged();
    assert.equal((await tab.$$(`${section} button[aria-label^="Keep "]`)).length, 10);
    assert.match((await visit.downloaded('.yaml')).toString(), /comparison/i);
    const worst = await tab.$eval(`${section} button[aria-label^="Keep "]`, (button) => button.getAttribute('aria-label') ?? '');
    await tab.click(`${section} button[aria-label^="Keep "]`);
    // The next result is measured automatically; the worst layer before is no longer listed.
    await tab.waitForFunction((where, gone) => document.querySelector(`${where} table`) && !document.querySelector(`[aria-label="${gone}"]`), {}, section, worst);
    await visit.judged();
    await tab.waitForSelector('#measure-time:not([disabled])');
    await tab.click('#measure-time');
    await visit.says('[aria-labelledby=latency-title]', /float model’s time.*Float.*ms.*Quantized.*ms.*10 runs each/s);
    await open(visit, 'layers');
    await tab.waitForSelector('[data-sort=harm]');
    await tab.waitForSelector('[data-sort=intMs]');
    assert.equal(await tab.$$eval('.run-history thead th', (heads) => heads.some((head) => head.textContent === 'SQNR, dB')), true);
    // The timeline shows the layers of a run with their times, also as a table.
    await open(visit, 'timeline');
    await tab.waitForSelector('.layer-lane');
    const lanes = await tab.$$eval('.layer-lane', (pictures) => pictures.map((one) => [...one.querySelectorAll('rect')].map((bar) => Number(bar.getAttribute('width')))));
    assert.equal(lanes.length, 2);
    for (const bars of lanes) assert.ok(bars.length > 50 && bars.every((width) => width > 0), String(bars));
    const longest = Math.max(...lanes.map((bars) => bars.reduce((sum, width) => sum + width, 0)));
    // The time between the layers is part of the run and of the scale.
    assert.ok(longest > 100 && longest < 1001, `both on one scale: ${longest}`);
    assert.match(await visit.text('[aria-labelledby=lanes-title] table'), /_conv_stem.*ms/s);
  }));

  test('the table is sorted, filtered, grouped and saved', () => visit({}, async (visit) => {
    await small(visit);
    const { tab } = visit;
    await open(visit, 'layers');
    await visit.says('#layers-note', /^2 of 2 layers/);
    const first = () => tab.$eval('.virtual tbody tr:not(.group) .link', (link) => link.textContent);
    assert.equal(await first(), 'conv');
    await tab.click('[data-sort=name]');
    await tab.click('[data-sort=name]');
    await tab.waitForFunction(() => document.querySelector('.virtual tbody .link')?.textContent === 'relu');
    assert.equal(await tab.$eval('th:has([data-sort=name])', (head) => head.getAttribute('aria-sort')), 'descending');
    await tab.type('#layer-filter', 'conv');
    await visit.says('#layers-note', /^1 of 2/);
    await tab.click('#layer-groups');
    await visit.says('.virtual .group', /Conv: 1/);
    await visit.judged();
    await tab.click('#layers-csv');
    const lines = (await visit.saved('small.layers.csv')).toString().trim().split('\n');
    assert.match(lines[0], /^#,Node,Operator,Arithmetic,"Share of error, %","Own SQNR, dB",.*,Why float,Output type,Scale/);
    assert.deepEqual(lines.slice(1).map((line) => line.split(',').slice(1, 4)), [['conv', 'Conv', 'integers']]);
  }));

  test('the range of a tensor is typed, dragged and given back to its method', () => visit({}, async (visit) => {
    await small(visit);
    const { tab } = visit;
    await open(visit, 'layers');
    await tab.waitForSelector('.virtual .link');
    await tab.click('.virtual .link');
    await tab.waitForSelector('.histogram .bars');
    const methods = await tab.$$eval('.methods tbody th', (cells) => cells.map((cell) => cell.textContent));
    assert.deepEqual(methods, methodList.map(([method]) => method));
    assert.equal(await tab.$eval('.channel-ranges', (strip) => /^2 channels of w/.test(strip.getAttribute('aria-label') ?? '')), true);
    await tab.$eval('#range-1', (input) => {
      /** @type {HTMLInputElement} */ (input).value = '1.5';
      input.dispatchEvent(new Event('change'));
    });
    await tried(visit, 2);
    await visit.says('[data-row=conv]', /1\.5.*manual/);
    // The comparison that follows a run changes the height of what stands above the picture.
    await visit.judged();
    const grip = await tab.waitForSelector('.grip:last-of-type');
    const box = /** @type {{ x: number, y: number, width: number, height: number }} */ (await grip?.boundingBox());
    await tab.mouse.move(box.x + box.width / 2, box.y + 30);
    await tab.mouse.down();
    await tab.mouse.move(box.x + box.width / 2 - 40, box.y + 30, { steps: 4 });
    await tab.mouse.up();
    await tried(visit, 3);
    assert.ok(Number(await tab.$eval('#range-1', (input) => /** @type {HTMLInputElement} */ (input).value)) < 1.5);
    await visit.judged();
    await tab.$eval('#range-back', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.shows(1);
    await visit.says('[data-row=conv]', /auto/);
    assert.equal(await tab.$eval('#document', (text) => /** @type {HTMLTextAreaElement} */ (text).value), '# all defaults\n');
  }));

  test('the type of a layer, of one tensor and of the weights is chosen in the inspector', () => visit({}, async (visit) => {
    await small(visit);
    const { tab } = visit;
    await open(visit, 'layers');
    await tab.waitForSelector('.virtual .link');
    await tab.click('.virtual .link');
    const types = async (/** @type {string} */ id, /** @type {string} */ value, /** @type {number} */ results, /** @type {RegExp} */ said) => {
      await tab.select(`#${id}`, value);
      await tried(visit, results);
      await visit.says('.inspector .gap', said);
    };
    await types('type-layer', 'u16', 2, /Typeuint16/);
    await types('type-layer', '', 2, /Typeuint8/);
    await types('type-tensor', 'i8', 3, /Typeint8/);
    await types('type-weights', 'u8', 4, /Weightuint8/);
    assert.match(await tab.$eval('#document', (text) => /** @type {HTMLTextAreaElement} */ (text).value), /by_node:\s+conv:\s*(weights:\s+type: u8|\{weights: \{type: u8\}\})[^]*tensors:[^]*type: i8|tensors:[^]*type: i8[^]*by_node:[^]*type: u8/);
  }));

  test('before a run it is said what becomes of the model; labels of one’s own tell how much of it is right', () => visit({}, async (visit) => {
    const { tab } = visit;
    tab.setDefaultTimeout(240_000);
    const labels = join(scratch, 'labels.csv');
    writeFileSync(labels, `file,class\n${photos.slice(0, 3).map((photo) => `${basename(photo)},${/_(\d+)\.jpg$/.exec(photo)?.[1]}`).join('\n')}\n`);
    await visit.choose('choose-model', model);
    await tab.waitForSelector('#card-title');
    await visit.says('.preflight', /143 of 143 operators can be quantized.*There are no samples yet/s);
    await visit.choose('choose-samples', ...photos.slice(0, 3), labels);
    await visit.says('#labels-note', /^3 of 3 samples have a label, from labels\.csv/);
    await visit.says('.preflight', /Only 3 samples.*3 labels/s);
    await tab.select('#preset', 'raw');
    await visit.says('.preflight', /Pixel values are \d+ to 2\d\d/);
    await tab.select('#preset', 'lite');
    await tab.waitForFunction(() => !/Pixel values are/.test(document.querySelector('.preflight')?.textContent ?? ''));
    await visit.quantize();
    await visit.measureBoth();
    await visit.says('.headlines', /accuracy; [\d.]+ % in float.*on 3 samples.*ms in float: (slower|faster|no significant difference)/s);
    assert.equal(await tab.$('#measure-both'), null);
    await tab.$eval('#more-files', (details) => details.setAttribute('open', ''));
    await visit.press('Chrome trace');
    assert.ok(JSON.parse((await visit.saved('efficientnet_lite0_int8.trace.json')).toString()).traceEvents.length > 50);
    await visit.press('HTML report');
    assert.match((await visit.saved('efficientnet_lite0_int8.report.html')).toString(), /default-src 'none'/);
    // The next result is measured as well, and shows its change.
    await open(visit, 'layers');
    await tab.waitForSelector('[aria-label="Keep _conv_stem float"]');
    await tab.click('[aria-label="Keep _conv_stem float"]');
    await tried(visit, 2);
    await open(visit, 'overview');
    await visit.says('.headlines', /kB compared to the previous result, worse.*(%|unchanged).*(ms compared to the previous result, (better|worse)|no significant difference from the previous result)/s);
  }));

  test('the graph is laid out, walked by keyboard and searched; pairs are badges', () => visit({}, async (visit) => {
    await visit.ready(2);
    await visit.quantize();
    const { tab } = visit;
    await open(visit, 'graph');
    await tab.waitForFunction(() => document.querySelectorAll('.graph-picture .box').length === 96);
    await tab.focus('.pane');
    await tab.keyboard.press('ArrowDown');
    await tab.keyboard.press('ArrowDown');
    await visit.says('.inspector .file', /^_bn0\.relu6/);
    await tab.keyboard.press('ArrowUp');
    await visit.says('.inspector .file', /^_conv_stem/);
    await tab.type('#graph-search', 'blocks.2.add');
    await tab.keyboard.press('Enter');
    await visit.says('.inspector .file', /^_blocks\.2\.add/);
    assert.match(await tab.$eval('.box.chosen', (box) => box.textContent ?? ''), /Add/);
    await tab.select('#graph-shown', 'both');
    await tab.waitForFunction(() => document.querySelectorAll('.pane').length === 2 && document.querySelectorAll('.pane-box:last-child .box').length > 50);
    const operators = await tab.$$eval('.pane-box:last-child .box-operator', (all) => [...new Set(all.map((one) => one.textContent))]);
    assert.ok(!operators.some((operator) => /Quantize/.test(operator ?? '')), operators.join(' '));
    const badges = await tab.$$eval('.pane-box:last-child .box-badge', (all) => all.map((one) => one.textContent));
    assert.ok(badges.length > 50 && badges.every((badge) => badge === 'uint8' || badge === 'uint16'), badges.join(' '));
    assert.ok(badges.includes('uint16'), 'the first values have 16 bits');
  }));

  test('settings are a document: pasted, refused in words, used, and said as a command line', () => visit({}, async (visit) => {
    await small(visit);
    await paste(visit, 'method: mse\n  guard: false\n');
    await visit.says('#advanced .callout', /can’t be read: line 2: indented more/);
    await paste(visit, 'methd: mse\n');
    await visit.says('.problem .message', /methd.*did you mean `method`/);
    await visit.press('Close');
    await paste(visit, '# mine\nmethod: percentile:99.9\nby_node:\n  conv: {activations: {type: u16}}\n');
    await visit.says('#command-line', /^octet quantize small\.onnx --samples SAMPLES --config '\{"method":"percentile:99\.9","by_node":\{"conv":\{"activations":\{"type":"u16"\}\}\}\}'$/);
    await open(visit, 'layers');
    await visit.says('[data-row=conv]', /uint16.*percentile:99\.9/);
    await open(visit, 'compare');
    await visit.says('#panel-compare', /tensors? with other types or scales/);
    assert.match(await visit.text('.pair'), /all defaults.*percentile:99\.9/s);
    await open(visit, 'timeline');
    await visit.says('#panel-timeline', /Calibrating.*1 sample/s);
  }));

  test('two sides are compared layer by layer: one selection, one scale, a difference; the float model is a side, too', () => visit({}, async (visit) => {
    await small(visit);
    const { tab } = visit;
    await open(visit, 'compare');
    const line = '[data-linked=conv]';
    await tab.waitForSelector(line);
    assert.deepEqual(await tab.$$eval('#compare-left option, #compare-right option', (all) => all.filter((one) => /** @type {HTMLOptionElement} */ (one).selected).map((one) => one.textContent)), ['Float model', 'Result 1: auto']);
    assert.match(await visit.text(line), /^1convConv328−24$/);
    // The longest bar is the largest value of either side.
    const bars = () => tab.$$eval(`${line} .bar-cell rect`, (all) => all.map((one) => Number(one.getAttribute('width'))));
    assert.deepEqual(await bars(), [100, 25]);
    await visit.says('#linked-note', /^2 of 2 layers differ/);
    await tab.click(`${line} .link`);
    await visit.says('.both', /float.*integers.*float32.*uint8/s);
    await tab.waitForSelector('.two-ranges .bars');
    assert.match(await tab.$eval('.two-ranges', (picture) => picture.getAttribute('aria-label') ?? ''), /Float model: float; Result 1: -?[\d.]+ to/);
    await open(visit, 'layers');
    await tab.waitForSelector('[data-row=conv].chosen');
    await tab.click('[aria-label="16 bits for conv"]');
    await tried(visit, 2);
    await open(visit, 'compare');
    await visit.says(line, /^1convConv816\+8$/);
    assert.deepEqual(await bars(), [50, 100]);
    await visit.says('.both', /uint8uint16/);
    // Shows only differences, sorted by the difference.
    await tab.click('[data-linked-sort=difference]');
    await tab.click('[data-linked-sort=difference]');
    assert.equal(await tab.$eval('th:has([data-linked-sort=difference])', (head) => head.getAttribute('aria-sort')), 'descending');
    // Columns of measurements appear with the first figures.
    await open(visit, 'overview');
    await visit.says('[aria-labelledby=accuracy-title]', /Measured on the loaded sample/);
    await open(visit, 'graph');
    await tab.waitForSelector('#graph-colour option[value=reached]');
    await tab.select('#graph-colour', 'reached');
    await open(visit, 'compare');
    await tab.select('#compare-left', '-1');
    await tab.select('#linked-measure', 'reached');
    await visit.says(line, /conv.*\d/);
    // Menus keep their choice when more figures arrive; one whose entries stay is not rendered anew.
    const entry = await tab.$('#compare-left option');
    await open(visit, 'overview');
    await visit.measureBoth();
    await tab.waitForSelector('#linked-measure option[value=ms]');
    assert.equal(await tab.$eval('#linked-measure', (menu) => /** @type {HTMLSelectElement} */ (menu).value), 'reached');
    assert.equal(await entry?.evaluate((option) => option.isConnected), true);
    await tab.waitForSelector('#graph-colour option[value=intMs]');
    assert.equal(await tab.$eval('#graph-colour', (menu) => /** @type {HTMLSelectElement} */ (menu).value), 'reached');
  }));

  test('schemes that need no samples need none', () => visit({}, async (visit) => {
    await visit.drop({ 'small.onnx': convolution() });
    await visit.tab.waitForSelector('#card-title');
    assert.match(await visit.text('#run-why'), /at least one sample/);
    await visit.tab.select('#scheme', 'weights');
    await visit.says('#run-why', /^Weights\. Your file is not changed/);
    await visit.quantize();
    assert.match(await visit.text('#result-facts'), /no samples needed/);
    assert.ok((await visit.downloaded('.onnx')).length > 200);
    await visit.tab.select('#scheme', 'static');
    await visit.says('#changed', /need a new calibration/);
  }));

  test('samples run again for a method that counts them twice, and not for others behind it', () => visit({}, async (visit) => {
    await small(visit);
    await open(visit, 'layers');
    const stages = await visit.stages();
    await paste(visit, 'method: ort-entropy');
    await visit.says('#changed', /need a new calibration/);
    await visit.tab.$eval('#again', (button) => /** @type {HTMLElement} */ (button).click());
    await tried(visit, 2);
    await open(visit, 'overview');
    assert.match(await stages(), /Calibrating|Extra pass/);
    await visit.tab.select('#method', 'auto');
    await visit.takesNoSamples();
  }));

  test('one sample is taken out, and settings travel in the address', () => visit({}, async (visit) => {
    await visit.ready(3);
    const { tab } = visit;
    await visit.says('.file + details li:first-child, .names li', /imagenet_00/);
    await tab.$eval('[aria-label="Remove imagenet_00_243.jpg"]', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.says('.names li', /imagenet_01/);
    assert.equal((await tab.$$('.names li')).length, 2);
    await tab.select('#method', 'entropy');
    const address = await tab.evaluate(() => location.href);
    assert.match(decodeURIComponent(address), /#settings=\{"method":"entropy"\}$/);
    const other = await tab.browser().newPage();
    await other.goto(address);
    await other.waitForSelector('input[data-pick=choose-model]');
    const input = await other.$('input[data-pick=choose-model]');
    await /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (input).uploadFile(model);
    await other.waitForSelector('#card-title');
    assert.equal(await other.$eval('#method', (field) => /** @type {HTMLSelectElement} */ (field).value), 'entropy');
    await other.close();
  }));

  test('tabs are walked with the arrow keys', () => visit({}, async (visit) => {
    await visit.drop({ 'small.onnx': convolution() });
    await visit.tab.waitForSelector('#card-title');
    const tabs = await visit.tab.$$eval('[role=tab]', (all) => all.map(({ id }) => id));
    assert.deepEqual(tabs.slice(0, 2), ['tab-overview', 'tab-layers']);
    await visit.tab.focus('#tab-overview');
    await visit.tab.keyboard.press('ArrowLeft');
    assert.equal(await visit.tab.evaluate(() => document.activeElement?.id), tabs.at(-1));
    await visit.tab.keyboard.press('Home');
    await visit.tab.keyboard.press('ArrowRight');
    const state = await visit.tab.$$eval('[role=tab]', (all) => all.map((tab) => [tab.getAttribute('aria-selected'), tab.getAttribute('tabindex')].join()));
    assert.deepEqual(state, tabs.map((id) => (id === 'tab-layers' ? 'true,0' : 'false,-1')));
    await visit.says('#panel-layers', /Types and scales are known after a run/);
  }));
});
