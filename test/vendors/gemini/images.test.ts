import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { type ImageJob, parseImageEnd, wireBodyOf } from '../../../shared/capabilities/image.ts';
import { executeImage } from '../../../workers/execute/execute-image.ts';
import { createCallerDownloader } from '../../../workers/http/download.ts';
import { createHttpClient } from '../../../workers/http/http-client.ts';
import { GeminiAnswerReader } from '../../../workers/vendors/gemini/answer-reader.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import { geminiImages } from '../../../workers/vendors/gemini/images.ts';
import type { CallFiles, Offering } from '../../../workers/vendors/vendor.ts';
import { pngBytes } from '../../support/image-files.ts';
import { routedModel } from '../../support/routed-model.ts';
import {
  bodyText,
  callOf,
  collect,
  type FixtureVendor,
  sendJson,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';

const apiKey = 'AIzaSyTest0123456789abcdefghijklmnopqrs';
const picture = pngBytes(8);
const base64 = picture.toString('base64');
const model = 'gemini-3.1-flash-image';

/** After https://ai.google.dev/gemini-api/docs/image-generation (November 2026). */
const answerOf = (parts: object[], candidate: object = {}) =>
  JSON.stringify({
    candidates: [{ content: { parts, role: 'model' }, finishReason: 'STOP', index: 0, ...candidate }],
    usageMetadata: {
      promptTokenCount: 265,
      candidatesTokenCount: 1120,
      thoughtsTokenCount: 80,
      totalTokenCount: 1465,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 7 },
        { modality: 'IMAGE', tokenCount: 258 },
      ],
    },
    modelVersion: model,
    responseId: 'mAitaLmkHPPlz7IPvtfUqQ4',
  });
const painted = answerOf([
  { inlineData: { mimeType: 'image/png', data: 'ZHJhZnQ=' }, thought: true },
  { text: 'Here it is.' },
  { inlineData: { mimeType: 'image/png', data: base64 }, thoughtSignature: 'Ehs=' },
]);
const usage = {
  input_tokens: 265,
  output_tokens: 1200,
  total_tokens: 1465,
  input_tokens_details: { text_tokens: 7, image_tokens: 258 },
  output_tokens_details: { text_tokens: 80, image_tokens: 1120 },
};

describe('images of Gemini', () => {
  let server: FixtureVendor;
  let vendor: Offering<'image'>;
  const saved: { type: string; content: Buffer }[] = [];
  const files: CallFiles = {
    open: async ({ blob }) => ({ content: Readable.from([Buffer.from(blob)]), bytes: blob.length }),
    save: async (content, type) => {
      saved.push({ type, content: Buffer.from(content as Uint8Array) });
      return { file: `blob-${saved.length}`, type, bytes: (content as Uint8Array).length };
    },
  };
  before(async () => {
    server = await startFixtureVendor();
    vendor = createGemini({ name: 'gemini', baseUrl: server.baseUrl, apiKey });
    server.answer((response) => sendJson(response, 200, painted));
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const jobOf = (parameters: object, more: Partial<ImageJob> = {}) => {
    const job: ImageJob = {
      ...{ task: 'generation', response_format: null, images: [], mask: null },
      ...more,
      parameters: { prompt: 'A cat.', ...parameters },
    };
    return JSON.stringify(job);
  };
  const paint = (parameters: object = {}, more: Partial<ImageJob> = {}) =>
    executeImage({
      ...{ vendor, endpoint: 'images.generations', keep: false, sink: collect() },
      row: routedModel(model),
      call: callOf({ model, stream: false, request: jobOf(parameters, more), files }),
    });
  const received = () => JSON.parse(server.requests.at(-1)?.body ?? '');

  it('Gemini images are requested alone, and returned without drafts in base64 with their usage', async () => {
    const { body, usage: counted } = await paint();
    assert.equal(server.requests.at(-1)?.url, `/v1/models/${model}:generateContent`);
    assert.deepEqual(received(), {
      contents: [{ role: 'user', parts: [{ text: 'A cat.' }] }],
      generationConfig: { responseModalities: ['IMAGE'] },
    });
    const { created, ...wire } = JSON.parse(wireBodyOf(bodyText(body)) ?? '');
    assert.ok(Math.abs(created - Date.now() / 1000) < 60);
    assert.deepEqual(wire, { data: [{ b64_json: base64 }], output_format: 'png', usage });
    assert.deepEqual(counted, usage);
  });

  it('Gemini images have a usage only if it counts the image, which the total may do alone', async () => {
    const answerWith = (usageMetadata: object) => {
      const answer = { ...(JSON.parse(painted) as object), usageMetadata };
      server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
    };
    answerWith({ promptTokenCount: 7, totalTokenCount: 1297 });
    const { usage: counted } = await paint();
    assert.deepEqual([counted?.input_tokens, counted?.output_tokens], [7, 1290]);
    assert.deepEqual(counted?.output_tokens_details, { text_tokens: 0, image_tokens: 1290 });
    for (const metadata of [{}, { promptTokenCount: 7 }, { promptTokenCount: 7, totalTokenCount: 7 }]) {
      answerWith(metadata);
      const { body, usage: none } = await paint();
      assert.deepEqual([none, JSON.parse(wireBodyOf(bodyText(body)) ?? '').usage], [null, undefined]);
    }
    server.answer((response) => sendJson(response, 200, painted));
  });

  it('Gemini images are stored when a link is wanted', async () => {
    const { body } = await paint({}, { response_format: 'url' });
    assert.deepEqual(parseImageEnd(bodyText(body)).data, [
      { file: 'blob-1', type: 'image/png', bytes: picture.length },
    ]);
    assert.deepEqual(saved, [{ type: 'image/png', content: picture }]);
  });

  it('Gemini images are edited from uploads and data URLs, which precede the prompt', async () => {
    const uploads = ['one', 'two'].map((file) => ({ file, name: `${file}.png`, type: 'image/png', bytes: 3 }) as never);
    await paint({}, { task: 'edit', images: uploads });
    const inline = (data: string) => ({ inlineData: { mimeType: 'image/png', data } });
    const [one, two] = ['one', 'two'].map((text) => inline(Buffer.from(text).toString('base64')));
    assert.deepEqual(received().contents[0].parts, [one, two, { text: 'A cat.' }]);
    await paint({}, { task: 'edit', images: [{ image_url: `data:image/png;base64,${base64}` }] });
    assert.deepEqual(received().contents[0].parts, [inline(base64), { text: 'A cat.' }]);
  });

  it('Gemini images are edited from uploads whose client names no type, as what their bytes are', async () => {
    for (const [bytes, mimeType] of [
      ['RIFF1234WEBPVP8 ', 'image/webp'],
      ['GIF89a', 'image/gif'],
      ['of no known kind', 'image/png'],
    ] as const) {
      const upload = { file: bytes, name: 'picture', type: 'application/octet-stream', bytes: bytes.length } as never;
      await paint({}, { task: 'edit', images: [upload] });
      const data = Buffer.from(bytes).toString('base64');
      assert.deepEqual(received().contents[0].parts[0], { inlineData: { mimeType, data } });
    }
  });

  it('Gemini images are edited from links, but not from this machine', async () => {
    const web = await startFixtureVendor();
    web.answer((response) => response.writeHead(200, { 'content-type': 'image/webp' }).end('webp'));
    const images = [{ image_url: `${web.baseUrl}/a.webp` }];
    const asked = server.requests.length;
    await assert.rejects(paint({}, { task: 'edit', images }), { status: 400, param: 'images[0].image_url' });
    assert.deepEqual([server.requests.length, web.requests.length], [asked, 0]);
    const http = createHttpClient({ vendor: 'gemini', baseUrl: server.baseUrl, headers: {}, secret: apiKey });
    const download = createCallerDownloader({ trustedOrigin: new URL(web.baseUrl).origin });
    const image = geminiImages(http, new GeminiAnswerReader('gemini', apiKey), download);
    await image(callOf({ model, stream: false, request: jobOf({}, { task: 'edit', images }), files }), collect());
    const data = Buffer.from('webp').toString('base64');
    assert.deepEqual(received().contents[0].parts[0], { inlineData: { mimeType: 'image/webp', data } });
    await http.close();
    await web.close();
  });

  it('Gemini images use the nearest format for a size, and reject a size that is near none', async () => {
    const sizes: Record<string, object> = {
      '1024x1024': { aspectRatio: '1:1' },
      '1536x1024': { aspectRatio: '3:2' },
      '1024x1536': { aspectRatio: '2:3' },
      '1792x1024': { aspectRatio: '16:9' },
      '1024x1792': { aspectRatio: '9:16' },
      '1184x864': { aspectRatio: '4:3' },
      '896x1152': { aspectRatio: '4:5' },
      '1536x672': { aspectRatio: '21:9' },
      '2048x2048': { aspectRatio: '1:1', imageSize: '2K' },
      '5504x3072': { aspectRatio: '16:9', imageSize: '4K' },
    };
    for (const [size, imageConfig] of Object.entries(sizes)) {
      await paint({ size });
      assert.deepEqual(received().generationConfig, { responseModalities: ['IMAGE'], imageConfig }, size);
    }
    await paint({ size: 'auto' });
    assert.deepEqual(received().generationConfig, { responseModalities: ['IMAGE'] });
    for (const size of ['1000x100', '1024x0', 'large', '8192x8192', '1x3']) {
      await assert.rejects(paint({ size }), { status: 400, param: 'size' }, size);
    }
  });

  it('Gemini images accept default parameters, and reject the others by name', async () => {
    const style = { user: 'u', moderation: 'auto', quality: 'standard', style: 'vivid', input_fidelity: 'low' };
    const usual = { n: 1, background: 'opaque', output_format: 'png', output_compression: 100, partial_images: 0 };
    await paint({ ...style, ...usual, size: null });
    assert.deepEqual(received().generationConfig, { responseModalities: ['IMAGE'] });
    const asked = server.requests.length;
    const others = {
      n: 2,
      background: 'transparent',
      output_format: 'webp',
      output_compression: 50,
      partial_images: 1,
    };
    for (const [name, value] of Object.entries({ ...others, quality: 'high', seed: 5, constructor: 1 })) {
      await assert.rejects(paint({ [name]: value }), { status: 400, param: name }, name);
    }
    const image_url = `data:image/png;base64,${base64}`;
    await assert.rejects(paint({}, { task: 'edit', images: [{ image_url }], mask: { image_url } }), { param: 'mask' });
    await assert.rejects(paint({}, { task: 'variation', images: [{ image_url }] }), { status: 400, param: 'model' });
    assert.equal(server.requests.length, asked);
  });

  it('Gemini images return 400 for a policy rejection, and 500 when there is no image for another reason', async () => {
    const blocked = JSON.stringify({ promptFeedback: { blockReason: 'IMAGE_SAFETY' } });
    const reasons = ['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'PROHIBITED_CONTENT', 'IMAGE_RECITATION'];
    for (const body of [blocked, ...reasons.map((finishReason) => answerOf([], { finishReason }))]) {
      server.answer((response) => sendJson(response, 200, body));
      await assert.rejects(paint(), { status: 400, vendorCode: 'content_policy_violation' });
    }
    const tiff = { inlineData: { mimeType: 'image/tiff', data: 'AAAA' } };
    const bodies = ['', '{}', '{"candidates":[5]}', answerOf([{ text: 'I cannot.' }]), answerOf([tiff])];
    for (const body of [
      ...bodies,
      answerOf([], { finishReason: 'NO_IMAGE' }),
      answerOf([], { finishReason: 'IMAGE_OTHER' }),
    ]) {
      server.answer((response) => sendJson(response, 200, body));
      await assert.rejects(paint(), { code: 'server_error' }, body);
    }
  });
});
