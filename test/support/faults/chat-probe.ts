/**
 * A caller and a vendor in a process of their own, so that nothing but the gateway stands between a chat request and its
 * answer: the parent's load does not. Says `{ port }` of its vendor (OpenAI's wire, one fixed answer) when it listens; asked
 * with a `ProbeTask` it sends short chat requests one after the other, until it is told `stop`, and says their times.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import OpenAI from 'openai';

/** What the parent asks for. */
export interface ProbeTask {
  readonly baseURL: string;
  readonly apiKey: string;
  /** Requests that are sent at least, whenever it is stopped. */
  readonly least: number;
  /** How long it rests after each, in ms. */
  readonly restMs: number;
}

const completion = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'gpt-4o-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
});

let isStopped = false;

async function measure({ baseURL, apiKey, least, restMs }: ProbeTask): Promise<number[]> {
  isStopped = false;
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const times: number[] = [];
  while (!isStopped || times.length < least) {
    const startedAt = performance.now();
    await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello?' }] });
    times.push(performance.now() - startedAt);
    if (restMs > 0) await delay(restMs);
  }
  return times;
}

const vendor = createServer((request, response) => {
  request.resume().once('end', () => {
    response.setHeader('content-type', 'application/json');
    response.end(completion);
  });
});
vendor.listen(0, '127.0.0.1', () => process.send?.({ port: (vendor.address() as AddressInfo).port }));
process.on('message', (message: ProbeTask | 'stop') => {
  if (message === 'stop') isStopped = true;
  else void measure(message).then((times) => process.send?.({ times }));
});
process.once('disconnect', () => process.exit(0));
