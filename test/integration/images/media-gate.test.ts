import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

describe('models whose vendor is inside the network', () => {
  let vendor: FixtureVendor;
  let gateway: TestGateway;
  before(async () => {
    vendor = await startFixtureVendor();
    const message = { role: 'assistant', content: 'Seen.' };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    vendor.answer((response) => sendJson(response, 200, JSON.stringify({ choices })));
    gateway = await TestGateway.start({
      settings: { VLLM_BASE_URL: vendor.baseUrl, OPENAI_API_KEY: 'sk-inside', OPENAI_BASE_URL: vendor.baseUrl },
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const data = 'data:image/png;base64,iVBORw0KGgo=';
  const insideUrls = [
    'http://169.254.169.254/latest/',
    'http://127.0.0.1:6379/',
    'http://10.0.0.1/a.png',
    'file:///etc/passwd',
  ];

  const post = (path: string, body: object): Promise<Response> =>
    gateway.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const asks: readonly (readonly [
    name: string,
    param: string,
    ask: (model: string, url: string) => Promise<Response>,
  ])[] = [
    [
      'chat',
      'messages[0].content[0].image_url.url',
      (model, url) => {
        const content = [{ type: 'image_url', image_url: { url } }];
        return post('/v1/chat/completions', { model, messages: [{ role: 'user', content }] });
      },
    ],
    [
      'response',
      'input[0].content[0].image_url',
      (model, url) => {
        const content = [{ type: 'input_image', image_url: url }];
        return post('/v1/responses', { model, input: [{ type: 'message', role: 'user', content }] });
      },
    ],
  ];

  for (const [name, param, ask] of asks) {
    it(`a ${name} with a link to an internal address returns 400 naming its field before the vendor is called`, async () => {
      for (const model of ['vllm/llava', 'gpt-4o-mini']) {
        for (const url of insideUrls) {
          const { error } = (await (await ask(model, url)).json()) as { error: { code: string; param: string } };
          assert.deepEqual([error?.code, error?.param], ['invalid_request_error', param], `${model} ${url}`);
        }
      }
      assert.equal(vendor.requests.length, 0);
    });
  }

  it('a chat with a data URL passes it unchanged to a vendor inside the network', async () => {
    const [, , chat] = asks[0] ?? assert.fail();
    assert.equal((await chat('vllm/llava', data)).status, 200);
    assert.ok(vendor.requests.at(-1)?.body.includes(data));
  });

  it('a chat with a file link returns 400 whatever the vendor', async () => {
    const [, , chat] = asks[0] ?? assert.fail();
    const answer = await chat('sandbox-chat', 'file:///etc/passwd');
    await assertErrorAnswer(answer, 400, 'invalid_request_error');
  });
});
