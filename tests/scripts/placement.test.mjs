// The places of nodes, read from the runtime's log.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inWords, placementOf } from '../../www/features/runtime/placement.js';

const line = (/** @type {string} */ said) => `2026-11-28 06:54:20.291425 [V:onnxruntime:, session_state.cc:1385 VerifyEachNodeIsAssignedToAnEp] ${said}`;

test('nodes are counted by place, without the copies between them', () => {
  const found = placementOf([
    'some other line', line('Node placements'),
    line(' Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 3'), line('  MatMul (dense)'), line('  MemcpyToHost (Memcpy)'), line('  Softmax (a (b))'),
    line(' Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2'), line('  QuantizeLinear (q)'), line('  QuantizeLinear (r)'),
  ]);
  assert.deepEqual(found, { own: ['MatMul (dense)', 'Softmax (a (b))'], fallen: ['QuantizeLinear (q)', 'QuantizeLinear (r)'] });
  assert.equal(inWords(found, 'WebGPU'), '2 of 4 nodes fell back to the processor: 2 QuantizeLinear.');
});

test('all nodes in one place are only counted', () => {
  const all = (/** @type {string} */ provider) => inWords(placementOf([line(` All nodes placed on [${provider}ExecutionProvider]. Number of nodes: 7`)]), 'WebGPU');
  assert.equal(all('WebGpu'), 'All 7 nodes run with WebGPU.');
  assert.equal(all('CPU'), '7 of 7 nodes fell back to the processor.');
});

test('a log that does not say it, or breaks off, leaves it unknown', () => {
  const broken = [line(' Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 3'), line('  MatMul (dense)')];
  for (const log of [[], ['[W:onnxruntime] something else'], broken, [...broken, line(' Node(s) placed on [CPUExecutionProvider]. Number of nodes: 0')]]) {
    assert.equal(inWords(placementOf(log), 'WebGPU'), 'Which nodes fell back to the processor is not known.');
  }
});
