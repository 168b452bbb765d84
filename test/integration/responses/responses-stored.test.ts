import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type OpenAI from 'openai';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { sseEvents } from '../../support/sse-events.ts';

type Response = OpenAI.Responses.Response;
type Create = OpenAI.Responses.ResponseCreateParams;

let gateway: TestGateway;
let client: OpenAI;
let redis: Redis;
before(async () => {
  gateway = await TestGateway.start();
  client = gateway.client();
  redis = new Redis(gateway.redisUrl);
});
after(async () => {
  redis?.disconnect();
  await gateway.stop();
});

const idOf = (id: string): string => id.replace(/^[a-z]+_/, '');

/** Waits until the ledger has a response, then makes Redis forget it. */
async function moveToDatabase({ id }: { id: string }): Promise<void> {
  const keys = [jobKeys.state(idOf(id)), jobKeys.log(idOf(id))];
  await eventually(async () => {
    const ttl = await redis.pttl(keys[0] as string);
    assert.ok(ttl >= 0 && ttl <= 300_000, `the ledger has not let it go yet: ${ttl}`);
  });
  await redis.del(keys);
}

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers });

async function untilEnded(id: string): Promise<Response> {
  return await eventually(async () => {
    const response = await client.responses.retrieve(id);
    assert.ok(response.status !== 'queued' && response.status !== 'in_progress', 'it has not ended');
    return response;
  });
}

// The same behaviour whether the vendor has the Responses API or a chat stands in for it.
for (const model of ['sandbox-chat', 'sandbox-responses']) {
  const create = (input: NonNullable<Create['input']>, more: Partial<Create> = {}): Promise<Response> =>
    client.responses.create({ model, input, ...more, stream: false }) as Promise<Response>;

  describe(`stored responses of ${model}`, () => {
    it(`a stored response of ${model} is retrieved as it was returned, from Redis and the database`, async () => {
      const made = await create('Reply with exactly: stored', { metadata: { topic: 'otters' } });
      const { output_text: text, ...body } = made;
      assert.equal(text, 'stored');
      const { output_text: _, ...again } = await client.responses.retrieve(made.id);
      assert.deepEqual(again, body);
      await moveToDatabase(made);
      const { output_text: __, ...later } = await client.responses.retrieve(made.id);
      assert.deepEqual(later, body);
    });

    it(`a streamed response of ${model} is retrieved as it was streamed, from Redis and the database`, async () => {
      const stream = client.responses.stream({ model, input: 'Count from 1 to 9' });
      const { output_text: _, output_parsed: __, ...final } = await stream.finalResponse();
      const read = async (): Promise<unknown> => {
        const { output_text: ___, ...rest } = await client.responses.retrieve(final.id);
        return rest;
      };
      const plain = (value: unknown): unknown =>
        JSON.parse(JSON.stringify(value, (key, each) => (key === 'parsed' ? undefined : each)));
      assert.deepEqual(await read(), plain(final));
      await moveToDatabase(final);
      assert.deepEqual(await read(), plain(final));
      const refused = await gateway.fetch(`/v1/responses/${final.id}?stream=true`);
      assert.equal((await assertErrorAnswer(refused, 400, 'invalid_request_error')).param, 'stream');
    });

    it(`a stored response of ${model} continues a conversation, from Redis and the database`, async () => {
      const one = await create('Reply with exactly: the word is otter', { instructions: 'Be brief.' });
      const two = await create('Reply with exactly: and the other is beaver', { previous_response_id: one.id });
      assert.equal(two.previous_response_id, one.id);
      assert.equal(two.instructions, null, 'instructions are not inherited');
      await moveToDatabase(two);
      const three = await create('Hello', { previous_response_id: two.id });
      const { data } = await client.responses.inputItems.list(three.id, { order: 'asc' });
      const texts = data.map((item) =>
        'content' in item ? (item.content as { text?: string }[])[0]?.text : item.type,
      );
      assert.deepEqual(texts, [
        'Reply with exactly: the word is otter',
        'the word is otter',
        'Reply with exactly: and the other is beaver',
        'and the other is beaver',
        'Hello',
      ]);
      assert.ok(
        (three.usage?.input_tokens ?? 0) > (two.usage?.input_tokens ?? 0),
        'the vendor has seen the turns before',
      );
    });

    it(`a stored response of ${model} is found by a request sent right after response.completed`, async () => {
      for (let turn = 0, previous: string | undefined; turn < 10; turn++) {
        const stream = await client.responses.create({
          ...{ model, input: `Reply with exactly: turn ${turn}`, stream: true },
          ...(previous !== undefined && { previous_response_id: previous }),
        });
        let next: Promise<Response> | undefined;
        for await (const event of stream) {
          if (event.type !== 'response.completed') continue;
          previous = event.response.id;
          next = create('Hello', { previous_response_id: previous });
        }
        assert.equal((await next)?.previous_response_id, previous);
      }
    });

    it(`stored responses of ${model} keep tool calls and their outputs together across requests`, async () => {
      const tools: OpenAI.Responses.Tool[] = [
        { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} }, strict: false },
      ];
      const asked = await create('TOOL:get_weather {}', { tools });
      const call = asked.output.find((item) => item.type === 'function_call');
      assert.ok(call?.type === 'function_call');
      const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny-42' } as const;
      const told = await create([output], { tools, previous_response_id: asked.id });
      assert.match(told.output_text, /sunny-42/);
      // As the AI SDK does: the call by its id, in place of the turn before.
      const referred = await create([
        { role: 'user', content: 'TOOL:get_weather {}' },
        { type: 'item_reference', id: call.id as string },
        output,
      ]);
      assert.match(referred.output_text, /sunny-42/);
      const body = { model, input: [{ type: 'item_reference', id: `fc_1_${'0'.repeat(32)}` }] };
      const { param } = await assertErrorAnswer(await post('/v1/responses', body), 400, 'invalid_request_error');
      assert.equal(param, 'input[0].id');
    });

    it(`stored responses of ${model} carry conversations over 64 KiB and over 1 MiB`, async () => {
      for (const length of [100_000, 1_300_000]) {
        const word = 'otter '.repeat(length / 6);
        const one = await create(`${word} Reply with exactly: read`);
        await moveToDatabase(one);
        const two = await create('Hello', { previous_response_id: one.id });
        assert.ok((two.usage?.input_tokens ?? 0) > length / 12, `${two.usage?.input_tokens} tokens`);
      }
    });

    it(`a stored response of ${model} returns tools over 64 KiB again`, async () => {
      const description = 'x'.repeat(80_000);
      const parameters = { type: 'object', properties: {} };
      const tools: OpenAI.Responses.Tool[] = [
        { type: 'function', name: 'long', description, parameters, strict: false },
      ];
      const made = await create('Reply with exactly: yes', { tools });
      assert.equal((made.tools[0] as { description?: string }).description, description);
      await moveToDatabase(made);
      assert.deepEqual((await client.responses.retrieve(made.id)).tools, made.tools);
    });

    it(`a deleted response of ${model} returns 404 and cannot be continued`, async () => {
      const made = await create('Hello');
      const answer = await gateway.fetch(`/v1/responses/${made.id}`, { method: 'DELETE' });
      assert.deepEqual(await answer.json(), { id: made.id, object: 'response', deleted: true });
      for (const path of [`/v1/responses/${made.id}`, `/v1/responses/${made.id}/input_items`, `/v1/jobs/${made.id}`]) {
        await assertErrorAnswer(await gateway.fetch(path), 404, 'not_found');
      }
      const body = { model, input: 'Hello', previous_response_id: made.id };
      await assertErrorAnswer(await post('/v1/responses', body), 400, 'previous_response_not_found');
    });

    it(`a response of ${model} is unknown to other accounts, and an unstored one to every account`, async () => {
      const stored = await create('Hello');
      const unstored = await create('Hello', { store: false });
      const another = { authorization: `Bearer ${await makeApiKey(gateway, { accountId: 'another' })}` };
      for (const [{ id }, headers] of [
        [stored, another],
        [unstored, {}],
        [{ id: `resp_${'0'.repeat(32)}` }, {}],
      ] as const) {
        await assertErrorAnswer(await gateway.fetch(`/v1/responses/${id}`, { headers }), 404, 'not_found');
        const body = { model, input: 'Hello', previous_response_id: id };
        await assertErrorAnswer(await post('/v1/responses', body, headers), 400, 'previous_response_not_found');
      }
    });

    it(`a response of ${model} gives a revoked key 401, whether it exists or not`, async () => {
      const { id } = await create('Hello');
      const key = await makeApiKey(gateway);
      const headers = { authorization: `Bearer ${key}` };
      assert.equal((await gateway.fetch('/v1/models', { headers })).status, 200);
      await revokeKey(gateway, key);
      for (const previous of [id, `resp_${'0'.repeat(32)}`]) {
        for (const named of [
          { input: 'Hello', previous_response_id: previous },
          { input: [{ type: 'item_reference', id: `msg_${previous.slice(5)}` }] },
        ]) {
          await assertErrorAnswer(await post('/v1/responses', { model, ...named }, headers), 401, 'invalid_api_key');
        }
      }
    });

    it(`GET /v1/responses/{id}/input_items of ${model} pages through the input items`, async () => {
      const { id } = await create(['a', 'b', 'c', 'd', 'e'].map((content) => ({ role: 'user', content })));
      const items = [];
      for await (const item of client.responses.inputItems.list(id, { limit: 2 })) items.push(item);
      const texts = items.map((item) => ('content' in item ? (item.content as { text?: string }[])[0]?.text : ''));
      assert.deepEqual(texts, ['e', 'd', 'c', 'b', 'a']);
      assert.equal(new Set(items.map((item) => item.id)).size, 5);
      const unknown = await gateway.fetch(`/v1/responses/${id}/input_items?after=msg_none`);
      assert.equal((await assertErrorAnswer(unknown, 400, 'invalid_request_error')).param, 'after');
    });
  });

  describe(`background responses of ${model}`, () => {
    const paced = { sandbox: { first_token_ms: 300 } } as Partial<Create>;

    it(`a background response of ${model} returns at once and is retrieved after its end`, async () => {
      const made = await create('Reply with exactly: later', { background: true, ...paced });
      assert.match(made.status ?? '', /^(queued|in_progress)$/);
      assert.deepEqual([made.output, made.usage, made.background], [[], null, true]);
      const ended = await untilEnded(made.id);
      assert.deepEqual([ended.status, ended.output_text, ended.background], ['completed', 'later', true]);
      await moveToDatabase(made);
      assert.equal((await client.responses.retrieve(made.id)).output_text, 'later');
    });

    it(`a background response of ${model} continues without its client, and streams the rest after any cursor`, async () => {
      const text = { model, input: 'Count from 1 to 12', background: true, stream: true };
      const first = await post('/v1/responses', { ...text, sandbox: { tokens_per_second: 40 } });
      const reader = first.body?.getReader();
      const { value } = (await reader?.read()) ?? {};
      await reader?.cancel();
      const id = /"id":"(resp_[0-9a-f]+)"/.exec(Buffer.from(value ?? '').toString())?.[1] as string;
      const whole = sseEvents(await (await gateway.fetch(`/v1/responses/${id}?stream=true`)).text());
      const numbers = whole.slice(0, -1).map(({ data }) => JSON.parse(data).sequence_number as number);
      assert.deepEqual(
        numbers,
        numbers.map((_, index) => index),
      );
      assert.equal(whole.at(-1)?.data, '[DONE]');
      const rests = async (): Promise<void> => {
        for (let after = 0; after < numbers.length; after++) {
          const answer = await gateway.fetch(`/v1/responses/${id}?stream=true&starting_after=${after}`);
          assert.deepEqual(sseEvents(await answer.text()), whole.slice(after + 1));
        }
      };
      await rests();
      await moveToDatabase({ id });
      await rests();
      const wrong = await gateway.fetch(`/v1/responses/${id}?stream=true&starting_after=x`);
      assert.equal((await assertErrorAnswer(wrong, 400, 'invalid_request_error')).param, 'starting_after');
    });

    it(`a background response of ${model} is cancelled for good, and a synchronous one returns 400`, async () => {
      const slow = { sandbox: { first_token_ms: 60_000 } } as Partial<Create>;
      const { id } = await create('Hello', { background: true, ...slow });
      assert.equal((await client.responses.cancel(id)).status, 'cancelled');
      assert.equal((await client.responses.cancel(id)).status, 'cancelled');
      assert.equal((await client.responses.retrieve(id)).status, 'cancelled');
      const synchronous = await create('Hello');
      await assertErrorAnswer(await post(`/v1/responses/${synchronous.id}/cancel`, {}), 400, 'invalid_request_error');
    });

    it(`a failed background response of ${model} shows its error`, async () => {
      const fault = { sandbox: { fault: { kind: 'error', status: 500, message: 'broken' } } } as Partial<Create>;
      const { id } = await create('Hello', { background: true, ...fault });
      const { status, error, output } = await untilEnded(id);
      assert.deepEqual([status, error?.code, output], ['failed', 'server_error', []]);
    });

    it(`POST /v1/responses with ${model} returns 400 for a background response with store: false`, async () => {
      const body = { model, input: 'Hello', background: true, store: false };
      await assertErrorAnswer(await post('/v1/responses', body), 400, 'invalid_request_error');
    });

    it(`a background response of ${model} with an Idempotency-Key is made once`, async () => {
      const body = { model, input: 'Hello', background: true };
      const headers = { 'idempotency-key': `background-${model}` };
      const [one, two] = await Promise.all([
        post('/v1/responses', body, headers),
        post('/v1/responses', body, headers),
      ]);
      assert.equal(((await one.json()) as Response).id, ((await two.json()) as Response).id);
    });

    it(`a response of ${model} that was deleted is not made again by its Idempotency-Key, which returns 410`, async () => {
      for (const background of [false, true]) {
        const body = { model, input: 'Hello', background };
        const headers = { 'idempotency-key': `deleted-${model}-${background}` };
        const { id } = (await (await post('/v1/responses', body, headers)).json()) as Response;
        await untilEnded(id);
        await client.responses.delete(id);
        await assertErrorAnswer(await post('/v1/responses', body, headers), 410, 'resume_expired');
        const later = await post('/v1/responses', body, { ...headers, prefer: 'respond-async' });
        await assertErrorAnswer(later, 410, 'resume_expired');
      }
    });
  });
}
