/** The thread that counts tokens: one reply per task, in order. Started by token-counter.ts. */
import { parentPort } from 'node:worker_threads';
import { countExchange } from './count-exchange.ts';
import { countChatTokens } from './count-tokens.ts';
import type { CountTask } from './token-counter.ts';

parentPort?.on('message', (task: CountTask) => {
  parentPort?.postMessage(typeof task === 'string' ? countChatTokens(task) : countExchange(task));
});
