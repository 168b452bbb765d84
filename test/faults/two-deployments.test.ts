import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { held, streamed } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { Ingress } from '../support/ingress.ts';
import { makeApiKey, revokeKey } from '../support/make-api-key.ts';
import { createVideo } from '../support/sandbox-videos.ts';
import { readSse, sseEvents, textOf, type WireEvent } from '../support/sse-events.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

interface Job {
  readonly id: string;
  readonly status: string;
  readonly urls: Readonly<Record<'self' | 'events' | 'ws' | 'cancel', string>>;
  readonly result: { readonly data?: readonly { readonly url: string }[] } | null;
}

describe('two apis with two PUBLIC_URLs', () => {
  let gateway: TestGateway;
  let one: Ingress;
  let other: Ingress;
  before(async () => {
    [one, other] = await Promise.all([Ingress.start(), Ingress.start()]);
    gateway = await TestGateway.start({ apis: 0, settings: { TRUST_PROXY: '127.0.0.0/8, ::1' } });
    one.upstream = (await gateway.startApi({ PUBLIC_URL: `${one.url}, ${other.url}` })).url;
    other.upstream = (await gateway.startApi({ PUBLIC_URL: `${other.url},${one.url}/` })).url;
  });
  after(async () => {
    await gateway?.stop();
    await Promise.all([one?.close(), other?.close()]);
  });

  function post(at: Ingress, path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
    return gateway.fetch(path, { url: at.url, method: 'POST', body: JSON.stringify(body), headers });
  }

  async function readJob(at: Ingress, id: string): Promise<Job> {
    const response = await gateway.fetch(`/v1/jobs/${id}`, { url: at.url });
    assert.equal(response.status, 200);
    return (await response.json()) as Job;
  }

  async function postLater(at: Ingress, path: string, body: object): Promise<{ job: Job; location: string | null }> {
    const response = await post(at, path, body, { prefer: 'respond-async' });
    assert.equal(response.status, 202);
    return { job: (await response.json()) as Job, location: response.headers.get('location') };
  }

  it('a key is known to both apis, is limited across both together, and is revoked on both at once', async () => {
    const apiKey = await makeApiKey(gateway, { concurrency: 1 });
    const headers = { authorization: `Bearer ${apiKey}` };
    const leaving = new AbortController();
    const running = gateway.fetch('/v1/chat/completions', {
      ...{ url: one.url, method: 'POST', headers, signal: leaving.signal },
      body: JSON.stringify(held('WORDS:2000@40', { user: 'running' })),
    });
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'running')).length, 1));
    const refused = await post(other, '/v1/chat/completions', held('Hi'), headers);
    await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
    leaving.abort();
    await assert.rejects(running, { name: 'AbortError' });
    await eventually(async () => {
      assert.equal((await post(other, '/v1/chat/completions', held('Hi'), headers)).status, 200);
    });
    await revokeKey(gateway, apiKey);
    for (const at of [one, other]) {
      const after = await post(at, '/v1/chat/completions', held('Hi'), headers);
      await assertErrorAnswer(after, 401, 'invalid_api_key');
    }
  });

  it('a stream started on one api resumes on the other at its last event id', async () => {
    const response = await post(one, '/v1/chat/completions', streamed('WORDS:30@20'), { 'idempotency-key': 'moved' });
    assert.equal(response.status, 200);
    const id = response.headers.get('x-request-id') as string;
    const read: WireEvent[] = [];
    for await (const event of readSse(response)) if (read.push(event) >= 5) break;
    const rest = await gateway.fetch(`/v1/jobs/${id}/events`, {
      url: other.url,
      headers: { 'last-event-id': read.at(-1)?.id as string },
    });
    assert.equal(rest.status, 200);
    const words = Array.from({ length: 30 }, (_, index) => `word${index + 1}`).join(' ');
    assert.equal(textOf([...read, ...sseEvents(await rest.text())]).trim(), words);
  });

  it('a video created on one api is watched, downloaded and deleted on the other', async () => {
    const [here, there] = [one, other].map(({ url }) => gateway.client({ url })) as [OpenAI, OpenAI];
    const { id } = await createVideo(here, { sandbox: { video: { duration_ms: 300 } } });
    await eventually(async () => assert.equal((await there.videos.retrieve(id)).status, 'completed'), 30_000);
    const [near, far] = await Promise.all([here, there].map(async (client) => client.videos.downloadContent(id)));
    assert.deepEqual(await near?.arrayBuffer(), await far?.arrayBuffer());
    await there.videos.delete(id);
    await assert.rejects(() => here.videos.retrieve(id), { status: 404 });
  });

  it("a job's links carry the base URL of the request that reads it, on whichever api it was made", async () => {
    const { job, location } = await postLater(one, '/v1/chat/completions', held('Hi'));
    assert.equal(location, `${one.url}/v1/jobs/${job.id}`);
    assert.equal(job.urls.self, location);
    for (const at of [other, one]) {
      const { urls } = await readJob(at, job.id);
      const self = `${at.url}/v1/jobs/${job.id}`;
      const ws = `${self.replace('http:', 'ws:')}/ws`;
      assert.deepEqual(urls, { self, events: `${self}/events`, ws, cancel: self });
    }
  });

  it('a file link carries the base URL of its request, also in a replay, and works under both', async () => {
    const image = { model: 'sandbox-image', prompt: 'A lighthouse', size: '256x256', response_format: 'url' };
    const linkOf = async (at: Ingress): Promise<URL> => {
      const response = await post(at, '/v1/images/generations', image, { 'idempotency-key': 'one-image' });
      assert.equal(response.status, 200);
      const { data } = (await response.json()) as { data: { url: string }[] };
      return new URL(data[0]?.url as string);
    };
    const [here, there] = [await linkOf(one), await linkOf(other)];
    assert.deepEqual([here.origin, there.origin], [one.url, other.url]);
    assert.equal(here.pathname + here.search, there.pathname + there.search);
    const files = await Promise.all([here, there].map(async (link) => (await fetch(link)).arrayBuffer()));
    assert.ok((files[0]?.byteLength ?? 0) > 100);
    assert.deepEqual(files[0], files[1]);
    const { job } = await postLater(one, '/v1/images/generations', image);
    const done = await eventually(async () => {
      const read = await readJob(other, job.id);
      assert.equal(read.status, 'completed');
      return read;
    });
    assert.equal(new URL(done.result?.data?.[0]?.url as string).origin, other.url);
  });

  it('no link carries a host that a request merely claims', async () => {
    for (const headers of [
      { 'x-forwarded-host': 'evil.example' },
      { 'x-forwarded-host': `evil.example, ${one.url}` },
    ]) {
      const response = await gateway.fetch('/v1/chat/completions', {
        url: one.upstream,
        method: 'POST',
        body: JSON.stringify(held('Hi')),
        headers: { ...headers, prefer: 'respond-async' },
      });
      assert.equal(response.status, 202);
      const job = (await response.json()) as Job;
      assert.equal(job.urls.self, `${one.url}/v1/jobs/${job.id}`);
      assert.equal(response.headers.get('location'), job.urls.self);
    }
  });

  it('the start page shows the base URL of its request', async () => {
    for (const at of [one, other]) {
      const page = await (await fetch(at.url)).text();
      assert.ok(page.includes(`${at.url}/v1/chat/completions`), at.url);
    }
  });
});
