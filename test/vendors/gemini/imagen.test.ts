import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import {
  DirectImageBench,
  type DirectImageVendor,
  describeDirectImageVendor,
} from '../contracts/direct-image-vendor-contract.ts';
import { sendJson } from '../contracts/fixture-vendor.ts';
import { apiKey, imageJob, png } from '../contracts/image-vendor-contract.ts';

// After https://ai.google.dev/gemini-api/docs/imagen and the types of @google/genai 1.30.0, whose `generateImages` was driven
// against these answers by hand on 2026-11-21; versions of today have it no more.
const predictionOf = (image: string) => ({ mimeType: 'image/png', bytesBase64Encoded: image });
const names: Record<number, string> = { 400: 'INVALID_ARGUMENT', 429: 'RESOURCE_EXHAUSTED', 503: 'UNAVAILABLE' };

const wire: DirectImageVendor = {
  create: (baseUrl) => createGemini({ name: 'gemini', baseUrl, apiKey }),
  model: 'imagen-4.0-generate-001',
  made: (image) => ({ predictions: [predictionOf(image)] }),
  refusal: (status, message) => ({ error: { code: status, message, status: names[status] ?? 'UNKNOWN' } }),
  read: ({ body }) => JSON.parse(body),
  asked: {
    instances: [{ prompt: 'A lighthouse' }],
    parameters: { seed: 7, sampleCount: 1, includeRaiReason: true },
  },
};

describeDirectImageVendor('Imagen', wire);

describe('images of Imagen', () => {
  const bench = new DirectImageBench(wire);

  const parametersOf = async (parameters: object, model = wire.model): Promise<unknown> => {
    bench.answer();
    await bench.make({ model, request: imageJob(parameters) });
    const {
      sampleCount,
      includeRaiReason: _,
      ...rest
    } = (bench.asked as { parameters: Record<string, unknown> }).parameters;
    return { ...rest, ...(sampleCount !== 1 && { sampleCount }) };
  };

  it('Imagen images are predicted at the path of their model, with the key in a header', async () => {
    bench.answer();
    await bench.make({ model: 'imagen-4.0-ultra-generate-001' });
    const [{ method, url, headers } = assert.fail()] = bench.server.requests;
    assert.deepEqual([method, url], ['POST', '/models/imagen-4.0-ultra-generate-001:predict']);
    assert.equal(headers['x-goog-api-key'], apiKey);
  });

  it("Imagen images have a number, a shape, a resolution and a format in Google's terms", async () => {
    assert.deepEqual(await parametersOf({ n: 4, personGeneration: 'dont_allow' }), {
      ...{ sampleCount: 4, personGeneration: 'dont_allow' },
    });
    for (const [size, expected] of [
      ['1024x1024', { aspectRatio: '1:1' }],
      ['1792x1024', { aspectRatio: '16:9' }],
      ['1024x1792', { aspectRatio: '9:16' }],
      ['896x1280', undefined],
      ['960x1280', { aspectRatio: '3:4' }],
      ['2048x2048', { aspectRatio: '1:1', sampleImageSize: '2K' }],
      ['4096x4096', undefined],
    ] as const) {
      if (expected === undefined) await assert.rejects(parametersOf({ size }), { param: 'size' }, size);
      else assert.deepEqual(await parametersOf({ size }), expected, size);
    }
    assert.deepEqual(await parametersOf({ output_format: 'jpeg', output_compression: 80 }), {
      outputOptions: { mimeType: 'image/jpeg', compressionQuality: 80 },
    });
    assert.deepEqual(await parametersOf({ output_format: 'png', output_compression: 100 }), {
      outputOptions: { mimeType: 'image/png' },
    });
  });

  it('Imagen rejects unsupported image parameters by name, without a call', async () => {
    bench.answer();
    const image = { image_url: `data:image/png;base64,${png.toString('base64')}` };
    for (const [request, param] of [
      [imageJob({ output_format: 'webp' }), 'output_format'],
      [imageJob({ sampleCount: 2 }), 'sampleCount'],
      [imageJob({}, { task: 'edit', images: [image] }), 'image'],
    ] as const) {
      await assert.rejects(bench.make({ request }), { code: 'invalid_request_error', param });
    }
    assert.equal(bench.server.requests.length, 0);
  });

  it('Imagen returns the images that were not filtered, and the reason when all were', async () => {
    const reason = 'Unable to show generated images: they may be against our policies. Support codes: 29310472';
    const image = png.toString('base64');
    const answer = (...predictions: object[]): void =>
      bench.answer((response) => sendJson(response, 200, JSON.stringify({ predictions })));
    const request = imageJob({ n: 2 }, { response_format: 'b64_json' });
    answer({ raiFilteredReason: reason }, predictionOf(image));
    const { body } = await bench.make({ request });
    assert.deepEqual(JSON.parse(body).data, [{ b64_json: image }]);
    answer({ raiFilteredReason: reason }, { raiFilteredReason: reason });
    const refused = { code: 'invalid_request_error', vendorCode: 'content_policy_violation', message: reason };
    await assert.rejects(bench.make({ request }), refused);
  });
});
