import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { streamed } from '../../support/chat-requests.ts';
import { completionErrorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { isMainNode } from '../../support/faults/load.ts';
import { megabytes, peakWhile } from '../../support/faults/resident-memory.ts';
import { type ApiProcess, TestGateway } from '../../support/gateway.ts';
import { type JobSocketClient, openJobSocket, type SocketMessage } from '../../support/job-socket-client.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

/** The text that messages say. They are parsed as they come: to write hundreds of megabytes of them as events, and parse these, takes seconds. */
const said = (messages: readonly SocketMessage[]): string => messages.map(saidIn).join('');

function saidIn({ data }: SocketMessage): string {
  return (data as { choices?: { delta?: { content?: string } }[] }).choices?.[0]?.delta?.content ?? '';
}

describe('job sockets across processes', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2 });
  });
  after(() => gateway.stop());

  async function postLater(body: object, api = gateway.apis[0] as ApiProcess): Promise<string> {
    const init = { url: api.url, method: 'POST', body: JSON.stringify(body), headers: { prefer: 'respond-async' } };
    return ((await (await gateway.fetch('/v1/chat/completions', init)).json()) as { id: string }).id;
  }

  function open(api: ApiProcess, path: string): Promise<JobSocketClient> {
    return openJobSocket(api.url, path, { key: gateway.apiKey });
  }

  it('a job socket on one api process shows a job of another one live', async () => {
    const id = await postLater(streamed('WORDS:100@25', { user: 'elsewhere' }));
    const client = await open(gateway.apis[1] as ApiProcess, `/v1/jobs/${id}/ws`);
    await once(client.webSocket, 'message');
    assert.equal((await vendorCalls(gateway, 'elsewhere'))[0]?.ended ?? null, null, 'it came while the vendor went on');
    assert.equal(await client.closed, 1000);
    assert.equal(said(client.messages), words(100));
  });

  it('a job socket closes with 1001 after SIGTERM, and its last message says where to resume', async () => {
    const api = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '1' });
    const id = await postLater(streamed('WORDS:120@40', { user: 'handed-over' }));
    const client = await open(api, `/v1/jobs/${id}/ws`);
    await once(client.webSocket, 'message');
    const stopped = api.stop();
    assert.equal(await client.closed, 1001);
    assert.equal(await stopped, 0);
    const { code, message } = completionErrorDetails(client.messages.pop()?.data);
    assert.equal(code, 'service_unavailable');
    assert.ok(client.messages.length > 20, 'it went on until the time for closing was over');
    const path = /\/v1\/jobs\/\S+/.exec(message)?.[0] ?? '';
    assert.equal(path, `/v1/jobs/${id}/ws?starting_after=${client.messages.at(-1)?.id}`);
    const rest = await open(gateway.apis[0] as ApiProcess, path);
    assert.equal(await rest.closed, 1000);
    assert.equal(said([...client.messages, ...rest.messages]), words(120));
    assert.equal((await vendorCalls(gateway, 'handed-over')).length, 1);
  });

  it('a job socket finishes after SIGTERM if its job ends in time, and an unresponsive client delays no exit', async () => {
    const api = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '10' });
    const client = await open(api, `/v1/jobs/${await postLater(streamed('WORDS:60@50'))}/ws`);
    const stopped = api.stop();
    assert.equal(await client.closed, 1000);
    assert.equal(said(client.messages), words(60));
    assert.equal(await stopped, 0);
    const other = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '1' });
    const id = await postLater(streamed('WORDS:1000@20', { user: 'deaf' }));
    const deaf = await open(other, `/v1/jobs/${id}/ws`);
    deaf.webSocket.pause();
    assert.equal(await other.stop(), 0);
    assert.equal((await vendorCalls(gateway, 'deaf'))[0]?.ended ?? null, null, 'the job went on');
    deaf.webSocket.terminate();
    await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
  });

  it('a job continues when its api process is killed, and a job socket on another one resumes', async () => {
    const api = await gateway.startApi();
    const id = await postLater(streamed('WORDS:60@50', { user: 'killed' }), api);
    const client = await open(api, `/v1/jobs/${id}/ws`);
    while (client.messages.length < 10) await once(client.webSocket, 'message');
    await api.kill();
    assert.equal(await client.closed, 1006);
    const rest = await open(
      gateway.apis[0] as ApiProcess,
      `/v1/jobs/${id}/ws?starting_after=${client.messages.at(-1)?.id}`,
    );
    assert.equal(await rest.closed, 1000);
    assert.equal(said([...client.messages, ...rest.messages]), words(60));
    assert.equal((await vendorCalls(gateway, 'killed')).length, 1);
  });

  it('job sockets that read nothing neither delay the job nor grow the api process, and get every event later', async (t) => {
    const count = isMainNode ? 20_000 : 4000;
    // A small young generation, so that the figure shows what is held.
    const api = await gateway.startApi({ NODE_OPTIONS: '--max-semi-space-size=1', SLUICE_UNREAD_SECONDS: '600' });
    const id = await postLater(streamed(`WORDS:${count}@4000`, { user: 'slow', logprobs: true, top_logprobs: 20 }));
    const clients = await Promise.all(Array.from({ length: 10 }, () => open(api, `/v1/jobs/${id}/ws`)));
    let bytes = 0;
    const first = clients[0] as JobSocketClient;
    first.webSocket.on('message', (data) => {
      bytes += String(data).length;
    });
    for (const { webSocket } of clients) webSocket.pause();
    const before = await peakWhile(api, Promise.resolve());
    const ended = eventually(
      async () => assert.equal((await vendorCalls(gateway, 'slow'))[0]?.ended, 'completed'),
      60_000,
    );
    const peak = await peakWhile(api, ended);
    await ended;
    assert.ok(first.messages.length < count / 2, 'they were behind');
    for (const { webSocket } of clients) webSocket.resume();
    assert.deepEqual(new Set(await Promise.all(clients.map(({ closed }) => closed))), new Set([1000]));
    t.diagnostic(
      `${clients.length} × ${megabytes(bytes)} MB of messages: ${megabytes(before)} MB, at most ${megabytes(peak)} MB resident`,
    );
    const text = words(count);
    for (const { messages } of clients) assert.ok(said(messages) === text, 'each got every event once, in order');
    assert.ok(peak - before < 150 * 1024 * 1024, `it grew by ${megabytes(peak - before)} MB`);
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });
});
