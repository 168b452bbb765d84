import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { requestFacts } from '../../../../api/admission/request-facts.ts';
import { parseSpeech } from '../../../../api/endpoints/audio/parse-speech.ts';
import { parseChat } from '../../../../api/endpoints/chat/parse-chat.ts';
import { parseCompletion } from '../../../../api/endpoints/completions/parse-completion.ts';
import { parseEmbeddings } from '../../../../api/endpoints/embeddings/parse-embeddings.ts';
import { parseImageEdit, parseImageGeneration } from '../../../../api/endpoints/images/parse-image.ts';
import { parseMessageCount, parseMessages } from '../../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../../api/endpoints/responses/parse-response.ts';
import { parseSocketMessage } from '../../../../api/endpoints/responses/socket/parse-socket-message.ts';
import { parseVideo, parseVideoRemix } from '../../../../api/endpoints/videos/parse-video.ts';
import type { Parse, ParsedRequest } from '../../../../api/pipeline/parsed-request.ts';
import { requestBytes, textOf } from '../../../../api/pipeline/request-text.ts';
import type { Capability } from '../../../../shared/capabilities/capability.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { highestCostOf, holdOf } from '../../../../shared/money/hold.ts';
import { madeUpModel } from '../../../support/routed-model.ts';

const runs = process.env.SLUICE_SOAK === undefined ? 2000 : 100_000;

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

interface HeldEndpoint {
  readonly parse: Parse;
  readonly capability: Capability;
  readonly body: JsonObject;
  /** What an image is there, and the list that it is put into; left out: the endpoint has none. */
  readonly image?: { readonly of: (url: string) => Json; readonly list: (body: JsonObject) => Json[] };
}

const at = (value: Json | undefined, ...path: (string | number)[]): Json =>
  path.reduce<Json>((inner, key) => (inner as Record<string | number, Json>)[key] as Json, value as Json);

const chatBody: JsonObject = {
  ...{ model: 'm', temperature: 0.5 },
  messages: [
    { role: 'system', content: 'Be brief' },
    { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
  ],
  tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: {} } } } }],
};
const chatImage = {
  of: (url: string): Json => ({ type: 'image_url', image_url: { url } }),
  list: (body: JsonObject) => at(body, 'messages', 1, 'content') as Json[],
};
const messageBody: JsonObject = {
  ...{ model: 'm', system: 'Be brief' },
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
  tools: [{ name: 'f', input_schema: { type: 'object', properties: { a: {} } } }],
};
const messageImage = {
  of: (url: string): Json => {
    const [, type = 'image/png', data = 'AAAA'] = /^data:([^;]*);base64,(.+)$/s.exec(url) ?? [];
    const source = url.startsWith('data:') ? { type: 'base64', media_type: type, data } : { type: 'url', url };
    return { type: 'image', source };
  },
  list: (body: JsonObject) => at(body, 'messages', 0, 'content') as Json[],
};
const responseBody: JsonObject = {
  model: 'm',
  input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
  tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: { a: {} } } }],
};
const responseImage = {
  of: (url: string): Json => ({ type: 'input_image', image_url: url }),
  list: (body: JsonObject) => at(body, 'input', 0, 'content') as Json[],
};

const endpoints: Readonly<Record<string, HeldEndpoint>> = {
  chat: { parse: parseChat, capability: 'chat', body: chatBody, image: chatImage },
  messages: {
    parse: parseMessages,
    capability: 'chat',
    body: { ...messageBody, max_tokens: 50 },
    image: messageImage,
  },
  count_tokens: { parse: parseMessageCount, capability: 'chat', body: messageBody, image: messageImage },
  responses: { parse: parseResponse, capability: 'chat', body: responseBody, image: responseImage },
  'a message of a response socket': {
    parse: parseSocketMessage,
    capability: 'chat',
    body: { type: 'response.create', ...responseBody },
    image: responseImage,
  },
  completions: { parse: parseCompletion, capability: 'chat', body: { model: 'm', prompt: ['Hi', 'Ho'] } },
  embeddings: { parse: parseEmbeddings, capability: 'embedding', body: { model: 'm', input: ['Hi', 'Ho'] } },
  'images.generations': { parse: parseImageGeneration, capability: 'image', body: { model: 'm', prompt: 'Hi' } },
  'images.edits': {
    parse: parseImageEdit,
    capability: 'image',
    body: { model: 'm', prompt: 'Hi', images: [{ image_url: 'https://example.com/a.png' }] },
    image: { of: (url) => ({ image_url: url }), list: (body) => body.images as Json[] },
  },
  speech: { parse: parseSpeech, capability: 'speech', body: { model: 'm', voice: 'alloy', input: 'Hi' } },
  videos: { parse: parseVideo, capability: 'video', body: { model: 'm', prompt: 'Hi' } },
  'videos.remix': { parse: parseVideoRemix, capability: 'video', body: { prompt: 'Hi' } },
};

const dataUrl = fc
  .tuple(
    fc.constantFrom(
      'data:image/png;base64,',
      'DATA:image/png;base64,',
      'data:',
      'data:text/plain,',
      'data:image/x;a=b,',
    ),
    fc.constantFrom('', 'AAAA', 'not base64 at all ', '"quoted"', '\\', '水獺', '\u0001', '='),
    fc.nat(400),
  )
  .map(([head, piece, count]) => head + piece.repeat(count));
const url = fc.oneof(dataUrl, fc.constant('https://example.com/otter.png'), fc.string());
/** Keys that say something somewhere, none of which limits what is asked for. */
const key = fc.constantFrom(
  'image_url',
  'url',
  'x',
  'file_data',
  'input_image',
  'image',
  'data',
  'content',
  'detail',
  '0',
  'metadata',
);
const value: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    url,
    fc.constantFrom<Json>(null, true, 0, -1, 1e308, '"image_url":"data:', 'data:'),
    fc.dictionary(key, tie('value'), { maxKeys: 3 }),
    fc.array(
      tie('value').filter((item) => item !== null),
      { maxLength: 3 },
    ),
    // The same link under many keys, and as deep as a body may be nested.
    fc.tuple(url, fc.integer({ min: 1, max: 50 })).map(([link, depth]) => {
      let nested: Json = link;
      for (let level = 0; level < depth; level++) nested = { image_url: nested };
      return nested;
    }),
  ),
})).value;

/** A search context of any size, and of one that nobody knows. */
const search = fc
  .constantFrom<Json>(null, 'low', 'medium', 'high', 'huge', 'constructor')
  .map((size): Json => (size === null ? {} : { search_context_size: size }));

type Change = { readonly place: number; readonly key: string; readonly value: Json } | { readonly image: string };
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ place: fc.nat(100), key, value }) },
  { weight: 1, arbitrary: fc.record({ image: url }) },
  {
    weight: 1,
    arbitrary: fc.record({ place: fc.constant(0), key: fc.constant('web_search_options'), value: search }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      place: fc.constant(0),
      key: fc.constantFrom('size', 'quality'),
      value: fc.constantFrom<Json>('256x256', '1792x1024', 'hd', 'constructor', 'a b'),
    }),
  },
);

function objectsIn(json: Json): JsonObject[] {
  if (typeof json !== 'object' || json === null) return [];
  const inner = Object.values(json).flatMap(objectsIn);
  return Array.isArray(json) ? inner : [json, ...inner];
}

/** The body with something more in it. */
function changed(body: JsonObject, made: Change, { image }: HeldEndpoint): JsonObject {
  const copy = structuredClone(body);
  if ('image' in made) {
    if (image !== undefined) image.list(copy).push(image.of(made.image));
    return copy;
  }
  const objects = objectsIn(copy);
  const place = objects[made.place % objects.length] as JsonObject;
  if (!Object.hasOwn(place, made.key)) place[made.key] = made.value;
  return copy;
}

/** JSON text with some characters escaped, and some keys given twice, the last time rightly. */
function written(json: Json, next: () => number): string {
  if (typeof json === 'string') return writtenText(json, next);
  if (Array.isArray(json)) return `[${json.map((item) => written(item, next)).join(', ')}]`;
  if (typeof json !== 'object' || json === null) return JSON.stringify(json);
  const fields = Object.entries(json).flatMap(([name, inner]) => {
    const field = `${writtenText(name, next)} :${written(inner, next)}`;
    return next() % 8 === 0
      ? [`${JSON.stringify(name)}:{"image_url":"data:image/png;base64,AAAAAAAA"}`, field]
      : [field];
  });
  return `{${fields.join(',')}}`;
}

function writtenText(text: string, next: () => number): string {
  const plain = JSON.stringify(text).slice(1, -1);
  const escaped = plain.replace(/(?<!\\)[a-zA-Z:]/g, (letter) =>
    next() % 16 === 0 ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}` : letter,
  );
  return `"${/\\u?[0-9a-f]*$/.test(plain) || plain.includes('\\') ? plain : escaped}"`;
}

function parsed({ parse }: HeldEndpoint, text: string): ParsedRequest | undefined {
  try {
    const request = parse(Buffer.from(text));
    const { refusal } = ((request.requirements as { envelope?: unknown } | undefined)?.envelope ?? {}) as {
      refusal?: unknown;
    };
    return refusal === undefined ? request : undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return undefined;
  }
}

const prices = {
  ...{ input: 3_000_000, output: 5_000_000, image: 7, second: 11, character: 13 },
  imageKinds: { '256x256': 3, '1792x1024': 900, hd: 5000, '1792x1024 hd': 10 },
  // An operator may have a size cost less than a smaller one.
  request: { low: 90_000_000, medium: 17_000_000, high: 290_000_000 },
  above: [
    { tokens: 150, input: 6_000_000, output: 9_000_000 },
    { tokens: 5000, input: 12_000_000, output: 20_000_000 },
  ],
};

function held({ capability }: HeldEndpoint, request: ParsedRequest): number {
  const model = madeUpModel({ id: 'm', capability, prices, contextWindow: 100_000, maxOutputTokens: 1000 });
  // What the main thread has of a large body is bytes.
  const facts = requestFacts(request);
  const large = { ...request, request: requestBytes([Buffer.from(textOf(request.request))]) };
  assert.deepEqual(requestFacts(large), facts);
  const hold = holdOf([model], facts);
  return highestCostOf(hold);
}

describe('the hold of a request', () => {
  for (const [name, endpoint] of Object.entries(endpoints)) {
    test(`the hold of ${name} never falls with an added field, nesting or image, and is never 0`, () => {
      let accepted = 0;
      fc.assert(
        fc.property(
          fc.array(change, { minLength: 1, maxLength: 4 }),
          fc.array(fc.nat(), { minLength: 1 }),
          (changes, dice) => {
            let thrown = 0;
            const next = () => dice[thrown++ % dice.length] as number;
            let body = endpoint.body;
            let before = held(endpoint, parsed(endpoint, JSON.stringify(body)) as ParsedRequest);
            assert.ok(before > 0);
            for (const each of changes) {
              const more = changed(body, each, endpoint);
              const request = parsed(endpoint, JSON.stringify(more));
              if (request === undefined) continue;
              accepted++;
              const after = held(endpoint, request);
              assert.ok(after >= before, `${after} < ${before}`);
              const rewritten = parsed(endpoint, written(more, next));
              if (rewritten !== undefined)
                assert.equal(held(endpoint, rewritten), after, 'by its JSON, not by its text');
              [body, before] = [more, after];
            }
          },
        ),
        { numRuns: Math.ceil(runs / Object.keys(endpoints).length) },
      );
      assert.ok(accepted > runs / Object.keys(endpoints).length / 4, `only ${accepted} were looked at`);
    });
  }

  for (const name of ['chat', 'messages', 'responses', 'a message of a response socket', 'completions']) {
    test(`the hold of ${name} contains the price of the requested search context`, () => {
      const endpoint = endpoints[name] as HeldEndpoint;
      const of = (body: JsonObject): number =>
        held(endpoint, parsed(endpoint, JSON.stringify({ ...endpoint.body, ...body })) as ParsedRequest);
      const asking = (size: Json): number => of({ web_search_options: { search_context_size: size } });
      // As many as there are prompts, and what the field itself takes besides.
      const requests = name === 'completions' ? 2 : 1;
      assert.equal(Math.round((asking('high') - asking('low')) / 200_000_000), requests);
      assert.equal(asking('high'), asking('huge'), 'what nobody knows counts as the largest');
      assert.equal(Math.round((asking('low') - of({})) / 90_000_000), 0);
    });
  }

  test('the hold counts an inline image like any image, whatever its length, and each image once', () => {
    for (const [name, endpoint] of Object.entries(endpoints)) {
      const { image } = endpoint;
      if (image === undefined) continue;
      const of = (...urls: string[]): number => {
        const body = structuredClone(endpoint.body);
        image.list(body).push(...urls.map(image.of));
        return held(endpoint, parsed(endpoint, JSON.stringify(body)) as ParsedRequest);
      };
      const short = 'data:image/png;base64,AAAA';
      const long = `data:image/png;base64,${'A'.repeat(50_000)}`;
      assert.equal(of(long), of(short), name);
      // One more is one image more: what its JSON takes besides is under 200 tokens.
      const [none, one, two] = [of(), of(short), of(short, long)];
      assert.ok(none < one && one < two, name);
    }
  });
});
