/** The thread that counts tokens, one answer to each request, in order. Started by token-counter.ts. */
import { parentPort } from 'node:worker_threads';
import { countChatTokens } from './count-tokens.ts';

parentPort?.on('message', (request: string) => parentPort?.postMessage(countChatTokens(request)));
