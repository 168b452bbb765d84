import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { createLogger } from '../../../../shared/runtime/log.ts';
import { createFaultCounter } from '../../../../shared/runtime/metrics.ts';
import { closeOnSignal } from '../../../../shared/runtime/shutdown.ts';

const { log, flush } = createLogger('silent', 'test');
/** How long it closes, in ms, once there is no more time for it. */
const [closingMs] = process.argv.slice(2);
const tell = (step: string): Promise<void> => new Promise((resolve) => process.send?.(step, () => resolve()));

closeOnSignal({
  log,
  flush,
  timeoutMs: closingMs === undefined ? 10_000 : 1,
  faults: createFaultCounter(new Registry()),
  leave: async (signal) => {
    await tell('leaving');
    if (!signal.aborted) await once(signal, 'abort');
    await tell('left');
  },
  close: async (signal) => {
    await tell('closing');
    if (closingMs === undefined) return;
    if (!signal.aborted) await once(signal, 'abort');
    await delay(Number(closingMs));
    await tell('closed');
  },
});
process.on('message', () => {
  setImmediate(() => {
    throw new Error('a defect');
  });
});
await tell('ready');
