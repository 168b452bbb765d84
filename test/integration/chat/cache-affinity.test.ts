import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import {
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';

const isSoak = Boolean(process.env.SLUICE_SOAK);
const [conversations, turns] = isSoak ? [200, 20] : [24, 6];
/** Every message counts as so many tokens. */
const tokensPerMessage = 100;

interface Message {
  readonly role: string;
  readonly content: string;
}

/** A vendor with a prompt cache for each of its keys: a prefix of messages that a key has sent before costs it nothing more. */
class CachingVendor {
  readonly server: FixtureVendor;
  readonly #prefixes = new Map<string, Set<string>>();
  /** Messages that a key has sent before, and that any key of any vendor has. */
  cached = 0;
  /** The keys that each conversation was sent with, by its first message. */
  readonly keysOf = new Map<string, Set<string>>();
  /** A key that the vendor limits. */
  limited: string | undefined;

  constructor(server: FixtureVendor) {
    this.server = server;
    server.answer((response, request) => {
      const key = keyOf(request);
      if (key === this.limited) {
        sendJson(response, 429, '{"error":{"message":"too many"}}', { 'retry-after': '60' });
        return;
      }
      sendJson(response, 200, JSON.stringify(this.#complete(key, request)));
    });
  }

  #complete(key: string, { body }: ReceivedRequest): object {
    const { messages = [], input = [] } = JSON.parse(body) as { messages?: Message[]; input?: Message[] };
    const all = messages.length > 0 ? messages : input;
    const known = this.#prefixes.get(key) ?? new Set();
    this.#prefixes.set(key, known);
    let cached = 0;
    for (let length = 1; length <= all.length; length++) {
      const prefix = JSON.stringify(all.slice(0, length).map(({ content }) => content));
      if (known.has(prefix)) cached = length;
      known.add(prefix);
    }
    this.cached += cached;
    const opening = all.find(({ role }) => role === 'user')?.content ?? '';
    this.keysOf.set(opening, (this.keysOf.get(opening) ?? new Set()).add(key));
    return {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: `Answer ${all.length}` },
          finish_reason: 'stop',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: all.length * tokensPerMessage,
        completion_tokens: 1,
        total_tokens: all.length * tokensPerMessage + 1,
        prompt_tokens_details: { cached_tokens: cached * tokensPerMessage },
      },
    };
  }
}

function keyOf({ headers }: ReceivedRequest): string {
  return (headers.authorization ?? '').replace('Bearer ', '');
}

describe('chats that share a prompt cache', () => {
  let gateway: TestGateway;
  let vendors: CachingVendor[];

  before(async () => {
    vendors = await Promise.all([0, 1].map(async () => new CachingVendor(await startFixtureVendor())));
    const [one, other] = vendors as [CachingVendor, CachingVendor];
    gateway = await TestGateway.start({
      workers: 2,
      configuration: {
        vendors: {
          one: { like: 'openai', base_url: one.server.baseUrl, api_keys: ['one-a', 'one-b'] },
          other: { like: 'openai', base_url: other.server.baseUrl, api_keys: ['other-a', 'other-b'] },
        },
        models: {
          spread: {
            capability: 'chat',
            routes: [
              { vendor: 'one', model: 'm', order: 0 },
              { vendor: 'other', model: 'm', order: 0 },
            ],
          },
        },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await Promise.all(vendors.map(({ server }) => server.close()));
  });

  async function ask(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
    const response = await gateway.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.equal(response.status, 200, await response.clone().text());
    return response;
  }

  /** The keys of both vendors that a conversation was sent with. */
  const keysOf = (opening: string): string[] => vendors.flatMap(({ keysOf }) => [...(keysOf.get(opening) ?? [])]);

  it('every turn of a conversation finds the earlier ones in the cache of its route and key', async () => {
    const system = { role: 'system', content: 'You are terse.' };
    let cacheable = 0;
    const before = vendors.reduce((sum, { cached }) => sum + cached, 0);
    await Promise.all(
      Array.from({ length: conversations }, async (_, index) => {
        const messages: Message[] = [system];
        for (let turn = 0; turn < turns; turn++) {
          messages.push({ role: 'user', content: `Conversation ${index}, turn ${turn}` });
          // What the turn before has sent; its answer is new to the vendor.
          if (turn > 0) cacheable += messages.length - 2;
          const answer = await (await ask('/v1/chat/completions', { model: 'spread', messages })).json();
          messages.push((answer as { choices: { message: Message }[] }).choices[0]?.message as Message);
        }
        assert.equal(keysOf(`Conversation ${index}, turn 0`).length, 1);
      }),
    );
    const cached = vendors.reduce((sum, each) => sum + each.cached, 0) - before;
    assert.ok(cached >= 0.95 * cacheable, `${cached} of ${cacheable} messages`);
    const used = new Set(
      Array.from({ length: conversations }, (_, index) => keysOf(`Conversation ${index}, turn 0`)[0] as string),
    );
    assert.equal(used.size, 4, 'conversations are spread over all routes and keys');
  });

  it('requests with one prompt_cache_key go to one route and key, whatever they say', async () => {
    const openings = Array.from({ length: 8 }, (_, index) => `Keyed ${index}`);
    for (const content of openings) {
      await ask('/v1/chat/completions', {
        model: 'spread',
        prompt_cache_key: 'shared',
        messages: [{ role: 'user', content }],
      });
    }
    assert.equal(new Set(openings.flatMap(keysOf)).size, 1);
  });

  for (const header of [
    'session_id',
    'session-id',
    'x-claude-code-session-id',
    'x-litellm-session-id',
    'x-session-id',
  ]) {
    it(`requests of one session, named by ${header}, go to one route and key, whatever they say`, async () => {
      const openings = Array.from({ length: 8 }, (_, index) => `Session ${header} ${index}`);
      for (const content of openings) {
        const headers = { [header]: '0199a213-81c0-7800-8aa1-bbab2a035a53' };
        await ask('/v1/chat/completions', { model: 'spread', messages: [{ role: 'user', content }] }, headers);
      }
      assert.equal(new Set(openings.flatMap(keysOf)).size, 1);
    });
  }

  it('a response that continues another one goes where that one went', async () => {
    for (let index = 0; index < 6; index++) {
      let previous: string | undefined;
      for (let turn = 0; turn < 3; turn++) {
        const response = await ask('/v1/responses', {
          model: 'spread',
          input: turn === 0 ? `Chain ${index}` : `and then ${turn}?`,
          previous_response_id: previous,
        });
        previous = ((await response.json()) as { id: string }).id;
      }
      assert.equal(keysOf(`Chain ${index}`).length, 1);
    }
  });

  it('a message has the affinity of its system prompt and first turn', async () => {
    const openings = Array.from({ length: 4 }, (_, index) => `Message ${index}`);
    for (const content of openings) {
      const messages = [{ role: 'user', content }];
      await ask('/v1/messages', { model: 'spread', max_tokens: 10, system: 'Be terse.', messages });
      messages.push({ role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'And?' });
      await ask('/v1/messages', { model: 'spread', max_tokens: 10, system: 'Be terse.', messages });
      assert.equal(keysOf(content).length, 1);
    }
  });

  it('a conversation whose key is limited goes on with another one, and no other conversation moves', async () => {
    const chat = (content: string): Promise<Response> =>
      ask('/v1/chat/completions', { model: 'spread', messages: [{ role: 'user', content }] });
    const openings = Array.from({ length: 16 }, (_, index) => `Limited ${index}`);
    for (const content of openings) await chat(content);
    const limited = keysOf(openings[0] as string)[0] as string;
    const vendor = vendors[limited.startsWith('one') ? 0 : 1] as CachingVendor;
    vendor.limited = limited;
    for (const content of openings) await chat(content);
    for (const content of openings) {
      const keys = keysOf(content);
      assert.equal(keys.length, keys[0] === limited || keys.includes(limited) ? 2 : 1, `${content}: ${keys}`);
    }
  });
});
