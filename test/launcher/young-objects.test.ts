import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { on } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { held, streamed, streamedText } from '../support/chat-requests.ts';
import { TestGateway } from '../support/gateway.ts';

const preload = new URL('../support/promoted-memory.mjs', import.meta.url).href;
/** Fills caches, and has V8 decide how it compiles and allocates. */
const warmUp = 500;
const requests = 1500;
const concurrency = 32;
/** Maximum a request may leave among the old objects of a process. What it can reach is 10 to 30 KB, and all of that was left. */
const maxBytes = 3072;

let gateway: TestGateway;
before(async () => {
  gateway = await TestGateway.start({ settings: { NODE_OPTIONS: `--import=${preload}` } });
});
after(() => gateway?.stop());

describe('what a request made', () => {
  for (const [name, request] of [
    ['held', async () => void (await gateway.client().chat.completions.create(held('WORDS:20')))],
    [
      'streamed',
      async () => void (await streamedText(await gateway.client().chat.completions.create(streamed('WORDS:20')))),
    ],
  ] as const) {
    test(`what a ${name} request made is garbage before V8 moves it among the old objects, in the api and in the worker`, async () => {
      const processes = { api: gateway.apis[0]?.child, worker: gateway.workers[0]?.child } as Record<
        string,
        ChildProcess
      >;
      await repeat(request, warmUp);
      for (const child of Object.values(processes)) await takePromoted(child);
      await repeat(request, requests);
      for (const [role, child] of Object.entries(processes)) {
        const each = (await takePromoted(child)) / requests;
        assert.ok(each < maxBytes, `${Math.round(each)} bytes of each request, in the ${role}`);
      }
    });
  }
});

/** Several at a time, so often in all. */
async function repeat(request: () => Promise<void>, times: number): Promise<void> {
  let left = times;
  const one = async (): Promise<void> => {
    while (left-- > 0) await request();
  };
  await Promise.all(Array.from({ length: concurrency }, one));
}

/** Bytes moved among the old objects of a process since the last call. */
async function takePromoted(child: ChildProcess): Promise<number> {
  const replies = on(child, 'message', { signal: AbortSignal.timeout(60_000) });
  child.send({ type: 'take_promoted' });
  for await (const [message] of replies) if (message.type === 'promoted') return message.bytes;
  throw new Error('the process has ended');
}
