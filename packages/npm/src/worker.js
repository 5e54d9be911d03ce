// @ts-check
/**
 * The worker of the package, complete in one file: the engine, or a thread of its pool. It is also
 * a valid classic script, as webpack's minifier takes it for one.
 */

import { poolName, serve } from './pool.js';

if (self.name === poolName) serve(() => import('../../../pkg/threads/octet.js'));
else void import('../../../www/worker.js');
