// @ts-check
/** The worker of the package, complete in one file: the engine, or a thread of its pool. */

import { poolName, serve } from './pool.js';

if (self.name === poolName) serve(() => import('../../../pkg/threads/octet.js'));
else await import('../../../www/worker.js');
