import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { readSse } from '../../support/sse-events.ts';
import { type JournalEntry, vendorCalls } from '../../support/vendor-journal.ts';

interface Sent {
  readonly answer: Promise<Response>;
  /** Cuts the connection; answers when it did, in ms since 1970. */
  readonly leave: () => number;
}

function send(gateway: TestGateway, body: object, headers: Record<string, string> = {}): Sent {
  const controller = new AbortController();
  const answer = gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify(body),
    headers,
    signal: controller.signal,
  });
  answer.catch(() => undefined);
  return {
    answer,
    leave: () => {
      controller.abort();
      return Date.now();
    },
  };
}

async function firstCall(gateway: TestGateway, testId: string): Promise<JournalEntry> {
  return await eventually(async () => {
    const [call] = await vendorCalls(gateway, testId);
    assert.ok(call, 'the vendor has not been called');
    return call;
  });
}

/** The call of a test once it has ended. */
async function endedCall(gateway: TestGateway, testId: string): Promise<JournalEntry> {
  return await eventually(async () => {
    const call = await firstCall(gateway, testId);
    assert.notEqual(call.ended, null);
    return call;
  });
}

async function assertNothingLeft(gateway: TestGateway): Promise<void> {
  assert.deepEqual(await leftovers(gateway.redisUrl), []);
}

describe('client disconnects', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  const slow = { sandbox: { first_token_ms: 60_000 } };

  for (const stream of [false, true]) {
    const kind = stream ? 'a stream' : 'a held request';
    it(`a client disconnect before the first byte of ${kind} closes the connection to the vendor`, async () => {
      const user = `early-${stream}`;
      const { leave } = send(gateway, { ...held('Hi', slow), stream, user });
      await firstCall(gateway, user);
      leave();
      assert.equal((await endedCall(gateway, user)).ended, 'client_closed');
      assert.equal((await vendorCalls(gateway, user)).length, 1);
      await assertNothingLeft(gateway);
    });
  }

  it('a client disconnect during a held answer closes the connection to the vendor', async () => {
    const { leave } = send(gateway, held('WORDS:1000@20', { user: 'held' }));
    await firstCall(gateway, 'held');
    leave();
    assert.equal((await endedCall(gateway, 'held')).ended, 'client_closed');
    await assertNothingLeft(gateway);
  });

  it('a client disconnect mid-stream closes the connection to the vendor', async () => {
    const { answer, leave } = send(gateway, streamed('WORDS:1000@50', { user: 'mid' }));
    let seen = 0;
    await assert.rejects(async () => {
      for await (const _ of readSse(await answer)) if (++seen === 5) leave();
    });
    const call = await endedCall(gateway, 'mid');
    assert.equal(call.ended, 'client_closed');
    assert.ok(call.tokens < 500);
    await assertNothingLeft(gateway);
  });

  it('a client disconnect closes the connection to the vendor in every phase (delays are printed)', async () => {
    const delays: number[] = [];
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        [0, 1, 2, 3].map(async (phase) => {
          const user = `leave-${round}-${phase}`;
          const body =
            phase < 2
              ? { ...held('Hi', slow), stream: phase === 0, user }
              : { ...streamed('WORDS:1000@100'), stream: phase === 2, user };
          const { answer, leave } = send(gateway, body);
          await firstCall(gateway, user);
          if (phase === 2) await answer;
          const leftAt = leave();
          delays.push(((await endedCall(gateway, user)).ended_at as number) - leftAt);
        }),
      );
    }
    delays.sort((one, other) => one - other);
    console.log(`leaving → vendor closed, ${delays.length} leaves: p50 ${delays[20]} ms, p99 ${delays[39]} ms`);
    await assertNothingLeft(gateway);
  });

  it('a client disconnect with X-Sluice-On-Disconnect: continue does not cancel the job', async () => {
    const { leave } = send(gateway, held('WORDS:20@40', { user: 'go-on' }), { 'x-sluice-on-disconnect': 'continue' });
    await firstCall(gateway, 'go-on');
    leave();
    assert.equal((await endedCall(gateway, 'go-on')).ended, 'completed');
    await assertNothingLeft(gateway);
  });

  it('a client disconnect follows the setting of the key, unless the header X-Sluice-On-Disconnect overrides it', async () => {
    const key = await makeApiKey(gateway, { onDisconnect: 'continue' });
    const headers = { authorization: `Bearer ${key}` };
    const kept = send(gateway, streamed('WORDS:20@40', { user: 'key-goes-on' }), headers);
    const cancelled = send(gateway, streamed('WORDS:500@40', { user: 'key-cancels' }), {
      ...headers,
      'x-sluice-on-disconnect': 'cancel',
    });
    await Promise.all([firstCall(gateway, 'key-goes-on'), firstCall(gateway, 'key-cancels')]);
    kept.leave();
    cancelled.leave();
    assert.equal((await endedCall(gateway, 'key-goes-on')).ended, 'completed');
    assert.equal((await endedCall(gateway, 'key-cancels')).ended, 'client_closed');
    await assertNothingLeft(gateway);
  });

  it('a client disconnect at any moment around the start leaves nothing in Redis or at the vendor', async () => {
    await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const { answer, leave } = send(gateway, { ...held('WORDS:40@100', { user: 'any' }), stream: index % 2 === 0 });
        await new Promise((resolve) => setTimeout(resolve, index * 3));
        leave();
        await answer.catch(() => undefined);
      }),
    );
    await assertNothingLeft(gateway);
    await eventually(async () =>
      assert.deepEqual(
        (await vendorCalls(gateway, 'any')).filter(({ ended }) => ended === null),
        [],
      ),
    );
  });
});

describe('client disconnects while the job is queued', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  it('a client disconnect while the job is queued removes it, and a later worker runs only the other jobs', async () => {
    const left = [false, true, false].map((stream) => send(gateway, { ...held('Hi', { user: 'left' }), stream }));
    const stays = send(gateway, held('Reply with exactly: still here', { user: 'stays' }));
    await eventually(async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(text, /^sluice_queue_waiting\{[^}]*\} 4$/m);
    });
    for (const { leave } of left) leave();
    await eventually(async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(text, /^sluice_queue_waiting\{[^}]*\} 1$/m);
    });
    await gateway.startWorker();
    const { choices } = (await (await stays.answer).json()) as { choices: { message: { content: string } }[] };
    assert.equal(choices[0]?.message.content, 'still here');
    assert.deepEqual(await vendorCalls(gateway, 'left'), []);
    await assertNothingLeft(gateway);
  });
});
