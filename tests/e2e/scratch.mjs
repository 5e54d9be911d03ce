// The temporary folder of the tests of the page, removed at the end of the process.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const scratch = mkdtempSync(join(tmpdir(), 'octet-e2e-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
