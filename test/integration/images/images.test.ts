import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createParser } from 'eventsource-parser';
import OpenAI from 'openai';
import { readImageHeader } from '../../../sandbox/image-header.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { decodedSize } from '../../support/image-files.ts';
import { leftovers } from '../../support/leftovers.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

type Generation = OpenAI.Images.ImageGenerateParamsNonStreaming;
type StreamedGeneration = OpenAI.Images.ImageGenerateParamsStreaming;
type ImageEvent = OpenAI.Images.ImageGenStreamEvent;

const path = '/v1/images/generations';

function generation(fields: Partial<Generation> & object = {}): Generation {
  return { model: 'sandbox-image', prompt: 'A lighthouse', size: '256x256', ...fields };
}

/** A job as it is read back. */
interface ReadJob {
  readonly status: string;
  readonly endpoint: string;
  readonly result: OpenAI.ImagesResponse;
  readonly usage: unknown;
}

/** A streamed one, of a size that OpenAI's document knows in events. */
function streamed(fields: Partial<Generation> & object = {}): StreamedGeneration {
  return { ...generation({ size: '1024x1024', ...fields }), stream: true };
}

/** The events of a stream, with their ids, each event's line checked against the type inside. */
function eventsOf(text: string): { id: string | undefined; data: ImageEvent & { url?: string } }[] {
  const events: { id: string | undefined; data: ImageEvent }[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => {
      const parsed = JSON.parse(data);
      assert.equal(event, parsed.type);
      events.push({ id, data: parsed });
    },
  });
  parser.feed(text);
  return events;
}

const sizeOfBase64 = (base64: string | undefined): string => decodedSize(Buffer.from(base64 ?? '', 'base64'));

describe('POST /v1/images/generations', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(async () => {
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
    await gateway.stop();
  });

  async function fetchedSize(url: string | undefined): Promise<string> {
    assert.ok(url?.startsWith(`${gateway.apis[0]?.url}/results/`), `a link of the gateway's own: ${url}`);
    const response = await fetch(url as string);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'image/png');
    return decodedSize(new Uint8Array(await response.arrayBuffer()));
  }

  it('POST /v1/images/generations returns a link of the gateway to a decodable image', async () => {
    const { data: answer, response } = await client.images
      .generate(generation({ response_format: 'url' }))
      .withResponse();
    assert.match(response.headers.get('x-request-id') ?? '', /^job_[0-9a-f]{32}$/);
    assert.ok(Math.abs(answer.created - Date.now() / 1000) < 60);
    assert.equal(answer.data?.length, 1);
    const [image] = answer.data ?? [];
    assert.deepEqual(Object.keys(image ?? {}), ['url']);
    assert.equal(await fetchedSize(image?.url), '256x256');
    assert.equal(answer.output_format, 'png');
    assert.ok((answer.usage?.output_tokens ?? 0) > 0);
  });

  it('POST /v1/images/generations returns a link by default, which works without a key but not with a changed expiry', async () => {
    const answer = await client.images.generate(generation());
    const url = answer.data?.[0]?.url ?? assert.fail('no link');
    assert.equal(await fetchedSize(url), '256x256');
    const forged = await fetch(url.replace(/expires=\d+/, 'expires=4102444800'));
    assert.ok(forged.status >= 400, `a changed link is answered ${forged.status}`);
  });

  it('POST /v1/images/generations returns a decodable image as base64', async () => {
    const answer = await client.images.generate(generation({ response_format: 'b64_json', size: '512x512' }));
    const [image] = answer.data ?? [];
    assert.deepEqual(Object.keys(image ?? {}), ['b64_json']);
    assert.equal(sizeOfBase64(image?.b64_json), '512x512');
    assert.deepEqual(Object.keys(answer).slice(0, 2), ['created', 'data']);
  });

  it('POST /v1/images/generations returns WebP on request, as base64 and behind a link', async () => {
    const held = await client.images.generate(generation({ output_format: 'webp', response_format: 'b64_json' }));
    assert.equal(held.output_format, 'webp');
    const bytes = Buffer.from(held.data?.[0]?.b64_json ?? '', 'base64');
    assert.equal(readImageHeader(bytes)?.mediaType, 'image/webp');
    assert.equal(readImageHeader(bytes)?.width, 256);
    const linked = await client.images.generate(generation({ output_format: 'webp', response_format: 'url' }));
    const url = linked.data?.[0]?.url ?? '';
    const file = await fetch(url);
    assert.equal(file.headers.get('content-type'), 'image/webp');
    assert.match(new URL(url).pathname, /\.webp$/);
    assert.ok(Buffer.from(await file.arrayBuffer()).equals(bytes));
  });

  it('POST /v1/images/generations makes n different images, in either format', async () => {
    for (const responseFormat of ['url', 'b64_json'] as const) {
      const answer = await client.images.generate(generation({ n: 3, response_format: responseFormat }));
      const images = answer.data?.map(({ url, b64_json }) => url ?? b64_json) ?? [];
      assert.equal(images.length, 3);
      assert.equal(new Set(images).size, 3);
      for (const { url, b64_json } of answer.data ?? []) {
        assert.equal(url === undefined ? sizeOfBase64(b64_json) : await fetchedSize(url), '256x256');
      }
    }
  });

  it('POST /v1/images/generations passes quality, background, style, moderation and user on in one vendor call', async () => {
    const fields = {
      quality: 'hd',
      background: 'transparent',
      style: 'vivid',
      moderation: 'low',
      user: 'passed',
    } as const;
    const answer = await client.images.generate(generation({ ...fields, response_format: 'b64_json' }));
    assert.equal(answer.quality, 'high');
    assert.equal(answer.background, 'transparent');
    const calls = await vendorCalls(gateway, 'passed');
    assert.equal(calls.length, 1);
  });

  it('POST /v1/images/generations streams partial images, then the completed one, and no [DONE]', async () => {
    const request = streamed({ partial_images: 2 });
    const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(request) });
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    const text = await response.text();
    assert.ok(!text.includes('[DONE]'));
    const events = eventsOf(text);
    assert.deepEqual(
      events.map(({ data }) => data.type),
      ['image_generation.partial_image', 'image_generation.partial_image', 'image_generation.completed'],
    );
    assert.equal(new Set(events.map(({ id }) => id)).size, 3);
    for (const [index, { data }] of events.entries()) {
      assert.equal(sizeOfBase64(data.b64_json), '1024x1024');
      assert.ok(Number.isInteger(data.created_at));
      assert.deepEqual(
        [data.size, data.quality, data.background, data.output_format],
        ['1024x1024', 'medium', 'opaque', 'png'],
      );
      if (data.type === 'image_generation.partial_image') assert.equal(data.partial_image_index, index);
      else assert.ok(data.usage.total_tokens > 0);
    }
  });

  it('POST /v1/images/generations streams to the OpenAI client, and ends with the image of the held answer', async () => {
    const events: ImageEvent[] = [];
    const stream = await client.images.generate(streamed({ partial_images: 1 }));
    for await (const event of stream) events.push(event);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['image_generation.partial_image', 'image_generation.completed'],
    );
    const held = await client.images.generate(generation({ size: '1024x1024', response_format: 'b64_json' }));
    assert.equal(events[1]?.b64_json, held.data?.[0]?.b64_json);
  });

  it('POST /v1/images/generations streams one completed event per image', async () => {
    const request = streamed({ n: 2 });
    const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(request) });
    const events = eventsOf(await response.text());
    assert.deepEqual(
      events.map(({ data }) => data.type),
      ['image_generation.completed', 'image_generation.completed'],
    );
    assert.equal(new Set(events.map(({ data }) => data.b64_json)).size, 2);
    assert.ok(events.every(({ data }) => 'usage' in data && data.usage.total_tokens > 0));
  });

  it('POST /v1/images/generations streams the link beside the base64 in the completed event on request', async () => {
    const request = streamed({ response_format: 'url', partial_images: 1 });
    const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(request) });
    const [partial, completed] = eventsOf(await response.text()).map(({ data }) => data);
    assert.equal(partial?.url, undefined);
    assert.equal(sizeOfBase64(completed?.b64_json), '1024x1024');
    assert.equal(await fetchedSize(completed?.url), '1024x1024');
  });

  it('POST /v1/images/generations runs asynchronously, with the same body as the result and with events', async () => {
    const response = await gateway.fetch(path, {
      method: 'POST',
      body: JSON.stringify(generation({ response_format: 'url', n: 2 })),
      headers: { prefer: 'respond-async' },
    });
    assert.equal(response.status, 202);
    const { id, urls } = (await response.json()) as { id: string; urls: { self: string; events: string } };
    const job = await eventually(async () => {
      const read = (await (await gateway.fetch(new URL(urls.self).pathname)).json()) as ReadJob;
      assert.equal(read.status, 'completed');
      return read;
    });
    assert.equal(job.endpoint, 'images.generations');
    const { data, usage } = job.result;
    assert.equal(data?.length, 2);
    for (const image of data ?? []) assert.equal(await fetchedSize(image.url), '256x256');
    assert.deepEqual(job.usage, { ...(usage as object), images: 2 });
    const watched = await gateway.fetch(new URL(urls.events).pathname);
    const events = eventsOf(await watched.text());
    assert.deepEqual(
      events.map(({ data: { type, url } }) => [type, url]),
      (data ?? []).map(({ url }) => ['image_generation.completed', url]),
    );
    assert.ok(id.startsWith('job_'));
  });

  it('POST /v1/images/generations streams can be resumed by job id and replayed by idempotency key', async () => {
    const request = streamed({ partial_images: 2 });
    const headers = { 'idempotency-key': `images-${Date.now()}` };
    const ask = () => gateway.fetch(path, { method: 'POST', body: JSON.stringify(request), headers });
    const first = await ask();
    const events = eventsOf(await first.text());
    const id = first.headers.get('x-request-id');
    const rest = await gateway.fetch(`/v1/jobs/${id}/events`, { headers: { 'last-event-id': events[0]?.id ?? '' } });
    assert.deepEqual(eventsOf(await rest.text()), events.slice(1));
    const replay = await ask();
    assert.equal(replay.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(eventsOf(await replay.text()), events);
    const { result } = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as { result: OpenAI.ImagesResponse };
    assert.deepEqual(result.data, [{ b64_json: events.at(-1)?.data.b64_json }]);
  });

  it('POST /v1/images/generations passes a refusal on, and retries a refused creation but never a lost answer', async () => {
    const refused = { ...generation(), output_format: 'jpeg', user: 'refused' };
    const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(refused) });
    const error = await assertErrorAnswer(response, 400, 'invalid_request_error');
    assert.equal(error.param, 'output_format');
    const cases = [
      [{ kind: 'error', status: 503, times: 1, key: 'not-done' }, 200, 2],
      [{ kind: 'error', status: 504, times: 1, key: 'late' }, 504, 1],
      [{ kind: 'reset', times: 1, key: 'lost' }, 500, 1],
      [{ kind: 'malformed', times: 1, key: 'garbled' }, 500, 1],
    ] as const;
    for (const [fault, status, calls] of cases) {
      const body = JSON.stringify({ ...generation(), user: fault.key, sandbox: { fault } });
      const answer = await gateway.fetch(path, { method: 'POST', body });
      await answer.text();
      assert.equal(answer.status, status, fault.key);
      assert.equal((await vendorCalls(gateway, fault.key)).length, calls, fault.key);
    }
  });

  it('POST /v1/images/generations ends a stream that its vendor breaks with an error event', async () => {
    const fault = { kind: 'eof', after_tokens: 1 };
    const request = streamed({ partial_images: 3, sandbox: { fault } } as Partial<Generation>);
    const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(request) });
    const blocks = (await response.text()).trim().split('\n\n');
    assert.match(blocks[0] ?? '', /image_generation\.partial_image/);
    assert.match(blocks.at(-1) ?? '', /^data: \{"error":\{.*"code":"stream_interrupted".*\nid: /);
  });

  const bad: [fields: object, param: string][] = [
    [{ size: '1000x1000' }, 'size'],
    [{ size: 'large' }, 'size'],
    [{ n: 0 }, 'n'],
    [{ n: 11 }, 'n'],
    [{ n: '2' }, 'n'],
    [{ prompt: '' }, 'prompt'],
    [{ prompt: undefined }, 'prompt'],
    [{ model: undefined }, 'model'],
    [{ model: 'sandbox-chat' }, 'model'],
    [{ quality: 'ultra' }, 'quality'],
    [{ response_format: 'file' }, 'response_format'],
    [{ partial_images: 2 }, 'partial_images'],
    [{ stream: true, partial_images: 4 }, 'partial_images'],
    [{ stream: 'yes' }, 'stream'],
    [{ output_format: 'gif' }, 'output_format'],
    [{ output_compression: 200 }, 'output_compression'],
    [{ background: 'green' }, 'background'],
    [{ moderation: 'off' }, 'moderation'],
    [{ style: 'dull' }, 'style'],
    [{ user: 5 }, 'user'],
  ];
  it('POST /v1/images/generations returns 400 naming the invalid parameter before the vendor is called', async (t) => {
    for (const [fields, param] of bad) {
      await t.test(`POST /v1/images/generations refuses ${JSON.stringify(fields)}`, async () => {
        const body = JSON.stringify({ ...generation(), user: 'bad', ...fields });
        const error = await assertErrorAnswer(
          await gateway.fetch(path, { method: 'POST', body }),
          400,
          'invalid_request_error',
        );
        assert.equal(error.param, param);
        if (param === 'size') assert.match(error.message, /'1024x1024'/);
      });
    }
    assert.equal((await vendorCalls(gateway, 'bad')).length, 0);
  });

  it('POST /v1/images/generations returns 415 for a form, and an invalid n is a BadRequestError of the OpenAI client', async () => {
    const form = new FormData();
    form.set('prompt', 'x');
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    const response = await fetch(`${gateway.url}${path}`, { method: 'POST', body: form, headers });
    await assertErrorAnswer(response, 415, 'unsupported_media_type');
    await assert.rejects(client.images.generate(generation({ n: 11 })), OpenAI.BadRequestError);
  });
});
