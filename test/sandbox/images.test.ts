import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { after, before, describe, it } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { PNG } from 'pngjs';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { type JournalEntry, vendorCalls } from '../support/vendor-journal.ts';

let sandbox: RunningSandbox;
let client: OpenAI;
before(async () => {
  sandbox = await startSandbox({ journal: true });
  client = new OpenAI({ apiKey: 'none', baseURL: `${sandbox.url}/v1`, maxRetries: 0 });
});
after(() => sandbox.close());

const model = 'sandbox-image';

const journal = (testId: string): Promise<JournalEntry[]> => vendorCalls({ sandbox }, testId);

function bytesOf(base64: string | undefined): Buffer {
  assert.ok(base64);
  return Buffer.from(base64, 'base64');
}

/** How many colours a decoded image has, and whether every pixel is opaque. */
function look(png: PNG) {
  const colours = new Set<number>();
  for (let offset = 0; offset < png.data.length; offset += 4) colours.add(png.data.readUInt32BE(offset));
  return { colours: colours.size, isOpaque: [...colours].every((colour) => (colour & 0xff) === 0xff) };
}

/** Places where a pixel differs from its left neighbour. */
function countEdges({ width, data }: PNG): number {
  let edges = 0;
  for (let pixel = 1; pixel * 4 < data.length; pixel += 1) {
    if (pixel % width !== 0 && data.readUInt32BE(pixel * 4) !== data.readUInt32BE(pixel * 4 - 4)) edges += 1;
  }
  return edges;
}

const aPng = async (size: '256x256' | '512x512' = '256x256', prompt = 'source') =>
  bytesOf((await client.images.generate({ model, prompt, size })).data?.[0]?.b64_json);

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

async function post(path: string, body: unknown) {
  const response = await fetch(`${sandbox.url}/v1${path}`, {
    method: 'POST',
    body: body instanceof FormData ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { error: Record<string, unknown> } };
}

describe('sandbox POST /v1/images/generations', () => {
  it('sandbox POST /v1/images/generations returns PNGs of the requested size that show the prompt, deterministically', async () => {
    for (const size of ['256x256', '1024x1024', '1792x1024', '1024x1536'] as const) {
      const answer = await client.images.generate({ model, prompt: 'A sea otter', size: size as '1024x1024' });
      const png = bytesOf(answer.data?.[0]?.b64_json);
      const image = PNG.sync.read(png);
      assert.equal(`${image.width}x${image.height}`, size);
      assert.ok(png.length < 40_000, `${png.length} bytes`);
      assert.ok(look(image).colours >= 3 && look(image).isOpaque);
      const again = await client.images.generate({ model, prompt: 'A sea otter', size: size as '1024x1024' });
      assert.equal(again.data?.[0]?.b64_json, answer.data?.[0]?.b64_json);
    }
    const [otter, orca] = [await aPng('256x256', 'otter'), await aPng('256x256', 'orca')];
    assert.notDeepEqual(PNG.sync.read(otter).data, PNG.sync.read(orca).data);
  });

  it('sandbox POST /v1/images/generations returns n different images with usage and the chosen options', async () => {
    const answer = await client.images.generate({
      ...{ model, prompt: 'two words', n: 3, quality: 'high', background: 'transparent', user: 'usage' },
    });
    const images = (answer.data ?? []).map(({ b64_json }) => PNG.sync.read(bytesOf(b64_json)));
    assert.equal(new Set(answer.data?.map(({ b64_json }) => b64_json)).size, 3);
    assert.ok(images.every((image) => !look(image).isOpaque));
    const { created, data: _, ...rest } = answer;
    assert.ok(Math.abs(created - Date.now() / 1000) < 60);
    assert.deepEqual(rest, {
      ...{ background: 'transparent', output_format: 'png', quality: 'high', size: '1024x1024' },
      usage: {
        input_tokens: 2,
        input_tokens_details: { text_tokens: 2, image_tokens: 0 },
        output_tokens: 3 * 4160,
        output_tokens_details: { text_tokens: 0, image_tokens: 3 * 4160 },
        total_tokens: 2 + 3 * 4160,
      },
    });
    assert.deepEqual(
      (await journal('usage')).map(({ model, stream, tokens, ended }) => ({ model, stream, tokens, ended })),
      [{ model, stream: false, tokens: 3, ended: 'completed' }],
    );
  });

  it('sandbox POST /v1/images/generations fits a prompt of any length and script into the image', async () => {
    for (const prompt of ['x'.repeat(32_000), 'lorem ipsum '.repeat(2500), 'Füchse über 北京 🦦\n\nzweite Zeile']) {
      const image = PNG.sync.read(await aPng('256x256', prompt));
      assert.ok(look(image).colours >= 3);
    }
  });

  it('sandbox POST /v1/images/generations serves images by URL, the last 64 of them', async () => {
    const answer = await client.images.generate({ model, prompt: 'by address', n: 2, response_format: 'url' });
    const urls = (answer.data ?? []).map(({ url }) => url ?? '');
    for (const url of urls) {
      assert.ok(url.startsWith(sandbox.url), url);
      const response = await fetch(url);
      assert.equal(response.headers.get('content-type'), 'image/png');
      assert.equal(PNG.sync.read(Buffer.from(await response.arrayBuffer())).width, 1024);
    }
    for (let count = 0; count < 7; count += 1) {
      await client.images.generate({ model, prompt: 'more', n: 10, size: '256x256', response_format: 'url' });
    }
    assert.equal((await fetch(urls[0] as string)).status, 404);
  });

  it('sandbox POST /v1/images/generations streams partial images, coarse first, then the whole image with usage', async () => {
    const held = await client.images.generate({ model, prompt: 'In steps', size: '1024x1536' });
    const stream = await client.images.generate({
      ...{ model, prompt: 'In steps', size: '1024x1536', stream: true, partial_images: 3 },
    });
    const events = await collect(stream);
    assert.deepEqual(
      events.map(({ type }) => type),
      [...Array(3).fill('image_generation.partial_image'), 'image_generation.completed'],
    );
    const edges = events.map((event) => countEdges(PNG.sync.read(bytesOf(event.b64_json))));
    assert.deepEqual(
      [...edges].sort((a, b) => a - b),
      edges,
    );
    assert.ok(events.every(({ size, output_format }) => size === '1024x1536' && output_format === 'png'));
    assert.deepEqual(
      events.flatMap((event) => ('partial_image_index' in event ? [event.partial_image_index] : [])),
      [0, 1, 2],
    );
    const last = events[3];
    assert.ok(last?.type === 'image_generation.completed');
    assert.equal(last.b64_json, held.data?.[0]?.b64_json);
    assert.equal(last.usage.output_tokens, (held.usage?.output_tokens ?? 0) + 300);
  });

  it('sandbox POST /v1/images/generations returns 400 naming the parameter at fault', async () => {
    const good = { model, prompt: 'x' };
    const cases: [string | null, string | null, unknown][] = [
      [null, null, []],
      ['prompt', 'missing_required_parameter', { model }],
      ['prompt', 'empty_string', { model, prompt: '' }],
      ['prompt', 'string_above_max_length', { model, prompt: 'x'.repeat(32_001) }],
      ['prompt', null, { model, prompt: 5 }],
      ['n', 'integer_below_min_value', { ...good, n: 0 }],
      ['n', 'integer_above_max_value', { ...good, n: 11 }],
      ['n', null, { ...good, n: '2' }],
      ['size', 'invalid_value', { ...good, size: '123x456' }],
      ['quality', 'invalid_value', { ...good, quality: 'best' }],
      ['style', 'invalid_value', { ...good, style: 'dull' }],
      ['background', 'invalid_value', { ...good, background: 'blue' }],
      ['moderation', 'invalid_value', { ...good, moderation: 'none' }],
      ['output_format', null, { ...good, output_format: 'jpeg' }],
      ['output_compression', null, { ...good, output_compression: 50 }],
      ['response_format', 'invalid_value', { ...good, response_format: 'gif' }],
      ['response_format', null, { ...good, response_format: 'url', stream: true }],
      ['partial_images', 'integer_above_max_value', { ...good, partial_images: 4, stream: true }],
      ['partial_images', null, { ...good, partial_images: 1 }],
      ['stream', null, { ...good, stream: 'true' }],
      ['size', null, { ...good, size: '256x256', stream: true }],
      ['size', null, { ...good, size: '1792x1024', stream: true }],
      ['colour', 'unknown_parameter', { ...good, colour: 'red' }],
      ['sandbox.fault.kind', null, { ...good, sandbox: { fault: { kind: 'no_done' } } }],
    ];
    for (const [param, code, body] of cases) {
      const answer = await post('/images/generations', body);
      assert.deepEqual([answer.status, answer.body.error.param, answer.body.error.code], [400, param, code]);
      assert.equal(answer.body.error.type, 'invalid_request_error');
    }
    const other = await post('/images/generations', { ...good, model: 'sandbox-chat' });
    assert.deepEqual([other.status, other.body.error.code], [404, 'model_not_found']);
  });
});

describe('sandbox POST /v1/images/edits', () => {
  it('sandbox POST /v1/images/edits shows what it was given: one image, several images and a mask', async () => {
    const [first, second] = [await aPng(), await aPng('512x512', 'other')];
    const edit = async (image: Buffer[], mask?: Buffer) => {
      const answer = await client.images.edit({
        ...{ model, prompt: 'Add a hat', user: 'edits' },
        image: await Promise.all(image.map((bytes, index) => toFile(bytes, `${index}.png`, { type: 'image/png' }))),
        ...(mask !== undefined && { mask: await toFile(mask, 'mask.png', { type: 'image/png' }) }),
      });
      return { answer, image: PNG.sync.read(bytesOf(answer.data?.[0]?.b64_json)) };
    };
    const answers = [
      await edit([first]),
      await edit([second]),
      await edit([first, second]),
      await edit([first], first),
    ];
    assert.equal(new Set(answers.map(({ image }) => image.data.toString('latin1'))).size, 4);
    // The frame has the colour of the first image's hash.
    const corners = answers.map(({ image }) => image.data.readUInt32BE(0));
    assert.equal(corners[0], corners[2]);
    assert.notEqual(corners[0], corners[1]);
    assert.deepEqual(
      answers.map(({ answer }) => answer.usage?.input_tokens_details.image_tokens),
      [194, 194, 388, 388],
    );
    assert.equal((await journal('edits')).length, 4);
  });

  it('sandbox POST /v1/images/edits streams, and accepts JSON with data URLs', async () => {
    const image = await aPng();
    const stream = await client.images.edit({
      ...{ model, prompt: 'Hat', stream: true, partial_images: 1 },
      image: await toFile(image, 'a.png', { type: 'image/png' }),
    });
    const events = await collect(stream);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['image_edit.partial_image', 'image_edit.completed'],
    );
    const image_url = `data:image/png;base64,${image.toString('base64')}`;
    const answer = await post('/images/edits', { model, prompt: 'Hat', images: [{ image_url }] });
    assert.equal(answer.status, 200);
    const body = answer.body as unknown as OpenAI.ImagesResponse;
    assert.equal(body.data?.[0]?.b64_json, events[1]?.b64_json);
  });

  it('sandbox POST /v1/images/edits returns 400 naming the field at fault, and 413 for an image that is too large', async () => {
    const image = new Blob([await aPng()], { type: 'image/png' });
    const larger = new Blob([await aPng('512x512')], { type: 'image/png' });
    const form = (...entries: [string, string | Blob][]) => {
      const data = new FormData();
      for (const [name, value] of [['model', model], ['prompt', 'x'], ...entries] as [string, string | Blob][]) {
        data.append(name, value as string);
      }
      return data;
    };
    const data = 'data:text/plain;base64,aGVsbG8=';
    const cases: [string | null, unknown][] = [
      ['image', form()],
      ['image', form(['image', new Blob(['no image'])])],
      ['image', form(...Array(17).fill(['image[]', image]))],
      ['mask', form(['image', image], ['mask', larger])],
      ['mask', form(['image', image], ['mask', new Blob(['x'])])],
      ['picture', form(['image', image], ['picture', image])],
      ['n', form(['image', image], ['n', 'two'])],
      ['style', form(['image', image], ['style', 'vivid'])],
      ['input_fidelity', form(['image', image], ['input_fidelity', 'medium'])],
      ['images', { model, prompt: 'x' }],
      ['images', { model, prompt: 'x', images: [] }],
      ['images[0]', { model, prompt: 'x', images: [{ file_id: 'file-1' }] }],
      ['images[0]', { model, prompt: 'x', images: [{ image_url: data }] }],
      ['images[0].image_url', { model, prompt: 'x', images: [{ image_url: 'https://example.com/a.png' }] }],
    ];
    for (const [param, body] of cases) {
      const answer = await post('/images/edits', body);
      assert.deepEqual([answer.status, answer.body.error.param], [400, param], JSON.stringify(answer.body));
    }
    const many = await post('/images/edits', form(...Array(18).fill(['image[]', image])));
    assert.equal(many.status, 400);
    const large = await post('/images/edits', form(['image', new Blob([Buffer.alloc(51 * 1024 * 1024)])]));
    assert.equal(large.status, 413);
    assert.match(String(large.body.error.message), /Maximum content size limit \(52428800\) exceeded/);
  });

  it('sandbox POST /v1/images/edits returns 400 to a truncated form, and forgets one whose sender disconnects', async () => {
    const headers = { 'content-type': 'multipart/form-data; boundary=b' };
    const url = `${sandbox.url}/v1/images/edits`;
    const error = {
      message: 'Could not parse multipart form.',
      type: 'invalid_request_error',
      param: null,
      code: null,
    };
    const malformed = JSON.stringify({ error });
    const start = '--b\r\nContent-Disposition: form-data; name="n"';
    for (const body of ['', '--b', start, `${start}\r\n`, `${start}; filename="a"\r\n\r\nabc`, `${start}\r\n\r\n1`]) {
      const cut = await fetch(url, { method: 'POST', headers, body });
      assert.deepEqual([cut.status, await cut.text()], [400, malformed]);
    }
    const bare = await fetch(url, { method: 'POST', headers: { 'content-type': 'multipart/form-data' }, body: 'x' });
    assert.equal(bare.status, 400);
    const upload = httpRequest(url, { method: 'POST', headers, agent: false });
    upload.on('error', () => {});
    upload.write('--b\r\nContent-Disposition: form-data; name="user"\r\n\r\nleft\r\n');
    upload.write('--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\nbytes');
    await once(upload, 'socket');
    upload.destroy();
    assert.equal((await aPng()).readUInt8(0), 0x89);
    assert.deepEqual(await journal('left'), []);
  });
});

describe('sandbox POST /v1/images/variations', () => {
  it('sandbox POST /v1/images/variations returns variations of a square PNG', async () => {
    const image = await toFile(await aPng(), 'a.png', { type: 'image/png' });
    const answer = await client.images.createVariation({
      model,
      image,
      n: 2,
      size: '512x512',
      response_format: 'b64_json',
    });
    const images = (answer.data ?? []).map(({ b64_json }) => PNG.sync.read(bytesOf(b64_json)));
    assert.deepEqual(
      images.map(({ width, height }) => [width, height]),
      [
        [512, 512],
        [512, 512],
      ],
    );
    assert.notDeepEqual(images[0]?.data, images[1]?.data);
  });

  it('sandbox POST /v1/images/variations returns 400 for other images, sizes and JSON', async () => {
    const wide = bytesOf((await client.images.generate({ model, prompt: 'w', size: '1536x1024' })).data?.[0]?.b64_json);
    const refused = async (bytes: Buffer, size?: string) => {
      const image = await toFile(bytes, 'a.png', { type: 'image/png' });
      await assert.rejects(client.images.createVariation({ model, image, size: size as '256x256' }), { status: 400 });
    };
    await refused(wide);
    await refused(await aPng(), '1536x1024');
    assert.equal((await post('/images/variations', { image: 'x' })).status, 400);
  });
});

describe('speed and faults of sandbox images', () => {
  const ask = (sandboxOptions: object, more: object = {}) =>
    client.images.generate({ model, prompt: 'x', size: '256x256', ...{ sandbox: sandboxOptions }, ...more } as never);

  it('sandbox images fail with the requested fault: before the answer, in its middle, and until the client disconnects', async () => {
    await assert.rejects(ask({ fault: { kind: 'error', status: 503 } }), { status: 503 });
    await assert.rejects(ask({ fault: { kind: 'rate_limit' } }), { status: 429, code: 'rate_limit_exceeded' });
    await assert.rejects(ask({ fault: { kind: 'reset' } }), OpenAI.APIConnectionError);
    await assert.rejects(ask({ fault: { kind: 'eof' } }, { user: 'cut' }));
    await assert.rejects(ask({ fault: { kind: 'malformed' } }));
    assert.equal((await journal('cut'))[0]?.fault, 'eof');
    const silent = { fault: { kind: 'silence' } };
    const body = { model, prompt: 'x', sandbox: silent, user: 'silent' };
    await assert.rejects(client.images.generate(body as never, { timeout: 200 }), OpenAI.APIConnectionTimeoutError);
    const [entry] = await journal('silent');
    assert.deepEqual([entry?.fault, (await journal('silent')).length], ['silence', 1]);
  });

  it('sandbox images end a stream with a fault after the requested number of images', async () => {
    for (const kind of ['reset', 'error']) {
      const options = { fault: { kind, after_tokens: 2 }, tokens_per_second: 200, first_token_ms: 20 };
      const more = { size: '1024x1024', stream: true, partial_images: 3 };
      const stream = (await ask(options, more)) as unknown as AsyncIterable<unknown>;
      let events = 0;
      await assert.rejects(async () => {
        for await (const _ of stream) events += 1;
      });
      assert.equal(events, 2);
    }
  });

  it('sandbox images are counted as open while they are made, and are in the journal once', async () => {
    const controller = new AbortController();
    const body = { model, prompt: 'x', sandbox: { first_token_ms: 60_000 }, user: 'slow' };
    const asked = client.images.generate(body as never, { signal: controller.signal });
    const open = async () => (await (await fetch(`${sandbox.url}/__open?test_id=slow`)).json()) as { open: number };
    while ((await open()).open === 0);
    controller.abort();
    await assert.rejects(asked);
    while ((await open()).open > 0);
    assert.deepEqual(
      (await journal('slow')).map(({ ended, tokens }) => [ended, tokens]),
      [['client_closed', 0]],
    );
  });
});
