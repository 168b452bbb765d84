import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { readJsonVideo } from '../../sandbox/videos/video-request.ts';
import { VideoStore } from '../../sandbox/videos/video-store.ts';
import { eventually } from '../support/eventually.ts';
import { mp4Facts } from '../support/mp4-facts.ts';
import { clientOf, createCompleted, createVideo, pollToEnd } from '../support/sandbox-videos.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

let sandbox: RunningSandbox;
let client: OpenAI;
before(async () => {
  sandbox = await startSandbox({ journal: true });
  client = clientOf(sandbox);
});
after(() => sandbox.close());

/** The creations of a test, once the last of them has been answered. */
async function creations(user: string) {
  for (;;) {
    const calls = await vendorCalls({ sandbox }, user);
    if (calls.every(({ ended }) => ended !== null)) return calls;
  }
}

const statusOf = (video: Promise<unknown>) =>
  video.then(
    () => 200,
    (error: { status?: number }) => error.status,
  );

describe('sandbox video creations with a fault', () => {
  it('a rejected sandbox video creation makes no video', async () => {
    const cases = [
      [{ kind: 'rate_limit', retry_after: 7 }, 429],
      [{ kind: 'error', status: 503 }, 503],
      [{ kind: 'error', status: 400, code: 'invalid_value' }, 400],
    ] as const;
    for (const [fault, expected] of cases) {
      const user = `refused-${expected}`;
      assert.equal(await statusOf(createVideo(client, { user, sandbox: { fault } })), expected);
      const [entry, ...others] = await creations(user);
      assert.deepEqual(
        [entry?.video, entry?.fault, entry?.model, others],
        [undefined, fault.kind, 'sandbox-video', []],
      );
    }
  });

  it('a sandbox video creation whose answer is lost makes a video that the journal knows', async () => {
    for (const fault of [
      { kind: 'reset' },
      { kind: 'reset', after_tokens: 0 },
      { kind: 'eof' },
      { kind: 'malformed' },
    ]) {
      const user = `unheard-${JSON.stringify(fault)}`;
      await assert.rejects(createVideo(client, { user, sandbox: { fault } }));
      const calls = await creations(user);
      assert.deepEqual(
        calls.map(({ fault, ended }) => [fault, ended]),
        [[fault.kind, 'fault']],
      );
      const { status } = await client.videos.retrieve(calls[0]?.video?.id ?? '');
      assert.ok(status === 'queued' || status === 'in_progress', status);
    }
    const silent = new AbortController();
    const asked = fetch(`${sandbox.url}/v1/videos`, {
      ...{ method: 'POST', signal: silent.signal, headers: { 'x-sandbox': '{"fault":{"kind":"silence"}}' } },
      body: JSON.stringify({ prompt: 'x', user: 'silent' }),
    });
    let id: string | undefined;
    while (id === undefined) id = (await vendorCalls({ sandbox }, 'silent'))[0]?.video?.id;
    silent.abort();
    await assert.rejects(asked);
    assert.equal((await client.videos.retrieve(id)).id, id);
    await eventually(async () => assert.equal((await creations('silent'))[0]?.ended, 'client_closed'));
  });

  it('a sandbox video creation meets its fault as often as its key allows', async () => {
    const wish = { sandbox: { fault: { kind: 'error', status: 500, times: 2, key: 'videos' } }, user: 'keyed' };
    const statuses = [];
    for (let turn = 0; turn < 4; turn += 1) statuses.push(await statusOf(createVideo(client, wish)));
    assert.deepEqual(statuses, [500, 500, 200, 200]);
    assert.equal((await creations('keyed')).filter(({ video }) => video !== undefined).length, 2);
  });
});

describe('sandbox video polls with a fault', () => {
  const started = (poll_fault: Record<string, unknown>) =>
    createVideo(client, { sandbox: { video: { duration_ms: 60_000, poll_fault } } });

  it('a sandbox video poll returns the error as often as requested, after the requested good answers', async () => {
    for (const [fault, expected] of [
      [{ kind: 'error', status: 502 }, 502],
      [{ kind: 'rate_limit', retry_after: 3 }, 429],
      [{ kind: 'error', status: 404, code: 'not_found' }, 404],
    ] as const) {
      const { id } = await started({ ...fault, after: 1, times: 2 });
      const statuses = [];
      for (let poll = 0; poll < 5; poll += 1) statuses.push(await statusOf(client.videos.retrieve(id)));
      assert.deepEqual(statuses, [200, expected, expected, 200, 200]);
    }
    const { id } = await started({ kind: 'rate_limit', retry_after: 3 });
    const limited = await fetch(`${sandbox.url}/v1/videos/${id}`);
    assert.deepEqual([limited.status, limited.headers.get('retry-after')], [429, '3']);
  });

  it('a sandbox video poll may stay silent, be truncated or break the connection', async () => {
    const silent = await started({ kind: 'silence', times: 1 });
    await assert.rejects(client.videos.retrieve(silent.id, { timeout: 100 }), /timed out/);
    assert.equal((await client.videos.retrieve(silent.id)).id, silent.id);
    for (const kind of ['reset', 'eof', 'malformed']) {
      const { id } = await started({ kind, times: 1 });
      await assert.rejects(client.videos.retrieve(id));
      assert.equal((await client.videos.retrieve(id)).id, id);
    }
  });

  it('a sandbox video poll reports the requested progress, even falling, and then the real one', async () => {
    const { id } = await createVideo(client, {
      sandbox: { video: { duration_ms: 60_000, queued_ms: 0, progress: [50, 20, 60] } },
    });
    const seen = [];
    for (let poll = 0; poll < 4; poll += 1) seen.push((await client.videos.retrieve(id)).progress);
    assert.deepEqual(seen, [50, 20, 60, 0]);
  });

  it('a sandbox video poll makes no journal entry, which counts polls and downloads with the creation', async () => {
    const { id } = await createCompleted(client, { user: 'counted' });
    for (let poll = 0; poll < 3; poll += 1) await client.videos.retrieve(id);
    await (await client.videos.downloadContent(id)).arrayBuffer();
    const calls = await creations('counted');
    assert.deepEqual(
      calls.map(({ video, tokens, ended }) => ({ video, tokens, ended })),
      [{ video: { id, polls: 3, downloads: 1 }, tokens: 1, ended: 'completed' }],
    );
  });
});

describe('sandbox videos with a fault', () => {
  it('a sandbox video with a failure ends as failed with the requested error', async () => {
    const blocked = { code: 'moderation_blocked', message: 'Your request was blocked by our moderation system.' };
    const own = { code: 'video_generation_failed', message: 'Out of film.' };
    for (const [failure, error] of [
      [{}, blocked],
      [own, own],
    ] as const) {
      const { id } = await createVideo(client, { sandbox: { video: { duration_ms: 50, failure } } });
      const seen = await pollToEnd(client, id);
      const last = seen.at(-1);
      assert.deepEqual([last?.status, last?.error, last?.completed_at], ['failed', error, null]);
      assert.ok(seen.slice(0, -1).every((video) => video.error === null && video.progress < 100));
    }
  });

  it("a sandbox video's content is truncated as often as requested", async () => {
    for (const kind of ['eof', 'reset']) {
      const { id } = await createCompleted(client, { sandbox: { video: { content_fault: { kind, times: 2 } } } });
      const whole = async () => Buffer.from(await (await client.videos.downloadContent(id)).arrayBuffer());
      for (let turn = 0; turn < 2; turn += 1) {
        const answer = await client.videos.downloadContent(id);
        assert.equal(answer.status, 200);
        await assert.rejects(answer.arrayBuffer());
      }
      assert.equal(mp4Facts(await whole()).durationSeconds, 4);
    }
  });

  it("a sandbox video's content is rejected, or falls silent in the middle", async () => {
    const refused = await createCompleted(client, {
      sandbox: { video: { content_fault: { kind: 'error', status: 503, times: 1 } } },
    });
    assert.equal(await statusOf(client.videos.downloadContent(refused.id)), 503);
    assert.equal(await statusOf(client.videos.downloadContent(refused.id)), 200);
    const silent = await createCompleted(client, { sandbox: { video: { content_fault: { kind: 'silence' } } } });
    const answer = await fetch(`${sandbox.url}/v1/videos/${silent.id}/content`);
    const reader = answer.body?.getReader();
    let bytes = 0;
    const half = Math.floor(Number(answer.headers.get('content-length')) / 2);
    while (bytes < half) bytes += (await reader?.read())?.value?.length ?? 0;
    assert.equal(bytes, half);
    await reader?.cancel();
  });
});

describe('VideoStore', () => {
  const request = (duration_ms: number, prompt = 'x') =>
    readJsonVideo(JSON.stringify({ prompt, sandbox: { video: { duration_ms } } }), {});
  const refusal = { status: 429, code: 'rate_limit_exceeded' };

  it('VideoStore holds 10,000 videos, drops the oldest ended one for a new one, and rejects the new one without any', () => {
    const store = new VideoStore();
    const slow = store.add(request(60_000));
    const ended = [store.add(request(0)), store.add(request(0))] as const;
    for (let count = 3; count < 10_000; count += 1) store.add(request(60_000));
    store.add(request(60_000));
    assert.throws(() => store.get(ended[0].id), { status: 404 });
    assert.equal(store.get(ended[1].id), ended[1]);
    assert.equal(store.get(slow.id), slow);
    store.add(request(60_000));
    assert.throws(() => store.add(request(60_000)), refusal);
  });

  it('VideoStore holds 64 Mi characters of prompts', () => {
    const store = new VideoStore();
    const long = 'x'.repeat(32_000);
    const first = store.add(request(0, long));
    for (let count = 1; count < 2097; count += 1) store.add(request(60_000, long));
    assert.equal(store.get(first.id), first);
    store.add(request(60_000, long));
    assert.throws(() => store.get(first.id), { status: 404 });
    assert.throws(() => store.add(request(60_000, long)), refusal);
    assert.equal(store.add(request(0)).isFinished, true);
  });
});
