import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const file = `vendors:
  sandbox: { open: true }
  my-own: { like: openai, base_url: "\${SANDBOX_BASE_URL}", open: true }
  closed: { base_url: "\${SANDBOX_BASE_URL}" }
  # Nothing listens there.
  broken: { base_url: http://127.0.0.1:9, open: true }
models:
  sandbox-speech: { hide: true }
  sandbox-reasoning: { rename: thinker }
  fast: { alias_of: sandbox-chat }
  team/chat:
    capability: chat
    owned_by: team
    created: 2026-11-21
    context_window: 20
    routes: [{ vendor: my-own, model: sandbox-chat }]
  stood-in:
    capability: chat
    routes: [{ vendor: broken, model: any }]
    fallbacks: [team/chat]
`;

describe('a gateway with a configuration file', () => {
  let gateway: TestGateway;
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-configuration-'));
    await writeFile(join(folder, 'sluice.yaml'), file);
    gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: join(folder, 'sluice.yaml') } });
  });
  after(async () => {
    await gateway.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** The models that the vendor was asked for. */
  const asked = async (user: string) => (await vendorCalls(gateway, user)).map(({ model }) => model);

  it('GET /v1/models lists the models of the catalogue as changed by the configuration file', async () => {
    const { data } = await gateway.client().models.list();
    assert.deepEqual(
      data.map(({ id, owned_by }) => `${id} ${owned_by}`),
      [
        'sandbox-chat sandbox',
        'thinker sandbox',
        'sandbox-responses sandbox',
        'sandbox-instruct sandbox',
        'sandbox-embedding sandbox',
        'sandbox-image sandbox',
        'sandbox-transcribe sandbox',
        'sandbox-video sandbox',
        'sandbox-video-portrait sandbox',
        'team/chat team',
        'stood-in broken',
        'fast sandbox',
      ],
    );
    assert.equal(data.find(({ id }) => id === 'team/chat')?.created, Date.parse('2026-11-21') / 1000);
  });

  it("a key's limit of a model counts requests for it by an alias and by the name of its vendor", async () => {
    for (const model of ['fast', 'sandbox/sandbox-chat']) {
      const apiKey = await makeApiKey(gateway, { modelLimits: { 'sandbox-chat': { rpm: 1 } } });
      const ask = async (asked: string): Promise<Response> => {
        const headers = { authorization: `Bearer ${apiKey}` };
        const body = JSON.stringify({ ...held('Hi'), model: asked });
        return await gateway.fetch('/v1/chat/completions', { method: 'POST', headers, body });
      };
      assert.equal((await ask('team/chat')).status, 200);
      assert.equal((await ask(model)).status, 200);
      await assertErrorAnswer(await ask('sandbox-chat'), 429, 'rate_limit_exceeded');
      await assertErrorAnswer(await ask(model), 429, 'rate_limit_exceeded');
    }
  });

  for (const [id, vendorModel] of [
    ['fast', 'sandbox-chat'],
    ['thinker', 'sandbox-reasoning'],
    ['team/chat', 'sandbox-chat'],
    ['my-own/sandbox-chat', 'sandbox-chat'],
    ['sandbox/sandbox-chat', 'sandbox-chat'],
    ['sandbox/sandbox-reasoning', 'sandbox-reasoning'],
  ] as const) {
    it(`POST /v1/chat/completions answers as ${id}, held and streamed`, async () => {
      const user = `as-${id}`;
      const client = gateway.client();
      const whole = await client.chat.completions.create(held('Reply with exactly: water', { model: id, user }));
      assert.deepEqual([whole.model, whole.choices[0]?.message.content], [id, 'water']);
      const stream = await client.chat.completions.create(streamed('Reply with exactly: more', { model: id, user }));
      assert.equal(await streamedText(stream), 'more');
      assert.deepEqual(await asked(user), [vendorModel, vendorModel]);
    });
  }

  it('POST /v1/embeddings passes vendor/model through to an open vendor', async () => {
    const { data, model } = await gateway
      .client()
      .embeddings.create({ model: 'my-own/sandbox-embedding', input: ['a', 'b'] });
    assert.deepEqual([model, data.length], ['my-own/sandbox-embedding', 2]);
    assert.ok((data[0]?.embedding.length ?? 0) > 100);
  });

  it('POST /v1/audio/speech passes a hidden model through to an open vendor', async () => {
    const answer = await gateway
      .client()
      .audio.speech.create({ model: 'my-own/sandbox-speech', voice: 'alloy', input: 'Hi' });
    assert.ok((await answer.arrayBuffer()).byteLength > 100);
  });

  it('GET /v1/models/{id} returns a model of an open vendor by its name there, with what is known of it', async () => {
    const retrieve = async (id: string) => ({ ...(await gateway.client().models.retrieve(id)) });
    const listed = 'sandbox/sandbox-embedding';
    assert.deepEqual(await retrieve(listed), { ...(await retrieve('sandbox-embedding')), id: listed });
    const unlisted = { id: 'my-own/some/new-one', object: 'model', created: 0, owned_by: 'my-own' };
    assert.deepEqual(await retrieve(unlisted.id), unlisted);
    const headers = { authorization: `Bearer ${await makeApiKey(gateway, { models: ['sandbox-chat'] })}` };
    const refused = await gateway.fetch(`/v1/models/${unlisted.id}`, { headers });
    await assertErrorAnswer(refused, 403, 'permission_denied');
  });

  for (const id of [
    'sandbox-reasoning',
    'sandbox-speech',
    'closed/sandbox-chat',
    'nobody/sandbox-chat',
    'my-own/',
    '/sandbox-chat',
  ]) {
    it(`POST /v1/chat/completions and GET /v1/models/{id} return 404 for ${id}`, async () => {
      const body = JSON.stringify(held('Hi', { model: id }));
      await assertErrorAnswer(
        await gateway.fetch('/v1/chat/completions', { method: 'POST', body }),
        404,
        'model_not_found',
      );
      const path = `/v1/models/${encodeURIComponent(id)}`;
      await assertErrorAnswer(await gateway.fetch(path), 404, 'model_not_found');
    });
  }

  it('POST /v1/videos returns 404 for a passed-through model with unknown sizes', async () => {
    const body = JSON.stringify({ model: 'my-own/sandbox-video', prompt: 'A sea otter' });
    await assertErrorAnswer(await gateway.fetch('/v1/videos', { method: 'POST', body }), 404, 'model_not_found');
  });

  it('POST /v1/chat/completions validates a request against the limits of the configuration file', async () => {
    const body = JSON.stringify(held('word '.repeat(200), { model: 'team/chat' }));
    const answer = await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
    await assertErrorAnswer(answer, 400, 'context_length_exceeded');
  });

  it('POST /v1/chat/completions is answered by the fallback when no route works', async () => {
    const answer = await gateway
      .client()
      .chat.completions.create(held('Reply with exactly: here', { model: 'stood-in', user: 'stands-in' }));
    assert.equal(answer.choices[0]?.message.content, 'here');
    assert.deepEqual(await asked('stands-in'), ['sandbox-chat']);
  });
});
