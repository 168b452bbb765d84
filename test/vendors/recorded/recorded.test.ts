import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import {
  assertTold,
  readChunks,
  readCompletion,
  readMessage,
  readMessageEvents,
  readResponse,
  readResponseEvents,
  type Told,
} from './client-view.ts';
import { type Exchange, type Expected, readExchanges, type VendorExchanges } from './exchange.ts';
import { type Cut, type ReplayingVendor, type Sent, startReplayingVendor } from './replaying-vendor.ts';

/*
 * What vendors say, written by hand in the shapes that they document, goes through the whole gateway: each exchange whole, in
 * odd pieces and byte by byte, through the endpoints of chats. What clients are told stands beside it in `exchanges`.
 */

type Fields = Record<string, unknown>;

const cuts: readonly Cut[] = ['whole', 'odd_pieces', 'byte_by_byte'];

/** A way to ask for a chat: the endpoint, and what reads its answers. */
interface Way {
  readonly path: string;
  readonly ask: (vendor: VendorExchanges, exchange: Exchange) => Fields;
  readonly held: (body: unknown) => Told;
  readonly streamed: (body: string) => Told;
}

const parameters = { type: 'object', properties: {} };
const namesOf = ({ calls = [] }: Expected): string[] => [...new Set(calls.map(([name]) => name))];
const modelOf = ({ vendor, model }: VendorExchanges): string => `${vendor}/${model}`;
const messages = [{ role: 'user', content: 'What is it?' }];

const chat: Way = {
  path: '/v1/chat/completions',
  ask: (vendor, { isStreamed, expected }) => {
    const tools = namesOf(expected).map((name) => ({ type: 'function', function: { name, parameters } }));
    return {
      ...{ model: modelOf(vendor), messages },
      ...(isStreamed && { stream: true, stream_options: { include_usage: true } }),
      ...(tools.length > 0 && { tools }),
    };
  },
  held: readCompletion,
  streamed: readChunks,
};

const responses: Way = {
  path: '/v1/responses',
  ask: (vendor, { isStreamed, expected }) => {
    const tools = namesOf(expected).map((name) => ({ type: 'function', name, parameters, strict: false }));
    return { model: modelOf(vendor), input: 'What is it?', stream: isStreamed, ...(tools.length > 0 && { tools }) };
  },
  held: readResponse,
  streamed: readResponseEvents,
};

const messagesOfAnthropic: Way = {
  path: '/v1/messages',
  ask: (vendor, { isStreamed, expected }) => {
    const tools = namesOf(expected).map((name) => ({ name, input_schema: parameters }));
    return {
      ...{ model: modelOf(vendor), messages, max_tokens: 2000, stream: isStreamed },
      ...(tools.length > 0 && { tools }),
      ...(expected.reasoning && { thinking: { type: 'enabled', budget_tokens: 1024 } }),
    };
  },
  held: readMessage,
  streamed: readMessageEvents,
};

/** Errors as Anthropic's API names them, by their status. */
const anthropicTypes: Readonly<Record<number, string>> = {
  ...{ 400: 'invalid_request_error', 404: 'not_found_error', 413: 'request_too_large', 429: 'rate_limit_error' },
  ...{ 500: 'api_error', 503: 'overloaded_error', 504: 'timeout_error' },
};

/** The code of an error as an endpoint has it: those that a response can fail with are few. */
function codeIn(way: Way, isBegun: boolean, { status = 500, code }: Expected): string | undefined {
  if (way === messagesOfAnthropic) return anthropicTypes[status];
  if (way !== responses || !isBegun) return code;
  return { 400: 'invalid_prompt', 429: 'rate_limit_exceeded' }[status] ?? 'server_error';
}

const ways: readonly Way[] = [chat, responses, messagesOfAnthropic];

/** Whether an answer that is also sent whole comes in pieces. */
const isPieces = (cut: Cut, { status }: Exchange): boolean => cut !== 'whole' && status === 200;

/** Who asks for an answer: for pieces one, in turns, as a worker puts them together without knowing who has asked. The soak has all. */
function waysFor(cut: Cut, exchange: Exchange, index: number): readonly Way[] {
  if (!isPieces(cut, exchange) || process.env.SLUICE_SOAK) return ways;
  return [ways[(index + cuts.indexOf(cut)) % ways.length] as Way];
}

const vendors = readExchanges();

describe('recorded exchanges through the gateway', {
  concurrency: 4,
}, () => {
  let gateway: TestGateway;
  let server: ReplayingVendor;

  before(async () => {
    server = await startReplayingVendor();
    const entries = vendors.map(({ vendor, like, apiKey }) => {
      const entry = { base_url: `${server.url}/${vendor}`, api_key: apiKey, open: true };
      return [vendor, { ...(like !== undefined && { like }), ...entry }];
    });
    gateway = await TestGateway.start({
      configuration: {
        vendors: Object.fromEntries(entries),
        // A failure is what many of these exchanges are about: none is followed by another call, and none closes a route.
        routing: { attempts: 1, breaker: { calls: 10_000 } },
      },
    });
  });
  after(async () => {
    await gateway.stop();
    await server.close();
  });

  const post = (path: string, body: Fields, headers: Record<string, string> = {}) =>
    gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers });

  /** Asks in one way and checks what comes. */
  const askBy = async (way: Way, vendor: VendorExchanges, exchange: Exchange): Promise<void> => {
    const { expected } = exchange;
    const response = await post(way.path, way.ask(vendor, exchange));
    const body = await response.text();
    assert.equal(response.status, expected.text === undefined ? (expected.status ?? 200) : 200, body);
    if (expected.retryAfter !== undefined) assertWait(Number(response.headers.get('retry-after')), expected.retryAfter);
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    assert.equal(isStream, exchange.isStreamed && response.status === 200);
    const told = isStream ? way.streamed(body) : way.held(JSON.parse(body));
    assertTold(told, expected);
    if (expected.code === undefined) return;
    assert.equal(told.code, codeIn(way, isStream, expected), body);
  };

  /** Asks without waiting, and checks what the job has in the end. */
  const askLater = async (vendor: VendorExchanges, exchange: Exchange): Promise<void> => {
    const { expected } = exchange;
    const ask = chat.ask(vendor, exchange);
    // Hundreds are accepted at a time: where the disk is slow the database says so, and clients ask again.
    const id = await eventually(async () => {
      const accepted = await post(chat.path, ask, { prefer: 'respond-async' });
      const body = await accepted.text();
      assert.equal(accepted.status, 202, body);
      return (JSON.parse(body) as { id: string }).id;
    }, 30_000);
    const job = await eventually(async () => {
      const read = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as Fields;
      assert.ok(read.status === 'completed' || read.status === 'failed', 'it has not ended');
      return read;
    }, 60_000);
    if (expected.code !== undefined) {
      assert.deepEqual([job.status, (job.error as Fields).code], ['failed', expected.code]);
      return;
    }
    assertTold(readCompletion(job.result), expected);
  };

  for (const vendor of vendors) {
    test(`recorded exchanges with ${vendor.vendor} reach clients of every endpoint, however they are split`, {
      concurrency: false,
    }, async (t) => {
      for (const [index, exchange] of vendor.exchanges.entries()) {
        const { isStreamed, kind, title } = exchange;
        await t.test(`${vendor.vendor} ${isStreamed ? 'streamed' : 'held'} ${kind}: ${title}`, async () => {
          // An error has no events that a cut could part.
          for (const cut of exchange.status === 200 ? cuts : (['byte_by_byte'] as const)) {
            const sent = server.play(vendor.vendor, exchange, cut);
            const asks = waysFor(cut, exchange, index).map((way) => askBy(way, vendor, exchange));
            if (!isPieces(cut, exchange)) asks.push(askLater(vendor, exchange));
            const asked = await Promise.allSettled(asks);
            for (const each of asked) if (each.status === 'rejected') throw each.reason;
            assert.equal(sent.length, asked.length);
            for (const request of sent) assertSent(request, vendor, exchange);
          }
        });
      }
    });
  }

  test('every vendor has exchanges of every kind', () => {
    for (const { vendor, exchanges } of vendors) {
      assert.ok(exchanges.length >= 10, `${vendor} has ${exchanges.length} exchanges`);
      assert.equal(
        new Set(exchanges.map(({ isStreamed, kind, title }) => `${isStreamed} ${kind} ${title}`)).size,
        exchanges.length,
      );
      for (const mode of [true, false])
        assert.ok(
          exchanges.some(({ isStreamed }) => isStreamed === mode),
          vendor,
        );
      for (const kind of ['text', 'key', 'limit', 'model', 'refused']) {
        assert.ok(
          exchanges.some((exchange) => exchange.kind === kind),
          `${vendor} has no exchange of the kind ${kind}`,
        );
      }
    }
  });
});

/** What the gateway has sent is for this vendor: where, with which key, and whether to stream. */
function assertSent({ path, headers, body }: Sent, vendor: VendorExchanges, { isStreamed }: Exchange): void {
  assert.equal(path, isStreamed ? vendor.streamPath : vendor.path);
  assert.ok(String(headers[vendor.keyHeader]).includes(vendor.apiKey.split(':')[0] ?? ''), 'the key');
  if (vendor.path !== vendor.streamPath) return;
  assert.equal(body.model, vendor.model);
  assert.equal(body.stream === true, isStreamed);
}

/** A wait is spread: clients that are told to wait do not all come back at once. */
function assertWait(told: number, seconds: number): void {
  assert.ok(told >= seconds && told <= seconds * 2 + 1, `${told} for ${seconds}`);
}
