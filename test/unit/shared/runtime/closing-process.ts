import { once } from 'node:events';
import { Registry } from 'prom-client';
import { createLogger } from '../../../../shared/runtime/log.ts';
import { createFaultCounter } from '../../../../shared/runtime/metrics.ts';
import { closeOnSignal } from '../../../../shared/runtime/shutdown.ts';

const { log, flush } = createLogger('silent', 'test');
const tell = (step: string): Promise<void> => new Promise((resolve) => process.send?.(step, () => resolve()));

closeOnSignal({
  log,
  flush,
  timeoutMs: 10_000,
  faults: createFaultCounter(new Registry()),
  leave: async (signal) => {
    await tell('leaving');
    if (!signal.aborted) await once(signal, 'abort');
    await tell('left');
  },
  close: () => tell('closing'),
});
process.on('message', () => {
  setImmediate(() => {
    throw new Error('a defect');
  });
});
await tell('ready');
