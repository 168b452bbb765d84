import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { parseChat } from '../../../../api/endpoints/chat/parse-chat.ts';
import { endpoints } from '../../../../api/endpoints/endpoints.ts';
import { isLargeBody, LargeBodies } from '../../../../api/pipeline/large-bodies/large-bodies.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';
import { ApiError, type ErrorCode } from '../../../../shared/errors.ts';

const open: LargeBodies[] = [];
const largeBodies = (...limits: ConstructorParameters<typeof LargeBodies>): LargeBodies => {
  const made = new LargeBodies(...limits);
  open.push(made);
  return made;
};

/** For tests of no limit: what a thread costs most is its start. */
const bodies = largeBodies();

after(() => Promise.all(open.map((opened) => opened.close())));

const chatBody = (content: unknown, fields: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], ...fields }));

const isCode = (code: ErrorCode) => (error: unknown) => error instanceof ApiError && error.code === code;

describe('LargeBodies', () => {
  it('LargeBodies parses a body like its endpoint, and returns the request as bytes', async () => {
    const url = `data:image/png;base64,${'QUJD'.repeat(500_000)}`;
    const parts = [{ type: 'image_url', image_url: { url } }];
    const body = chatBody(parts, { stream: true, stream_options: { include_usage: true }, 'schlüssel 🔑': '\ud800' });
    assert.equal(isLargeBody(body), true);
    const { request: parsed, ...expected } = parseChat(body);
    const text = textOf(parsed);
    const { request, ...rest } = await bodies.parse('chat', body, 'a');
    assert.deepEqual(rest, expected);
    assert.ok(textOf(request) === text);
    assert.equal(body.byteLength, 0, 'its memory was moved, not copied');
  });

  it('LargeBodies copies a body whose memory others share', async () => {
    const memory = Buffer.concat([Buffer.alloc(10), chatBody('x'.repeat(600_000))]);
    const body = memory.subarray(10);
    const before = body.toString();
    const text = textOf(parseChat(body).request);
    const { request } = await bodies.parse('chat', body, 'a');
    assert.ok(textOf(request) === text);
    assert.ok(body.toString() === before);
  });

  it('LargeBodies returns which bodies are marked for the prompt cache', async () => {
    const text = 'x'.repeat(600_000);
    for (const [endpoint, type, fields] of [
      ['chat', 'text', { messages: [] }],
      ['messages', 'text', { max_tokens: 9, messages: [] }],
      ['responses', 'input_text', { input: [] }],
      ['responses.ws', 'input_text', { type: 'response.create', input: [] }],
    ] as const) {
      const marksOf = async (mark: object | null): Promise<boolean | undefined> => {
        const turns = [{ role: 'user', content: [{ type, text, cache_control: mark }] }];
        const named = 'messages' in fields ? { messages: turns } : { input: turns };
        const body = Buffer.from(JSON.stringify({ model: 'm', ...fields, ...named }));
        assert.equal(isLargeBody(body), true);
        return (await bodies.parse(endpoint, body, 'a')).marksCache;
      };
      assert.equal(await marksOf({ type: 'ephemeral' }), true, endpoint);
      assert.equal(await marksOf(null), undefined, endpoint);
    }
  });

  it('a body is large by its bytes, or by its values, which take longer to parse than texts', () => {
    assert.equal(isLargeBody(chatBody('x'.repeat(300_000))), false);
    assert.equal(isLargeBody(chatBody('x'.repeat(600_000))), true);
    assert.equal(isLargeBody(chatBody('[{,'.repeat(90_000))), false, 'these are in a text');
    assert.equal(isLargeBody(chatBody('', { metadata: Array.from({ length: 8_500 }, () => ({ a: 12 })) })), true);
    assert.equal(isLargeBody(Buffer.from(`[${'{},'.repeat(40_000)}{}]`)), true);
  });

  it('LargeBodies knows every endpoint that takes JSON', async () => {
    for (const { name, parse } of endpoints) {
      if (parse === undefined) continue;
      await assert.rejects(bodies.parse(name, Buffer.from('{"stream":7}'), 'a'), isCode('invalid_request_error'), name);
    }
  });

  it("LargeBodies passes the endpoint's error on with its param", async () => {
    const refused = bodies.parse('chat', chatBody('x'.repeat(300_000), { temperature: 3 }), 'a');
    await assert.rejects(refused, { code: 'invalid_request_error', param: 'temperature' });
    await assert.rejects(bodies.parse('chat', Buffer.from('{'), 'a'), isCode('invalid_request_error'));
  });

  it('LargeBodies parses many bodies at once and returns each to its caller', async () => {
    const models = Array.from({ length: 20 }, (_, index) => `model-${index}`);
    const parsed = await Promise.all(
      models.map((model) => bodies.parse('chat', chatBody('x'.repeat(300_000), { model }), 'a')),
    );
    assert.deepEqual(
      parsed.map(({ model }) => model),
      models,
    );
  });

  it('LargeBodies returns 429 to an account with too many waiting bodies, and 503 for too many waiting bytes', async () => {
    const few = largeBodies({ waiting: 1, waitingBytes: 1000 });
    const taken = [few.parse('chat', chatBody('a'), 'a'), few.parse('chat', chatBody('b'), 'a')];
    await assert.rejects(few.parse('chat', chatBody('c'), 'a'), isCode('rate_limit_exceeded'));
    await Promise.all(taken);
    await few.parse('chat', chatBody('x'), 'a');
    await assert.rejects(few.parse('chat', chatBody('x'.repeat(2000)), 'a'), isCode('service_unavailable'));
  });

  it('LargeBodies makes room for another account by dropping a body of the account with the most', async () => {
    const limited = largeBodies({ waiting: 3 });
    const ended: string[] = [];
    const ask = (account: string): Promise<unknown> =>
      limited.parse('chat', chatBody('x'), account).then(
        () => ended.push(`${account} parsed`),
        ({ code }: ApiError) => ended.push(`${account} ${code}`),
      );
    const greedy = [1, 2, 3, 4].map(() => ask('greedy'));
    await Promise.all([ask('modest'), ...greedy]);
    assert.deepEqual(ended.sort(), [
      'greedy parsed',
      'greedy parsed',
      'greedy parsed',
      'greedy rate_limit_exceeded',
      'modest parsed',
    ]);
  });

  it('LargeBodies serves the account that used the least time next, however many bodies others queued before', async () => {
    const limited = largeBodies({ threads: 1 });
    const order: string[] = [];
    const ask = async (account: string, body: Buffer): Promise<void> => {
      await limited.parse('chat', Buffer.from(body), account).catch(() => undefined);
      order.push(account);
    };
    const long = chatBody('x', { objects: Array.from({ length: 100_000 }, () => ({})) });
    const greedy = Array.from({ length: 8 }, () => ask('greedy', long));
    const modest = ['one', 'two'].map((account) => ask(account, chatBody('x'.repeat(300_000))));
    await Promise.all([...greedy, ...modest]);
    // Only the body that the thread had already comes before theirs.
    assert.deepEqual(order.slice(0, 3).sort(), ['greedy', 'one', 'two']);
    assert.equal(order.length, 10);
  });

  it('LargeBodies keeps a thread free for others while an account already has one', async () => {
    const order: string[] = [];
    const ask = async (account: string, body: Buffer): Promise<void> => {
      await bodies.parse('chat', Buffer.from(body), account).catch(() => undefined);
      order.push(account);
    };
    // Both threads have started by then.
    await Promise.all([ask('greedy', chatBody('x')), ask('modest', chatBody('x'))]);
    order.length = 0;
    const long = chatBody('x', { objects: Array.from({ length: 500_000 }, () => ({})) });
    await Promise.all([ask('greedy', long), ask('greedy', long), ask('modest', chatBody('x'.repeat(300_000)))]);
    assert.deepEqual(order, ['modest', 'greedy', 'greedy']);
  });

  it('LargeBodies returns 500 for a body whose thread dies of a defect, and goes on with the next ones', async () => {
    // Nothing but ApiErrors is caught in the thread.
    const deadly = bodies.parse('an endpoint that no thread knows', chatBody('x'), 'a');
    const next = bodies.parse('chat', chatBody('y'), 'a');
    await assert.rejects(deadly, isCode('server_error'));
    assert.equal((await next).model, 'm');
    assert.equal((await bodies.parse('chat', chatBody('z'), 'a')).model, 'm');
  });

  it('LargeBodies returns 500 for a body that takes too long', async () => {
    const limited = largeBodies({ taskMs: 1 });
    await assert.rejects(limited.parse('chat', chatBody('x'.repeat(1_000_000)), 'a'), isCode('server_error'));
  });

  it('LargeBodies forgets a body whose caller disconnected', async () => {
    const limited = largeBodies({ waiting: 2 });
    const running = limited.parse('chat', chatBody('a'), 'a');
    const leaving = new AbortController();
    const left = limited.parse('chat', chatBody('b'), 'a', leaving.signal);
    const waiting = limited.parse('chat', chatBody('c'), 'a');
    leaving.abort();
    await assert.rejects(left, isCode('cancelled'));
    await assert.rejects(limited.parse('chat', chatBody('d'), 'a', leaving.signal), isCode('cancelled'));
    const inItsPlace = limited.parse('chat', chatBody('e'), 'a');
    await Promise.all([running, waiting, inItsPlace]);
  });

  it('LargeBodies returns 503 for every body once it is closed', async () => {
    const closed = largeBodies();
    const both = [closed.parse('chat', chatBody('a'), 'a'), closed.parse('chat', chatBody('b'), 'a')];
    const refused = both.map((body) => assert.rejects(body, isCode('service_unavailable')));
    await closed.close();
    await Promise.all(refused);
    await assert.rejects(closed.parse('chat', chatBody('c'), 'a'), isCode('service_unavailable'));
  });
});
