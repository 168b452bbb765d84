import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { streamed } from '../../support/chat-requests.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';

/** A vendor that tells of every chat, and of every embedding, the usage that its prompt names, as JSON. */
async function startVendor(): Promise<{ server: Server; url: string }> {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    const body = JSON.parse(text);
    if (body.input !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":${body.input}}`);
      return;
    }
    const usage = body.messages[0].content;
    const chunk = (delta: object, finish: string | null) =>
      `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":${JSON.stringify(delta)},"finish_reason":${JSON.stringify(finish)}}]}`;
    if (body.stream) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const end = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":${usage}}`;
      const events = [chunk({ role: 'assistant', content: 'Hello there' }, null), chunk({}, 'stop'), end, '[DONE]'];
      response.end(events.map((event) => `data: ${event}\n\n`).join(''));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const message = '{"index":0,"message":{"role":"assistant","content":"Hello there"},"finish_reason":"stop"}';
    response.end(
      `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[${message}],"usage":${usage}}`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

describe('impossible usage reported by a vendor', () => {
  let records: JobRecords;
  let vendor: Awaited<ReturnType<typeof startVendor>>;
  before(async () => {
    vendor = await startVendor();
    records = await JobRecords.start({ settings: { OPENAI_API_KEY: 'a-key', OPENAI_BASE_URL: vendor.url } });
  });
  after(async () => {
    await records?.stop();
    vendor?.server.close();
  });

  const ask = (usage: string) => ({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: usage }] });

  for (const usage of [
    '{"prompt_tokens":1e15}',
    '{"prompt_tokens":-1}',
    '{"completion_tokens":1.5}',
    '{"total_tokens":1e400}',
  ]) {
    it(`a held chat returns 500 and costs nothing when its vendor reports the usage ${usage}`, async () => {
      const response = await records.post(ask(usage));
      assert.equal(response.status, 500);
      const { error } = (await response.json()) as { error: { type: string; message: string } };
      assert.equal(error.type, 'server_error');
      assert.match(error.message, /usage/);
      const row = await records.ended(jobIdOf(response));
      assert.deepEqual([row.outcome, row.cost ?? 0, row.input_tokens], ['failed', 0, null]);
    });

    it(`a stream ends with an error and costs its output so far when its vendor reports the usage ${usage}`, async () => {
      const response = await records.post({ ...ask(usage), stream: true });
      const text = await response.text();
      assert.match(text, /Hello there/);
      assert.match(text, /server_error/);
      assert.doesNotMatch(text, /\[DONE\]/);
      const row = await records.ended(jobIdOf(response));
      assert.equal(row.outcome, 'failed');
      assert.ok((row.cost as number) > 0 && (row.cost as number) < 1e9, `${row.cost}`);
      assert.equal(JSON.parse(row.usage as string).estimated, true);
    });
  }

  const zeros = '{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}';

  for (const usage of ['{}', '{"prompt_tokens":"9","completion_tokens":"2"}', '{"prompt_tokens":9}', zeros]) {
    it(`a chat is charged by an estimate, not by its whole hold, when its vendor reports the usage ${usage}`, async () => {
      for (const stream of [false, true]) {
        const response = await records.post({ ...ask(usage), stream });
        assert.equal(response.status, 200);
        await response.text();
        const row = await records.ended(jobIdOf(response));
        assert.equal(row.outcome, 'completed');
        assert.ok((row.cost as number) > 0, `${row.cost}`);
        const { estimated, completion_tokens: said } = JSON.parse(row.usage as string);
        assert.deepEqual([estimated, said > 0], [true, true]);
      }
    });
  }

  it('an embedding is charged by an estimate when its vendor reports a usage of zeros', async () => {
    const asked = { model: 'text-embedding-3-small', input: zeros };
    const response = await records.post(asked, {}, { path: '/v1/embeddings' });
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number; estimated: boolean } };
    assert.deepEqual([usage.estimated, usage.prompt_tokens > 10], [true, true]);
    const row = await records.ended(jobIdOf(response));
    assert.deepEqual([row.outcome, row.input_tokens], ['completed', usage.prompt_tokens]);
    assert.ok((row.cost as number) > 0, `${row.cost}`);
  });

  it('a chat after impossible usage from a vendor is answered and recorded', async () => {
    const response = await records.post({ ...streamed('Hi'), stream: false });
    assert.equal(response.status, 200);
    assert.equal((await records.ended(jobIdOf(response))).outcome, 'completed');
  });
});
