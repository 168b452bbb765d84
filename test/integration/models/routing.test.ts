import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../../vendors/recorded/recorded-openai.ts';

const messages = [{ role: 'user', content: 'hi' }];

describe('POST /v1/chat/completions with several routes', () => {
  let broken: FixtureVendor;
  let gateway: TestGateway;

  before(async () => {
    broken = await startFixtureVendor();
    gateway = await TestGateway.start({
      configuration: {
        vendors: {
          broken: { like: 'openai', base_url: broken.baseUrl, api_key: 'a-key' },
          // Groq's wire knows no metadata, and takes no log-probabilities.
          narrow: { like: 'groq', base_url: broken.baseUrl, api_key: 'a-key' },
        },
        models: {
          'two-routes': {
            capability: 'chat',
            routes: [
              { vendor: 'broken', model: 'm', order: 0 },
              { vendor: 'sandbox', model: 'sandbox-chat', order: 1 },
            ],
          },
          narrow: {
            capability: 'chat',
            routes: [
              { vendor: 'narrow', model: 'm', order: 0 },
              { vendor: 'sandbox', model: 'sandbox-chat', order: 1 },
            ],
          },
          frail: { capability: 'chat', routes: [{ vendor: 'broken', model: 'f' }], fallbacks: ['sandbox-chat'] },
          hinted: {
            capability: 'chat',
            routes: [{ vendor: 'broken', model: 'h' }],
            fallbacks: ['hintless'],
          },
          hintless: { capability: 'chat', chat: { hints: false }, routes: [{ vendor: 'broken', model: 'i' }] },
          dead: { capability: 'chat', routes: [{ vendor: 'broken', model: 'd' }] },
          limited: { capability: 'chat', routes: [{ vendor: 'broken', model: 'l' }] },
        },
        routing: { attempts: 3 },
      },
    });
  });

  after(async () => {
    await gateway?.stop();
    await broken?.close();
  });

  const fails = (status: number, headers: Record<string, string> = {}): void =>
    broken.answer((response) => sendJson(response, status, errorBody('no', 'overloaded'), headers));

  const ask = async (body: object): Promise<Response> => {
    const request = JSON.stringify({ messages, ...body });
    return await gateway.fetch('/v1/chat/completions', { method: 'POST', body: request });
  };

  const served = ({ headers }: Response) =>
    ['vendor', 'attempts', 'model'].map((name) => headers.get(`x-sluice-${name}`));

  it('POST /v1/chat/completions names the vendor and the attempts in its headers, held and streamed', async () => {
    fails(503);
    for (const stream of [false, true]) {
      const first = await ask({ model: 'sandbox-chat', stream });
      assert.deepEqual([first.status, ...served(first)], [200, 'sandbox', '1', null]);
      await first.text();
      const second = await ask({ model: 'two-routes', stream });
      assert.deepEqual([second.status, ...served(second)], [200, 'sandbox', '2', null]);
      assert.match(await second.text(), /"model":"two-routes"/);
    }
  });

  it('POST /v1/chat/completions names the fallback model in its headers', async () => {
    fails(500);
    const answer = await ask({ model: 'frail' });
    assert.deepEqual([answer.status, ...served(answer)], [200, 'sandbox', '2', 'sandbox-chat']);
    assert.equal(((await answer.json()) as { model: string }).model, 'frail');
  });

  it('POST /v1/chat/completions names the vendor and the attempts of an error, too', async () => {
    fails(429, { 'retry-after': '30' });
    const limited = await ask({ model: 'limited' });
    assert.deepEqual([limited.status, ...served(limited)], [429, 'broken', '1', null]);
    // Those who are refused together are spread.
    const after = Number(limited.headers.get('retry-after'));
    assert.ok(after >= 30 && after <= 40, `${after} s`);
    fails(502);
    const failed = await ask({ model: 'dead' });
    assert.deepEqual([failed.status, ...served(failed)], [500, 'broken', '3', null]);
  });

  it('POST /v1/chat/completions names the hints that the serving vendor ignored', async () => {
    const hinted = { model: 'narrow', metadata: { a: 'b' }, store: true };
    broken.answer((response) => sendJson(response, 503, errorBody('no', 'overloaded')));
    const elsewhere = await ask(hinted);
    assert.deepEqual([...served(elsewhere), elsewhere.headers.get('x-sluice-ignored')], ['sandbox', '2', null, null]);
    const message = { role: 'assistant', content: 'fine' };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
    broken.answer((response) => sendJson(response, 200, JSON.stringify({ choices })));
    const here = await ask(hinted);
    assert.deepEqual([...served(here), here.headers.get('x-sluice-ignored')], ['narrow', '1', null, 'metadata, store']);
    assert.equal('metadata' in (JSON.parse(broken.requests.at(-1)?.body ?? '') as object), false);
  });

  it('POST /v1/messages names the hints that the fallback model ignored', async () => {
    const body = { model: 'hinted', max_tokens: 9, top_k: 4, messages };
    const send = () => gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify(body) });
    const message = { role: 'assistant', content: 'fine' };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
    broken.answer((response, { body: asked }) => {
      if ((JSON.parse(asked) as { model: string }).model === 'h')
        sendJson(response, 503, errorBody('no', 'overloaded'));
      else sendJson(response, 200, JSON.stringify({ choices }));
    });
    const standIn = await send();
    assert.deepEqual(served(standIn), ['broken', '2', 'hintless']);
    assert.equal(standIn.headers.get('x-sluice-ignored'), 'top_k');
    broken.answer((response) => sendJson(response, 200, JSON.stringify({ choices })));
    const itself = await send();
    assert.deepEqual([...served(itself), itself.headers.get('x-sluice-ignored')], ['broken', '1', null, null]);
  });

  it('POST /v1/chat/completions skips a route whose vendor would reject a field', async () => {
    fails(500);
    const asked = broken.requests.length;
    const answer = await ask({ model: 'narrow', logprobs: true });
    assert.deepEqual([answer.status, ...served(answer)], [200, 'sandbox', '1', null]);
    assert.equal(broken.requests.length, asked);
  });

  it('POST /v1/chat/completions changes the route when a stream breaks before its first token, but not after it', async () => {
    const chunk = { choices: [{ index: 0, delta: { content: 'half' }, finish_reason: null }] };
    for (const [says, status] of [
      [false, 'sandbox'],
      [true, 'broken'],
    ] as const) {
      broken.answer((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(says ? `data: ${JSON.stringify(chunk)}\n\n` : ': hello\n\n');
        setTimeout(() => response.socket?.resetAndDestroy(), 100);
      });
      const answer = await ask({ model: 'two-routes', stream: true });
      assert.equal(answer.headers.get('x-sluice-vendor'), status);
      const text = await answer.text();
      assert.equal(text.includes('stream_interrupted'), says);
      assert.equal(text.includes('[DONE]'), !says);
    }
  });
});
