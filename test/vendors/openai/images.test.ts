import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { imageView } from '../../../api/endpoints/images/image-view.ts';
import { type ImageJob, type ImageResult, parseImageEnd, wireBodyOf } from '../../../shared/capabilities/image.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { executeImage } from '../../../workers/execute/execute-image.ts';
import { type AnswerHolder, freeBytes } from '../../../workers/http/answer-memory.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import type { CallFiles, FrameSink, Vendor, VendorAnswer, VendorCall } from '../../../workers/vendors/vendor.ts';
import { eventually } from '../../support/eventually.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import {
  beginStream,
  callOf,
  collect,
  cut,
  type FixtureVendor,
  inText,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('the rest of an image')]);
const jpeg = Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), Buffer.from('the rest of a photograph')]);
const base64 = png.toString('base64');

const usage = {
  total_tokens: 100,
  input_tokens: 50,
  output_tokens: 50,
  input_tokens_details: { text_tokens: 10, image_tokens: 40 },
};
/** As OpenAI's reference shows it. */
const answered = {
  created: 1713833628,
  background: 'opaque',
  output_format: 'png',
  quality: 'high',
  size: '1024x1024',
};

/** Files of one call, kept in memory. */
function memoryFiles(uploads: Record<string, string> = {}) {
  const saved: { type: string; content: Buffer }[] = [];
  const opened: Readable[] = [];
  const files: CallFiles = {
    open: async ({ blob }) => {
      const content = uploads[blob];
      if (content === undefined) throw new Error('no such file');
      const stream = Readable.from([Buffer.from(content)]);
      opened.push(stream);
      return { content: stream, bytes: Buffer.byteLength(content) };
    },
    save: async (content, type) => {
      const chunks: Uint8Array[] = [];
      if (content instanceof Uint8Array) chunks.push(content);
      else for await (const chunk of content) chunks.push(chunk);
      saved.push({ type, content: Buffer.concat(chunks) });
      return { file: `file-${saved.length}`, type, bytes: saved.at(-1)?.content.length ?? 0 };
    },
  };
  return { files, saved, opened };
}

function jobText(job: Partial<ImageJob> = {}): string {
  const parameters = { prompt: 'A lighthouse' };
  return JSON.stringify({ task: 'generation', response_format: null, images: [], mask: null, parameters, ...job });
}

const rowWith = (responseFormat: boolean) =>
  madeUpModel({
    ...{ id: 'painter', capability: 'image', routes: [{ vendor: 'openai', model: 'painter-1' }] },
    image: { tasks: ['generation', 'edit', 'variation'], most: 10, partial: true, responseFormat },
  });

const upload = (file: string, name = `${file}.png`) => ({ file, name, type: 'image/png', bytes: 9 }) as never;

describe('images of the OpenAI dialect', () => {
  let server: FixtureVendor;
  let vendor: Vendor;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-test-0123456789abcdef' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });
  beforeEach(() => {
    server.requests.length = 0;
  });

  interface Asked {
    readonly job?: Partial<ImageJob>;
    readonly responseFormat?: boolean;
    readonly call?: Partial<VendorCall>;
    readonly sink?: FrameSink;
  }

  /** Runs an image job against what the server answers, as a worker does. */
  async function ask({ job, responseFormat = true, call, sink = collect() }: Asked = {}): Promise<VendorAnswer> {
    const whole = callOf({ model: 'painter-1', stream: false, request: jobText(job), ...call });
    const answer = await executeImage({
      vendor,
      row: rowWith(responseFormat),
      endpoint: 'images.generations',
      keep: false,
      call: whole,
      sink,
    });
    return inText(answer);
  }

  const answerJson = (body: object) =>
    server.answer((response, { method, url }) => {
      if (method === 'POST') return sendJson(response, 200, JSON.stringify(body));
      const content = url === '/photo' ? jpeg : png;
      response.writeHead(200, { 'content-type': url === '/photo' ? 'image/jpeg' : 'text/html' }).end(content);
    });
  const link = (path: string): string => new URL(path, server.baseUrl).href;
  const posted = () => server.requests.filter(({ method }) => method === 'POST');
  const endOf = ({ body }: VendorAnswer) => {
    const { is_wire: isWire, ...end } = JSON.parse(body);
    return { isWire, end };
  };

  it("OpenAI images sends the caller's response_format to a model that takes it, and url by default", async () => {
    answerJson({ ...answered, data: [{ b64_json: base64 }] });
    const wanted = [null, 'url', 'b64_json'] as const;
    for (const responseFormat of wanted) await ask({ job: { response_format: responseFormat }, call: memoryFiles() });
    assert.deepEqual(
      posted().map(({ body }) => JSON.parse(body).response_format),
      ['url', 'url', 'b64_json'],
    );
  });

  it('OpenAI images never sends response_format to a model without it, and returns base64 by default', async () => {
    answerJson({ ...answered, data: [{ b64_json: base64 }], usage });
    const parameters = { prompt: 'A lighthouse', n: 1, size: 'auto', vendor_option: { deep: true } };
    const answer = await ask({ responseFormat: false, job: { parameters } });
    assert.deepEqual(JSON.parse(posted()[0]?.body ?? ''), { model: 'painter-1', ...parameters });
    assert.equal(posted()[0]?.url, '/v1/images/generations');
    assert.deepEqual(endOf(answer), { isWire: true, end: { ...answered, data: [{ b64_json: base64 }], usage } });
    assert.deepEqual(answer.usage, usage);
    const { files, saved } = memoryFiles();
    const linked = await ask({ responseFormat: false, job: { response_format: 'url' }, call: { files } });
    assert.equal('response_format' in JSON.parse(posted()[1]?.body ?? ''), false);
    const data = [{ file: 'file-1', type: 'image/png', bytes: png.length }];
    assert.deepEqual(endOf(linked), { isWire: undefined, end: { ...answered, data, usage } });
    assert.deepEqual(saved, [{ type: 'image/png', content: png }]);
  });

  it('OpenAI images passes base64 on as it came, with what else its vendor says, and stores it for a link', async () => {
    const painted = { b64_json: png.toString('base64'), revised_prompt: 'A “tall” lighthouse' };
    const said = { created: 7, data: [painted, { b64_json: 'QUJDRA', is_wire: true }], output_format: 'png' };
    server.answer((response) => sendJson(response, 200, JSON.stringify(said, null, 2)));
    const { body, quantities, memory } = await ask({ responseFormat: false });
    assert.deepEqual(JSON.parse(wireBodyOf(body) ?? ''), said);
    assert.ok(memory?.includes(painted.b64_json), 'what may be released once it is stored');
    assert.equal(body.includes('\n'), false);
    assert.equal(quantities?.images, 2);
    const { files, saved } = memoryFiles();
    answerJson({ data: [painted] });
    await ask({ job: { response_format: 'url' }, call: { files } });
    assert.ok(saved[0]?.content.equals(png));
  });

  it('OpenAI images reads base64 whose JSON is escaped, has a prefix or line breaks, and lets none of its vendor break the answer', async () => {
    const base64 = Buffer.concat([png, Buffer.alloc(300, 7)]).toString('base64');
    const escaped = `{"data":[{"b64_json":"${base64.replace('A', '\\u0041')}"},{"b64_json":"data:image/png;base64,${base64}"}]}`;
    server.answer((response) => sendJson(response, 200, escaped));
    const { body } = await ask({ responseFormat: false });
    assert.deepEqual(parseImageEnd(body).data, [{ b64_json: base64 }, { b64_json: base64 }]);
    for (const broken of [`${base64}\\n`, `${base64}\\",\\"usage\\":{},\\"x\\":\\"`]) {
      server.answer((response) => sendJson(response, 200, `{"data":[{"b64_json":"${broken}"}]}`));
      const { data } = parseImageEnd((await ask({ responseFormat: false })).body);
      assert.deepEqual(data, [{ b64_json: JSON.parse(`"${broken}"`) }]);
    }
    for (const number of [0, 7, -1]) {
      answerJson({ data: [{ b64_json: number }] });
      await assert.rejects(ask({ responseFormat: false }), /an image that is empty/);
    }
  });

  it('OpenAI images fetches and stores linked images, and keeps the links private', async () => {
    answerJson({
      created: 7,
      data: [{ url: link('/photo'), revised_prompt: 'A tall lighthouse' }, { url: link('/x') }],
    });
    const { files, saved } = memoryFiles();
    const answer = await ask({ job: { response_format: 'url', parameters: { prompt: 'x', n: 2 } }, call: { files } });
    assert.deepEqual(
      saved.map(({ type, content }) => [type, content.equals(type === 'image/jpeg' ? jpeg : png)]),
      // What says that it is HTML is stored as an image all the same: its link opens in browsers.
      [
        ['image/jpeg', true],
        ['image/png', true],
      ],
    );
    const data = [
      { revised_prompt: 'A tall lighthouse', file: 'file-1', type: 'image/jpeg', bytes: jpeg.length },
      { file: 'file-2', type: 'image/png', bytes: png.length },
    ];
    assert.deepEqual(endOf(answer).end, { created: 7, data });
    assert.ok(!answer.body.includes('127.0.0.1'));
    assert.equal(answer.usage, null);
  });

  it('OpenAI images encodes a linked image as base64 on request', async () => {
    answerJson({ created: 7, data: [{ url: link('/a') }] });
    const answer = await ask({ job: { response_format: 'b64_json' } });
    assert.deepEqual(endOf(answer).end.data, [{ b64_json: base64 }]);
  });

  it("OpenAI images does not follow a link into this machine's network", async () => {
    const elsewhere = await startFixtureVendor();
    try {
      for (const url of [elsewhere.baseUrl, 'http://169.254.169.254/latest/meta-data', 'http://[::1]/', 'file:///x']) {
        answerJson({ created: 7, data: [{ url }] });
        await assert.rejects(ask(), { code: 'server_error', message: /could not be fetched/ }, url);
      }
      assert.equal(elsewhere.requests.length, 0);
    } finally {
      await elsewhere.close();
    }
  });

  it('OpenAI images delivers and counts the images of an answer that can be had, without those that fail for good', async () => {
    server.answer((response, { method, url }) => {
      if (method === 'POST') {
        const data = [{ url: link('/gone') }, { url: link('/photo') }, null, { b64_json: base64 }, {}];
        return sendJson(response, 200, JSON.stringify({ created: 7, data, usage }));
      }
      response.writeHead(url === '/photo' ? 200 : 404, { 'content-type': 'image/jpeg' }).end(jpeg);
    });
    const parameters = { prompt: 'x', n: 5 };
    const answer = await ask({ job: { response_format: 'b64_json', parameters } });
    assert.deepEqual(endOf(answer).end.data, [{ b64_json: jpeg.toString('base64') }, { b64_json: base64 }]);
    assert.deepEqual([answer.quantities, answer.usage], [{ images: 2 }, usage]);
  });

  it('OpenAI images fails with the first failure if no image can be had, and leaves the rest of many', async () => {
    server.answer((response, { method }) => {
      if (method !== 'POST') return response.writeHead(404).end();
      const data = Array.from({ length: 50 }, (_, index) => ({ url: link(`/${index}`) }));
      return sendJson(response, 200, JSON.stringify({ created: 7, data }));
    });
    await assert.rejects(ask(), { code: 'server_error', message: /could not be fetched/ });
    assert.equal(server.requests.length, 1 + 10);
  });

  it('OpenAI images ends with its signal after one image of several is fetched', async () => {
    const [reason, controller] = [new ApiError('timeout', 'The deadline has passed.'), new AbortController()];
    server.answer((response, { method, url }) => {
      if (method === 'POST') {
        return sendJson(
          response,
          200,
          JSON.stringify({ created: 7, data: [{ url: link('/a') }, { url: link('/b') }] }),
        );
      }
      if (url === '/b') return controller.abort(reason);
      response.writeHead(200, { 'content-type': 'image/png' }).end(png);
    });
    await assert.rejects(ask({ call: { ...memoryFiles(), signal: controller.signal } }), reason);
  });

  it('OpenAI images refuses images that may not fit into one answer, before the vendor makes and bills them', async () => {
    answerJson({ created: 7, data: [{ b64_json: base64 }] });
    const request = (parameters: object, more: Partial<ImageJob> = {}, responseFormat = false, stream = false) => {
      const job = { ...more, parameters: { prompt: 'x', ...parameters } };
      return ask({ job, responseFormat, call: { ...memoryFiles(), stream } });
    };
    const large = { size: '3840x2160', n: 10 };
    const expected = { code: 'invalid_request_error', param: 'n', message: /at most 2, or 'output_format'/ };
    await assert.rejects(request(large), expected);
    await assert.rejects(request({ ...large, n: 3, output_format: 'png' }), expected);
    await assert.rejects(request(large, { response_format: 'url' }), expected);
    await assert.rejects(request(large, { response_format: 'b64_json' }, true), expected);
    await assert.rejects(request(large, {}, false, true), expected);
    assert.equal(posted().length, 0);
    await request({ ...large, n: 2 });
    await request({ ...large, n: 1, size: '9999x9999' });
    await request({ ...large, output_format: 'jpeg' });
    await request(large, { response_format: 'url' }, true);
    for (const size of ['1536x1024', 'auto', null]) await request({ n: 10, size });
    assert.equal(posted().length, 7);
  });

  it("OpenAI images ignores file fields in the vendor's answer", async () => {
    answerJson({ is_wire: true, created: 7, data: [{ b64_json: base64, file: 'another', type: 'text/html' }] });
    const { files } = memoryFiles();
    const { end } = endOf(await ask({ job: { response_format: 'url' }, call: { files } }));
    assert.deepEqual(end.data, [{ type: 'image/png', file: 'file-1', bytes: png.length }]);
    const { body } = await ask({ job: { response_format: 'url' }, call: { files } });
    assert.ok(body.startsWith('{"created":7,'), body);
    const kept = endOf(await ask({ job: { response_format: 'b64_json' } }));
    assert.equal('file' in kept.end.data[0], false);
  });

  it('OpenAI images sends one upload as image, several as image[], and the mask, each with its name', async () => {
    const uploads = { one: 'IMAGE ONE', two: 'IMAGE TWO', cut: 'MASK', odd: 'ODD' };
    answerJson({ created: 7, data: [{ b64_json: base64 }] });
    const parameters = { prompt: 'Gift basket', n: 2, custom: ['a', 'b'], flag: true, nothing: null };
    const single = memoryFiles(uploads);
    await ask({ job: { task: 'edit', images: [upload('one', 'my "otter".png')], parameters }, call: single });
    const several = memoryFiles(uploads);
    const images = [upload('one'), { ...(upload('odd', 'o\0d\x7fd.png') as object), type: 'x\r\ny: z' } as never];
    await ask({ job: { task: 'edit', images, mask: upload('cut'), parameters }, call: several });
    const [first, second] = posted().map(({ body, headers, url }) => ({ body, headers, url, parts: partsOf(body) }));
    assert.equal(first?.url, '/v1/images/edits');
    assert.match(first?.headers['content-type'] ?? '', /^multipart\/form-data; boundary=/);
    assert.equal(Number(first?.headers['content-length']), Buffer.byteLength(first?.body ?? ''));
    assert.deepEqual(first?.parts, [
      ['name="model"', 'painter-1'],
      ['name="prompt"', 'Gift basket'],
      ['name="n"', '2'],
      ['name="custom[]"', 'a'],
      ['name="custom[]"', 'b'],
      ['name="flag"', 'true'],
      ['name="response_format"', 'url'],
      ['name="image"; filename="my %22otter%22.png" image/png', 'IMAGE ONE'],
    ]);
    assert.deepEqual(second?.parts.slice(-3), [
      ['name="image[]"; filename="one.png" image/png', 'IMAGE ONE'],
      ['name="image[]"; filename="o_d_d.png" application/octet-stream', 'ODD'],
      ['name="mask"; filename="cut.png" image/png', 'MASK'],
    ]);
    for (const stream of [...single.opened, ...several.opened]) assert.equal(stream.destroyed, true);
  });

  it('OpenAI images sends references as JSON, and a variation as a form to its own path', async () => {
    answerJson({ created: 7, data: [{ b64_json: base64 }] });
    const images = [{ image_url: `data:image/png;base64,${base64}` }, { image_url: 'https://example.com/a.png' }];
    const mask = { image_url: 'https://example.com/mask.png' };
    await ask({ responseFormat: false, job: { task: 'edit', images, mask } });
    const sent = JSON.parse(posted()[0]?.body ?? '');
    assert.deepEqual(sent, { model: 'painter-1', prompt: 'A lighthouse', images, mask });
    const { files } = memoryFiles({ one: 'IMAGE ONE' });
    await ask({ job: { task: 'variation', images: [upload('one')], parameters: {} }, call: { files } });
    assert.equal(posted()[1]?.url, '/v1/images/variations');
  });

  it('OpenAI images closes every upload when the vendor rejects it, one is missing, or nothing is sent', async () => {
    server.answer((response) => sendJson(response, 400, '{"error":{"message":"No.","param":"image","code":"bad"}}'));
    const refused = memoryFiles({ one: 'IMAGE ONE', two: 'IMAGE TWO' });
    const images = [upload('one'), upload('two')];
    const expected = { code: 'invalid_request_error', param: 'image', vendorCode: 'bad' };
    await assert.rejects(ask({ job: { task: 'edit', images }, call: refused }), expected);
    const partly = memoryFiles({ one: 'IMAGE ONE' });
    await assert.rejects(ask({ job: { task: 'edit', images }, call: partly }));
    assert.equal(posted().length, 1);
    assert.deepEqual([refused.opened.length, partly.opened.length], [2, 1]);
    const late = memoryFiles({ one: 'IMAGE ONE', two: 'IMAGE TWO' });
    await assert.rejects(ask({ job: { task: 'edit', images }, call: { ...late, signal: AbortSignal.abort() } }));
    assert.equal(posted().length, 1);
    const opened = [...refused.opened, ...partly.opened, ...late.opened];
    assert.equal(opened.length, 5);
    await eventually(
      () =>
        assert.ok(
          opened.every(({ destroyed }) => destroyed),
          'all are closed',
        ),
      2000,
    );
  });

  it('OpenAI images fails for an answer without images, and never retries', async () => {
    const bodies = [{}, { data: [] }, { data: 'x' }, { data: [{}] }, { data: [{ url: '' }] }, { data: [null] }];
    for (const body of bodies) {
      answerJson(body);
      await assert.rejects(ask({ call: memoryFiles() }), { code: 'server_error' }, JSON.stringify(body));
    }
    answerJson({ created: 7, data: [{ b64_json: 'AAAA' }] });
    await assert.rejects(ask({ job: { response_format: 'url' }, call: memoryFiles() }), /unknown kind/);
    assert.equal(posted().length, bodies.length + 1);
    for (const status of [429, 500, 503]) {
      server.answer((response) => sendJson(response, status, '{}'));
      await assert.rejects(ask());
    }
    assert.equal(posted().length, bodies.length + 4);
  });

  it('OpenAI images ends with its signal, while it waits and while it fetches', async () => {
    const reason = new ApiError('timeout', 'The deadline has passed.');
    for (const path of ['POST', 'GET']) {
      const controller = new AbortController();
      let left: Promise<unknown> = Promise.resolve();
      server.answer((response: ServerResponse, { method }) => {
        if (method === 'POST' && path === 'GET') {
          return sendJson(response, 200, JSON.stringify({ created: 7, data: [{ url: link('/a') }] }));
        }
        left = once(response, 'close');
        controller.abort(reason);
      });
      await assert.rejects(ask({ call: { ...memoryFiles(), signal: controller.signal } }), reason);
      await left;
    }
  });

  describe('streamed images', () => {
    const setting = { background: 'opaque', output_format: 'png', quality: 'high', size: '1024x1024' };
    const partial = (index: number) => ({
      type: 'image_generation.partial_image',
      b64_json: `partial${index}`,
      partial_image_index: index,
      created_at: 1713833620 + index,
      ...setting,
    });
    const completed = (more: object = {}) => ({
      type: 'image_generation.completed',
      b64_json: base64,
      created_at: 1713833628,
      usage,
      ...setting,
      ...more,
    });
    const sse = (events: readonly { type: string }[]): string =>
      events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
    const arrange = (text: string) => server.answer((response) => sendStream(response, [text]));
    const streamed = { stream: true };

    it('streamed OpenAI images writes partial images as deltas, and ends with the completed one', async () => {
      arrange(sse([partial(0), partial(1), completed()]));
      const sink = collect();
      const parameters = { prompt: 'x', partial_images: 2 };
      const answer = await ask({ responseFormat: false, job: { parameters }, call: streamed, sink });
      assert.deepEqual(JSON.parse(posted()[0]?.body ?? ''), { model: 'painter-1', ...parameters, stream: true });
      const { type: _, ...first } = partial(0);
      const { type: __, ...second } = partial(1);
      assert.deepEqual(sink.data(), [first, second]);
      assert.deepEqual(endOf(answer).end, {
        created: 1713833628,
        data: [{ b64_json: base64, usage }],
        ...setting,
        usage,
      });
      assert.deepEqual(answer.usage, usage);
    });

    it('streamed OpenAI images returns base64, and also a file when links are requested', async () => {
      for (const responseFormat of [true, false]) {
        arrange(sse([completed()]));
        const answer = await ask({ responseFormat, call: streamed });
        assert.deepEqual(Object.keys(endOf(answer).end.data[0]), ['usage', 'b64_json']);
        const { files } = memoryFiles();
        const both = await ask({ responseFormat, job: { response_format: 'url' }, call: { ...streamed, files } });
        const [image] = endOf(both).end.data as ImageResult[];
        assert.deepEqual([image?.b64_json, image?.file], [base64, 'file-1']);
      }
      for (const { body } of posted()) assert.equal('response_format' in JSON.parse(body), false);
    });

    it('streamed OpenAI images waits for all n images, and adds up their usage', async () => {
      arrange(sse([partial(0), completed(), completed({ b64_json: jpeg.toString('base64') })]));
      const answer = await ask({ job: { parameters: { n: 2 } }, call: streamed });
      assert.equal(endOf(answer).end.data.length, 2);
      assert.deepEqual(answer.usage, {
        total_tokens: 200,
        input_tokens: 100,
        output_tokens: 100,
        input_tokens_details: { text_tokens: 20, image_tokens: 80 },
      });
    });

    it('streamed OpenAI images delivers the images that were made before an error, a lost connection or an early end', async () => {
      const failed = { type: 'error', error: { type: 'server_error', code: 'server_is_overloaded', message: 'no' } };
      const request = { job: { parameters: { n: 3 } }, call: streamed };
      const made = sse([partial(0), completed(), completed({ b64_json: jpeg.toString('base64') })]);
      const endings: (() => void)[] = [
        () => arrange(made + sse([failed])),
        () => arrange(made),
        () => arrange(`${made}data: [DONE]\n\n`),
        () =>
          server.answer((response) => {
            beginStream(response);
            response.write(made, () => response.destroy());
          }),
      ];
      for (const end of endings) {
        end();
        const answer = await ask(request);
        assert.deepEqual(
          endOf(answer).end.data.map(({ b64_json }: ImageResult) => b64_json),
          [base64, jpeg.toString('base64')],
        );
        assert.deepEqual([answer.quantities, answer.usage?.total_tokens], [{ images: 2 }, 200]);
      }
      arrange(sse([failed]));
      await assert.rejects(ask(request), { code: 'service_unavailable', vendorStatus: 503 });
    });

    it('streamed OpenAI images keeps no more than one answer may have, and delivers the images within it', async () => {
      const large = Buffer.concat([png, Buffer.alloc(13 * 1024 * 1024, 7)]).toString('base64');
      let sent = 0;
      server.answer(async (response) => {
        beginStream(response);
        const event = Buffer.from(sse([completed({ b64_json: large })]));
        for (; sent < 10 && !response.destroyed; sent += 1) {
          if (!response.write(event)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
        }
      });
      const { body, quantities } = await ask({ job: { parameters: { n: 10 } }, call: streamed });
      assert.deepEqual([quantities, JSON.parse(body).data.length], [{ images: 3 }, 3]);
      assert.ok(sent < 10, 'the connection is closed');
    });

    it('streamed OpenAI images counts completed images as memory of its job until it ends, whatever partial images follow', async () => {
      const large = Buffer.concat([png, Buffer.alloc(freeBytes, 7)]).toString('base64');
      const events = [completed({ b64_json: large }), partial(0), completed()];
      server.answer((response) =>
        sendStream(
          response,
          events.map((event) => sse([event])),
        ),
      );
      const holder: AnswerHolder = {};
      const answer = await ask({ job: { parameters: { n: 2 } }, call: { ...streamed, holder } });
      assert.equal(endOf(answer).end.data.length, 2);
      assert.equal(holder.holdsAnswer, true);
    });

    it('streamed OpenAI images leaves out partial images for which an answer has no room, and delivers what is billed', async () => {
      const large = 'A'.repeat(12 * 1024 * 1024);
      const partials = [0, 1, 2].map((index) => ({ ...partial(index), b64_json: index === 2 ? 'small' : large }));
      arrange(sse([partials[0], partials[1], { ...partial(1), b64_json: large }, partials[2], completed()] as never));
      const sink = collect();
      const answer = await ask({ call: streamed, sink });
      assert.deepEqual(
        sink.frames.map(({ text }) => text.length > large.length),
        [true, true, false],
      );
      assert.equal(endOf(answer).end.data.length, 1);
    });

    it('streamed OpenAI images ends with its signal after one image of several is made', async () => {
      const [reason, controller] = [new ApiError('timeout', 'The deadline has passed.'), new AbortController()];
      server.answer((response) => {
        beginStream(response);
        response.write(sse([partial(0), completed()]));
      });
      const write = () => {
        setImmediate(() => controller.abort(reason));
        return true;
      };
      const sink = { ...collect(), write };
      const call = { ...streamed, signal: controller.signal };
      await assert.rejects(ask({ job: { parameters: { n: 2 } }, call, sink }), { code: /timeout|stream_interrupted/ });
    });

    it('streamed OpenAI images fails when the stream ends before its images, with stream_interrupted after output', async () => {
      arrange(sse([partial(0)]));
      await assert.rejects(ask({ call: streamed }), { code: 'stream_interrupted' });
      arrange('');
      await assert.rejects(ask({ call: streamed }), { code: 'server_error' });
      arrange('data: [DONE]\n\n');
      await assert.rejects(ask({ call: streamed }), { code: 'server_error' });
    });

    it("streamed OpenAI images ends with the vendor's own error, before and after output", async () => {
      const error = {
        message: 'Your request was rejected.',
        type: 'invalid_request_error',
        code: 'moderation_blocked',
      };
      for (const before of [[], [partial(0)]]) {
        for (const text of [
          `event: error\ndata: ${JSON.stringify({ type: 'error', error: { ...error, status: 400 } })}\n\n`,
          `data: ${JSON.stringify({ error: { ...error, status: 400 } })}\n\n`,
        ]) {
          arrange(sse(before) + text);
          const expected = { code: 'invalid_request_error', vendorCode: 'moderation_blocked', message: error.message };
          await assert.rejects(ask({ call: streamed }), expected);
        }
      }
    });

    it('streamed OpenAI images accepts a whole answer when the vendor does not stream', async () => {
      answerJson({ ...answered, data: [{ b64_json: base64 }], usage });
      const answer = await ask({ call: streamed });
      assert.deepEqual(endOf(answer).end, { ...answered, data: [{ b64_json: base64 }], usage });
    });

    it('streamed OpenAI images stops reading while the sink is full', async () => {
      let sendRest: () => void = () => undefined;
      server.answer((response) => {
        beginStream(response);
        response.write(sse([partial(0)]));
        sendRest = () => response.end(sse([partial(1), completed()]));
      });
      const taking = collect();
      let release: () => void = () => undefined;
      const drained = new Promise<void>((done) => {
        release = done;
      });
      const full = new Promise<void>((resolve) => {
        taking.write = (frame) => {
          taking.frames.push(frame);
          resolve();
          return false;
        };
      });
      const call = ask({ call: streamed, sink: { ...taking, drained: () => drained } });
      await full;
      sendRest();
      await delay(50);
      assert.equal(taking.frames.length, 1);
      release();
      await call;
      assert.equal(taking.frames.length, 2);
    });

    it('streamed OpenAI images shows the same events for any split of the bytes, and the same as a held answer', async () => {
      const text = Buffer.from(
        `: ping\r\n\r\n${sse([partial(0), partial(1)])}${sse([completed()]).replaceAll('\n', '\r\n')}`,
      );
      const job = { id: 'x', model: 'painter', createdAt: 0, viewOptions: {}, link: (file: string) => `link:${file}` };
      const view = imageView('image_generation');
      const expected = sse([partial(0), partial(1), completed()]);
      answerJson({ ...answered, data: [{ b64_json: base64 }], usage });
      const heldAnswer = await ask({ responseFormat: false });
      const held = JSON.parse(view.held(job, [{ seq: 1, type: 'end', text: heldAnswer.body }]));
      const places = fc.array(fc.nat(text.length), { maxLength: 8 });
      await fc.assert(
        fc.asyncProperty(places, async (cuts) => {
          server.answer((response) => sendStream(response, cut(text, cuts)));
          const sink = collect();
          const answer = await ask({ call: streamed, sink });
          const frames: Frame[] = [...sink.frames, { type: 'end' as const, text: answer.body }].map((frame, index) => ({
            ...frame,
            seq: index + 1,
          }));
          const show = view.stream(job);
          const events = frames.flatMap((frame) => show(frame)).map(readEvent);
          assert.deepEqual(events, readEvents(expected));
          const last = events.at(-1)?.data ?? {};
          const { type: _, created_at: created, b64_json, ...rest } = last as Record<string, unknown>;
          assert.deepEqual({ created, data: [{ b64_json }], ...rest }, held);
          assert.deepEqual(JSON.parse(view.held(job, frames)), held);
        }),
        { numRuns: 60 },
      );
    });
  });
});

/** The parts of a form, each as what tells it from others, and its content. */
function partsOf(body: string): [head: string, content: string][] {
  const [boundary = ''] = body.split('\r\n');
  return body
    .split(boundary)
    .slice(1, -1)
    .map((part) => {
      const [head = '', content = ''] = part.slice(2, -2).split('\r\n\r\n');
      const [, name = '', type] = /^Content-Disposition: form-data; (.*?)(?:\r\nContent-Type: (.*))?$/.exec(head) ?? [];
      return [type === undefined ? name : `${name} ${type}`, content];
    });
}

function readEvent(text: string): { type: string | undefined; data: unknown } {
  const [event = '', data = ''] = text.split('\n');
  return { type: event.slice('event: '.length), data: JSON.parse(data.slice('data: '.length)) };
}

function readEvents(text: string): { type: string | undefined; data: unknown }[] {
  return text.split('\n\n').slice(0, -1).map(readEvent);
}
