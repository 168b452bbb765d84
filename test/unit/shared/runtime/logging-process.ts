import { Registry } from 'prom-client';
import { createLogger, logEvent } from '../../../../shared/runtime/log.ts';
import { createFaultCounter } from '../../../../shared/runtime/metrics.ts';
import { closeOnSignal } from '../../../../shared/runtime/shutdown.ts';

const { log, flush } = createLogger('info', 'test');

closeOnSignal({
  log,
  flush,
  timeoutMs: 10_000,
  faults: createFaultCounter(new Registry()),
  close: () => undefined,
});
// Logs so many lines of a thousand characters, or failures, or a line of an event twice, and then tells that it is still there.
process.on('message', (lines: number | { readonly failures: number } | { readonly event: object }) => {
  if (typeof lines === 'object' && 'event' in lines) {
    log.info(lines.event, 'request');
    logEvent(log, lines.event, 'request');
    log.level = 'warn';
    logEvent(log, lines.event, 'request');
  } else if (typeof lines === 'number') {
    for (let index = 0; index < lines; index++) log.info({ text: 'x'.repeat(1000) }, 'a line');
  } else {
    for (let index = 0; index < lines.failures; index++) {
      log.warn({ err: new Error('away'), job: index }, 'a "vendor" call failed');
      if (index % 100 === 0) log.error({ job: index }, 'a rare failure');
      log.info({ job: index }, 'job');
    }
  }
  setTimeout(() => process.send?.('logged'), 50);
});
process.send?.('ready');
