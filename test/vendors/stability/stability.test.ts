import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import { PNG } from 'pngjs';
import type { ImageJob } from '../../../shared/capabilities/image.ts';
import { createCallerDownloader } from '../../../workers/http/download.ts';
import { createHttpClient } from '../../../workers/http/http-client.ts';
import { readFailure } from '../../../workers/routing/failure.ts';
import { stabilityImages } from '../../../workers/vendors/stability/images.ts';
import { createStability } from '../../../workers/vendors/stability/stability.ts';
import type { VendorCall } from '../../../workers/vendors/vendor.ts';
import {
  DirectImageBench,
  type DirectImageVendor,
  describeDirectImageVendor,
} from '../contracts/direct-image-vendor-contract.ts';
import { callOf, collect, type ReceivedRequest, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { apiKey, imageJob, png } from '../contracts/image-vendor-contract.ts';
import { memoryFiles } from '../contracts/memory-files.ts';

// As documented at https://platform.stability.ai/docs/api-reference (forms, `application/json; type=image/png`, finish_reason,
// errors), by its OpenAPI document as of 2025-06 in https://github.com/tadasant/mcp-server-stability-ai
// (src/stabilityAi/types.ts), read on 2026-11-21. The vendor has no npm SDK: these fixtures rest on its documents alone.
const made = (image: string, reason = 'SUCCESS') => ({ image, finish_reason: reason, seed: 343940597 });
const refusal = (name: string, ...errors: string[]) => ({ id: 'a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4', name, errors });

async function formOf({ bytes, headers }: ReceivedRequest): Promise<FormData> {
  const type = String(headers['content-type']);
  return await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData();
}

/** The fields of a form that has no files. */
function fieldsOf({ body }: ReceivedRequest): Record<string, unknown> {
  const parts = body.matchAll(/name="([^"]+)"\r\n\r\n([^\r]*)\r\n/g);
  return Object.fromEntries([...parts].map(([, name, value]) => [name, value]));
}

/** A PNG of these unpacked rows. */
function pngOf([width = 0, height = 0, ...rest]: number[], rows: Buffer): Buffer {
  const header = Buffer.from([...Array(8).fill(0), ...rest, 0, 0, 0].slice(0, 13));
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  const chunks = Object.entries({ IHDR: header, IDAT: deflateSync(rows), IEND: Buffer.alloc(0) }).map(
    ([type, data]) => {
      const bytes = Buffer.concat([Buffer.alloc(4), Buffer.from(type), data, Buffer.alloc(4)]);
      bytes.writeUInt32BE(data.length, 0);
      bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), bytes.length - 4);
      return bytes;
    },
  );
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...chunks]);
}

const wire: DirectImageVendor = {
  create: (baseUrl) => createStability({ name: 'stability', baseUrl, apiKey }),
  model: 'stable-image-ultra',
  made,
  refusal: (_status, message) => refusal('bad_request', message),
  read: fieldsOf,
  asked: { prompt: 'A lighthouse', seed: '7' },
};

describeDirectImageVendor('Stability AI', wire);

describe('images of Stability AI', () => {
  const bench = new DirectImageBench(wire);

  const upload = (file: string) => ({ file, name: `${file}.png`, type: 'image/png', bytes: 3 }) as never;
  const last = (): ReceivedRequest => bench.server.requests.at(-1) ?? assert.fail('nothing was sent');
  const make = async (model: string, parameters: object, job: Partial<ImageJob> = {}, uploads = {}) => {
    bench.answer();
    const { files } = memoryFiles({ one: png, ...uploads });
    return await bench.make({ model, request: imageJob(parameters, job), files });
  };

  it('Stability AI images are requested at the path of their service, with a bearer key and JSON accepted', async () => {
    for (const [model, path, fields] of [
      ['stable-image-ultra', 'generate/ultra', {}],
      ['stable-image-core', 'generate/core', {}],
      ['sd3.5-large', 'generate/sd3', { model: 'sd3.5-large' }],
      ['sd3.5-large-turbo', 'generate/sd3', { model: 'sd3.5-large-turbo' }],
    ] as const) {
      await make(model, {});
      const { method, url, headers, bytes } = last();
      assert.deepEqual([method, url], ['POST', `/v2beta/stable-image/${path}`]);
      assert.deepEqual([headers.authorization, headers.accept], [`Bearer ${apiKey}`, 'application/json']);
      assert.match(String(headers['content-type']), /^multipart\/form-data; boundary=/);
      assert.equal(headers['content-length'], String(bytes.length));
      assert.deepEqual(bench.asked, { ...fields, prompt: 'A lighthouse' });
    }
  });

  it("Stability AI images have the aspect ratio of a size, a format and the vendor's own fields", async () => {
    const own = { negative_prompt: 'people', seed: 5, cfg_scale: 4.5 };
    await make('sd3.5-medium', { ...own, size: '1536x1024', output_format: 'jpeg' });
    const { prompt: _, model: __, ...fields } = bench.asked as Record<string, unknown>;
    assert.deepEqual(fields, {
      ...{ negative_prompt: 'people', seed: '5', cfg_scale: '4.5' },
      ...{ aspect_ratio: '3:2', output_format: 'jpeg' },
    });
    for (const [size, shape] of [
      ['1024x1024', '1:1'],
      ['1024x1792', '9:16'],
      ['1792x1024', '16:9'],
      ['1024x1536', '2:3'],
      ['640x1536', '9:21'],
    ] as const) {
      await make('stable-image-core', { size, output_format: 'webp' });
      assert.deepEqual(bench.asked, { prompt: 'A lighthouse', aspect_ratio: shape, output_format: 'webp' });
    }
  });

  it('Stability AI images report their seed and format', async () => {
    const { body, usage } = await make('stable-image-core', { output_format: 'webp' }, { response_format: 'b64_json' });
    const { data, output_format: format } = JSON.parse(body);
    assert.deepEqual([data, format, usage], [[{ seed: 343940597, b64_json: png.toString('base64') }], 'webp', null]);
  });

  it('Stability AI images are edited with a strength, which the vendor requires', async () => {
    const edit = { task: 'edit', images: [upload('one')] } as const;
    await make('sd3.5-large', {}, edit);
    const form = await formOf(last());
    const { image, ...fields } = Object.fromEntries(form.entries());
    assert.deepEqual(fields, {
      ...{ model: 'sd3.5-large', mode: 'image-to-image', strength: '0.65', prompt: 'A lighthouse' },
    });
    assert.ok(image instanceof File);
    assert.deepEqual([image.name, image.type, Buffer.from(await image.arrayBuffer())], ['one.png', 'image/png', png]);
    const data = `data:image/webp;base64,${png.toString('base64')}`;
    await make('stable-image-ultra', { strength: 0.3, size: '1024x1024' }, { ...edit, images: [{ image_url: data }] });
    const other = await formOf(last());
    assert.deepEqual([other.get('strength'), other.get('aspect_ratio'), other.get('mode')], ['0.3', '1:1', null]);
    const file = other.get('image') as File;
    // Whatever its URL says.
    assert.deepEqual([file.type, Buffer.from(await file.arrayBuffer())], ['image/png', png]);
  });

  it("Stability AI inpainting inverts OpenAI's transparent mask to a white one", async () => {
    const mask = new PNG({ width: 70, height: 130 });
    const alphas = Array.from({ length: 70 * 130 }, (_, at) => (at * at + 3 * at) % 256);
    for (const [at, alpha] of alphas.entries()) mask.data.set([(at * 7) % 256, 1, 2, alpha], at * 4);
    const expected = alphas.map((alpha) => 255 - alpha);
    const rowsOf = (pixel: (alpha: number) => number[]): Buffer =>
      Buffer.concat(
        Array.from({ length: 130 }, (_, row) =>
          Buffer.from([0, ...alphas.slice(row * 70, row * 70 + 70).flatMap(pixel)]),
        ),
      );
    for (const bytes of [
      ...[0, 1, 2, 3, 4, -1].map((filterType) => PNG.sync.write(mask, { filterType })),
      pngOf(
        [70, 130, 8, 4],
        rowsOf((alpha) => [9, alpha]),
      ),
      pngOf(
        [70, 130, 16, 6],
        rowsOf((alpha) => [1, 2, 3, 4, 5, 6, alpha, 7]),
      ),
    ]) {
      const job = { task: 'edit', images: [upload('one')], mask: upload('mask') } as const;
      await make('stable-image-inpaint', { grow_mask: 3 }, job, { mask: bytes });
      assert.equal(last().url, '/v2beta/stable-image/edit/inpaint');
      const form = await formOf(last());
      assert.deepEqual([...form.keys()], ['grow_mask', 'prompt', 'mask', 'image']);
      const sent = PNG.sync.read(Buffer.from(await (form.get('mask') as File).arrayBuffer()));
      assert.deepEqual([sent.width, sent.height], [70, 130]);
      const grey = expected.map((_, at) => sent.data[at * 4]);
      assert.deepEqual(grey, expected);
    }
  });

  it('Stability AI inpainting uses the transparency of the image itself without a mask', async () => {
    await make('stable-image-inpaint', {}, { task: 'edit', images: [upload('one')] });
    assert.deepEqual([...(await formOf(last())).keys()], ['prompt', 'image']);
  });

  it('Stability AI rejects unsupported image parameters by name, without a call', async () => {
    const edit = (images: ImageJob['images'], mask: ImageJob['mask'] = null) =>
      imageJob({}, { task: 'edit', images, mask });
    const one = upload('one');
    const sized = imageJob({ size: '1024x1024' }, { task: 'edit', images: [one] });
    for (const [model, request, param] of [
      ['stable-image-core', edit([one]), 'image'],
      ['sd3.5-large', edit([one, one]), 'image'],
      ['sd3.5-large', edit([one], one), 'mask'],
      ['sd3.5-large', sized, 'size'],
      ['stable-image-inpaint', sized, 'size'],
      ['sd3.5-large', imageJob({ output_format: 'webp' }), 'output_format'],
      ['stable-image-ultra', imageJob({ n: 2 }), 'n'],
      ['stable-image-ultra', imageJob({ size: '2048x2048' }), 'size'],
      ['stable-image-inpaint', imageJob(), 'model'],
      ['sd3.5-large', edit([{ image_url: 'data:image/png,x' }]), 'images[0].image_url'],
    ] as const) {
      bench.answer();
      const { files } = memoryFiles({ one: png });
      const refused = { code: 'invalid_request_error', param };
      await assert.rejects(bench.make({ model, request, files }), refused, `${model} ${param}`);
      assert.equal(bench.server.requests.length, 0);
    }
  });

  it('Stability AI rejects an unreadable mask without a call', async () => {
    const rows = Buffer.alloc(8 * 33);
    const whole = pngOf([8, 8, 8, 6], rows);
    const oddFilter = pngOf([8, 8, 8, 6], Buffer.from(rows).fill(9, 33, 34));
    const masks = [
      ...[png, Buffer.from('GIF89a'), whole.subarray(0, 40), oddFilter],
      // Of colours without alpha, with a palette, of four bits, interlaced, and of other sizes than it says.
      ...[pngOf([8, 8, 8, 2], rows), pngOf([8, 8, 8, 3], rows), pngOf([8, 8, 4, 4], rows)],
      ...[pngOf([8, 8, 8, 6, 0, 0, 1], rows), pngOf([8, 7, 8, 6], rows), pngOf([8, 9, 8, 6], rows)],
      ...[pngOf([60_000, 60_000, 8, 6], rows), pngOf([0, 8, 8, 6], Buffer.alloc(8))],
    ];
    for (const mask of masks) {
      const job = { task: 'edit', images: [upload('one')], mask: upload('mask') } as const;
      const made = make('stable-image-inpaint', {}, job, { mask });
      await assert.rejects(made, { code: 'invalid_request_error', param: 'mask' }, mask.toString('hex'));
      assert.equal(bench.server.requests.length, 0);
    }
  });

  it('Stability AI rejects a mask with more pixels than the vendor accepts', async () => {
    const mask = pngOf([4000, 2400, 8, 4], Buffer.alloc(2400 * 8001));
    const made = make(
      'stable-image-inpaint',
      {},
      { task: 'edit', images: [upload('one')], mask: upload('mask') },
      { mask },
    );
    await assert.rejects(made, { param: 'mask', message: /9437184 pixels/ });
    assert.equal(bench.server.requests.length, 0);
  });

  it('Stability AI rejects a mask that is too long without reading it to its end', async () => {
    let read = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      for (; ; read++) yield Buffer.alloc(1024 * 1024);
    }
    const files = { ...memoryFiles().files, open: async () => ({ content: Readable.from(endless()), bytes: 1 }) };
    const request = imageJob({}, { task: 'edit', images: [upload('one')], mask: upload('mask') });
    bench.answer();
    const made = bench.make({ model: 'stable-image-inpaint', request, files });
    await assert.rejects(made, { code: 'invalid_request_error', param: 'mask' });
    assert.ok(read < 70, `${read} MiB`);
    assert.equal(bench.server.requests.length, 0);
  });

  it('Stability AI images are edited from links, but not from this machine', async () => {
    const web = await startFixtureVendor();
    const http = createHttpClient({ vendor: 'stability', baseUrl: bench.server.baseUrl, headers: {}, secret: apiKey });
    try {
      web.answer((response) => response.writeHead(200, { 'content-type': 'image/webp' }).end(png));
      const job = { task: 'edit', images: [{ image_url: `${web.baseUrl}/a.webp` }] } as const;
      await assert.rejects(make('sd3.5-large', {}, job), { status: 400, param: 'images[0].image_url' });
      assert.deepEqual([bench.server.requests.length, web.requests.length], [0, 0]);
      const image = stabilityImages(http, createCallerDownloader({ trustedOrigin: new URL(web.baseUrl).origin }));
      const { files } = memoryFiles();
      await image(callOf({ model: 'sd3.5-large', stream: false, request: imageJob({}, job), files }), collect());
      const file = (await formOf(last())).get('image') as File;
      assert.deepEqual([file.type, Buffer.from(await file.arrayBuffer())], ['image/png', png]);
    } finally {
      await http.close();
      await web.close();
    }
  });

  it('Stability AI images report a content filter rejection of the request or the result', async () => {
    const blurred = JSON.stringify(made(png.toString('base64'), 'CONTENT_FILTERED'));
    const flagged = JSON.stringify(refusal('content_moderation', 'Your request was flagged.'));
    for (const [status, body, message] of [
      [200, blurred, /content rules/],
      [403, flagged, /^Your request was flagged\.$/],
      [403, JSON.stringify(refusal('content_moderation')), /content rules/],
    ] as const) {
      bench.answer((response) => sendJson(response, status, body));
      const error = await bench.make().catch((thrown: unknown) => thrown);
      const { code, vendorCode, message: said } = error as Record<string, string>;
      assert.deepEqual([code, vendorCode], ['invalid_request_error', 'content_policy_violation']);
      assert.match(said ?? '', message);
      assert.equal(readFailure(error, true), undefined);
    }
  });

  it('Stability AI errors name the field at fault', async () => {
    bench.answer((response) =>
      sendJson(response, 400, JSON.stringify(refusal('bad_request', 'seed: must be a number'))),
    );
    const refused = { param: 'seed', message: 'seed: must be a number', vendorCode: 'bad_request' };
    await assert.rejects(bench.make(), refused);
  });

  it('Stability AI images leave no upload open, however they end', async () => {
    const opened: { destroyed: boolean }[] = [];
    const files = (): VendorCall['files'] => {
      const { files } = memoryFiles({ one: png });
      const open: VendorCall['files']['open'] = async (id) => {
        const file = await files.open(id);
        opened.push(file.content);
        return file;
      };
      return { ...files, open };
    };
    const request = imageJob({}, { task: 'edit', images: [upload('one')] });
    const reset = (): void => bench.server.reset();
    for (const answer of [undefined, reset]) {
      bench.answer(answer);
      await bench.make({ request, files: files() }).catch(() => undefined);
    }
    await assert.rejects(bench.make({ request, files: files(), signal: AbortSignal.abort() }), { code: 'cancelled' });
    await new Promise(setImmediate);
    assert.deepEqual(
      opened.map(({ destroyed }) => destroyed),
      [true, true, true],
    );
  });
});
