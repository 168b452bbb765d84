import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import OpenAI, { AzureOpenAI, toFile } from 'openai';
import { ConfigError, readConfig } from '../../../shared/config/config.ts';
import type { ApiError } from '../../../shared/errors.ts';
import { createAzure } from '../../../workers/vendors/azure/azure.ts';
import type { VendorCall } from '../../../workers/vendors/vendor.ts';
import { audioOf, speech, transcription } from '../contracts/audio-vendor-contract.ts';
import { describeChatVendor } from '../contracts/chat-vendor-contract.ts';
import { failureOf } from '../contracts/failure-of.ts';
import {
  bodyText,
  callOf,
  collect,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { imageJob } from '../contracts/image-vendor-contract.ts';
import { memoryFiles } from '../contracts/memory-files.ts';
import {
  answerAsAzure,
  apiKey,
  azureError,
  deployment,
  film,
  filterError,
  filtered,
  filteredBody,
  filteredCompletion,
  lateChunk,
  lateResults,
  png,
  promptChunk,
  promptResults,
  responseBody,
  speechBytes,
  spoken,
  video,
} from '../recorded/recorded-azure.ts';
import { chunk, events, frameOf, streams, usage, usageChunk } from '../recorded/recorded-openai.ts';

type Azure = ReturnType<typeof createAzure>;

const origin = (server: FixtureVendor): string => new URL(server.baseUrl).origin;
const open = (server: FixtureVendor): Azure => createAzure({ name: 'azure', baseUrl: origin(server), apiKey });

/** What the filters say of the prompt comes first, and goes with the first chunk that has a choice. */
function asAzure(chunks: readonly Record<string, unknown>[]) {
  const [first, ...more] = chunks.filter(({ choices }) => (choices as unknown[]).length > 0).map(filtered);
  assert.ok(first);
  return { sent: [promptChunk, first, ...more], data: [{ ...frameOf(first), ...promptResults }, ...more.map(frameOf)] };
}

describeChatVendor('Azure OpenAI', {
  create: (baseUrl) => createAzure({ name: 'azure', baseUrl: new URL(baseUrl).origin, apiKey }),
  streams: Object.fromEntries(
    Object.entries(streams).map(([name, chunks]) => {
      const { sent, data } = asAzure(chunks);
      return [name, { send: (response) => sendStream(response, [events([...sent, usageChunk])]), data, usage }];
    }),
  ),
  held: { send: (response) => sendJson(response, 200, JSON.stringify(filteredCompletion)), body: filteredBody, usage },
  sendBroken: (response) => sendStream(response, [events(asAzure(streams['plain text'] ?? []).sent.slice(0, 4), '')]),
});

describe("Azure's own clients and the recorded wire", () => {
  let server: FixtureVendor;
  before(async () => {
    server = await startFixtureVendor();
    server.answer(answerAsAzure);
  });
  after(() => server.close());
  const messages = [{ role: 'user', content: 'Hello!' } as const];
  const wave = () => toFile(Buffer.from('RIFF'), 'say.wav', { type: 'audio/wav' });

  it('AzureOpenAI reads the fixtures of the dated API', async () => {
    const settings = { endpoint: origin(server), apiKey, apiVersion: '2025-04-01-preview', maxRetries: 0 };
    const client = new AzureOpenAI(settings);
    const model = deployment;
    const held = await client.chat.completions.create({ model, messages });
    assert.equal(held.choices[0]?.message.content, filteredBody.choices[0]?.message?.content);
    const said: unknown[] = [];
    const streamed = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    for await (const { choices } of streamed) said.push(...choices.map(({ delta }) => delta?.content ?? null));
    assert.deepEqual(said, ['Hi', null, null]);
    assert.deepEqual((await streamed.finalChatCompletion()).usage, usage);
    const { data } = await client.embeddings.create({ model, input: 'a', encoding_format: 'float' });
    assert.deepEqual(data[0]?.embedding, [0.5, -0.25]);
    assert.equal((await client.completions.create({ model, prompt: 'a' })).choices[0]?.text, 'Hi');
    assert.equal((await client.audio.transcriptions.create({ model, file: await wave() })).text, 'Good day.');
    assert.equal((await client.audio.translations.create({ model, file: await wave() })).text, 'Good day.');
    const spoken = await client.audio.speech.create({ model, input: 'Hello', voice: 'alloy' });
    assert.ok(Buffer.from(await spoken.arrayBuffer()).equals(speechBytes));
    assert.equal((await client.images.generate({ model, prompt: 'a' })).data?.[0]?.b64_json, png.toString('base64'));
    const image = await toFile(png, 'a.png', { type: 'image/png' });
    // Of a form for images this client finds no deployment by itself.
    const edited = await new AzureOpenAI({ ...settings, deployment }).images.edit({ model, prompt: 'a', image });
    assert.equal(edited.data?.[0]?.b64_json, png.toString('base64'));
    await assert.rejects(client.chat.completions.create({ model: 'other', messages }), { code: 'DeploymentNotFound' });
    const stranger = new AzureOpenAI({ ...settings, apiKey: 'wrong' });
    await assert.rejects(stranger.chat.completions.create({ model, messages }), { status: 401 });
  });

  it("OpenAI's client reads the fixtures of Azure's v1 API", async () => {
    const client = new OpenAI({
      baseURL: `${origin(server)}/openai/v1`,
      apiKey: 'none',
      defaultHeaders: { 'api-key': apiKey, authorization: null },
      maxRetries: 0,
    });
    const model = deployment;
    const response = await client.responses.create({ model, input: 'Hello!' });
    assert.deepEqual(response.output, spoken.output);
    const held = await client.chat.completions.create({ model, messages });
    assert.equal(held.choices[0]?.finish_reason, 'stop');
    const { id, status } = await client.videos.create({ model, prompt: 'A cat', seconds: '4' });
    assert.deepEqual([id, status], [video.id, 'completed']);
    const content = await client.videos.downloadContent(id);
    assert.ok(Buffer.from(await content.arrayBuffer()).equals(film));
    assert.equal((await client.videos.delete(id)).deleted, true);
  });
});

describe('the Azure OpenAI vendor', () => {
  let server: FixtureVendor;
  let vendor: Azure;
  before(async () => {
    server = await startFixtureVendor();
    vendor = open(server);
  });
  beforeEach(() => {
    server.requests.length = 0;
    server.answer(answerAsAzure);
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const model = deployment;
  const held = (request: object, call: Partial<VendorCall> = {}): VendorCall =>
    callOf({ model, stream: false, request: JSON.stringify(request), ...call });
  const videoJob = { prompt: 'A cat', seconds: '4', input: null, remixed: null, parameters: {} };
  const picture = (job: object = {}, call: Partial<VendorCall> = {}): VendorCall => {
    const { files } = memoryFiles({ 'a-file': png });
    return callOf({ model, stream: false, request: imageJob({}, job), files, ...call });
  };
  const upload = { file: 'a-file', name: 'a.png', type: 'image/png', bytes: png.length };

  /** One call of each capability, and where it has to go. */
  const calls: readonly (readonly [path: string, (call?: Partial<VendorCall>) => Promise<unknown>])[] = [
    ['/chat/completions', (call) => vendor.chat(callOf({ model, ...call }), collect())],
    ['/chat/completions', (call) => vendor.chat(callOf({ model, stream: false, ...call }), collect())],
    ['/completions', (call) => vendor.complete(held({ prompt: 'Hello' }, call), collect())],
    ['/embeddings', (call) => vendor.embed(held({ input: 'Hello' }, call))],
    ['/responses', (call) => vendor.respond(held({ input: [] }, call), collect())],
    ['/images/generations?api-version=preview', (call) => vendor.image(picture({}, call), collect())],
    [
      '/images/edits?api-version=preview',
      (call) => vendor.image(picture({ task: 'edit', images: [upload] }, call), collect()),
    ],
    [
      '/audio/transcriptions?api-version=preview',
      (call) => vendor.transcribe(transcription(model, {}, call), collect()),
    ],
    [
      '/audio/translations?api-version=preview',
      (call) => vendor.transcribe(transcription(model, { task: 'translate' }, call), collect()),
    ],
    ['/audio/speech?api-version=preview', (call) => vendor.speak(speech(model, {}, call), collect())],
    ['/videos', (call) => vendor.video.create(held(videoJob, call))],
  ];

  const failure = (task: Promise<unknown>): Promise<ApiError> => failureOf(task, [apiKey]);

  it('Azure posts every capability under the v1 API, with its key in the api-key header', async () => {
    for (const [path, make] of calls) {
      await make();
      const { method, url, headers } = server.requests.at(-1) ?? {};
      assert.deepEqual([method, url], ['POST', `/openai/v1${path}`]);
      assert.deepEqual([headers?.['api-key'], headers?.authorization], [apiKey, undefined]);
    }
    assert.equal(server.requests.length, calls.length);
  });

  it('Azure accepts a base URL that already names the API', async () => {
    for (const end of ['/openai', '/openai/v1']) {
      const other = createAzure({ name: 'azure', baseUrl: origin(server) + end, apiKey });
      await other.chat(callOf({ model }), collect());
      assert.equal(server.requests.at(-1)?.url, '/openai/v1/chat/completions');
      await other.close();
    }
  });

  it('Azure returns vectors, images, text, audio, responses and videos as it received them', async () => {
    assert.deepEqual((await vendor.embed(held({ input: 'Hello' }))).vectors.map(String), ['[0.5,-0.25]']);
    assert.match((await vendor.complete(held({ prompt: 'Hello' }), collect())).body, /"prompt_filter_results":\[\{/);
    const { body: images } = await vendor.image(picture({ response_format: 'b64_json' }), collect());
    const image = JSON.parse(bodyText(images));
    assert.equal(image.data[0].b64_json, png.toString('base64'));
    assert.equal(image.data[0].content_filter_results.profanity.filtered, false);
    assert.equal(JSON.parse((await vendor.transcribe(transcription(model), collect())).body).text, 'Good day.');
    const sink = collect();
    await vendor.speak(speech(model), sink);
    assert.ok(audioOf(sink.frames).equals(speechBytes));
    const answer = JSON.parse((await vendor.respond(held({ input: [] }), collect())).body);
    assert.deepEqual(answer.response.usage, responseBody.usage);
    const { files, saved } = memoryFiles();
    const about = { ...callOf({ model }), files, task: video.id };
    assert.deepEqual(await vendor.video.poll(about), { status: 'completed', size: '720x1280', seconds: '4' });
    await vendor.video.fetch(about, 'video');
    assert.ok(saved[0]?.content.equals(film));
    await vendor.video.discard?.(about);
    assert.deepEqual(
      server.requests.slice(-3).map(({ method, url }) => `${method} ${url}`),
      [
        `GET /openai/v1/videos/${video.id}`,
        `GET /openai/v1/videos/${video.id}/content?variant=video`,
        `DELETE /openai/v1/videos/${video.id}`,
      ],
    );
  });

  it('Azure gives every chat chunk a choice, and every choice a delta, whatever the filters report in between', async () => {
    const marked = chunk([{ delta: { content: '"content_filter_offsets":' } }]);
    const finish = chunk([{ delta: {}, finish_reason: 'stop' }]);
    const sent = [promptChunk, marked, lateChunk, marked, marked, finish, lateChunk];
    server.answer((response) => sendStream(response, [events([...sent, usageChunk])]));
    const sink = collect();
    await vendor.chat(callOf({ model }), sink);
    const late = { choices: [{ delta: {}, ...lateResults }] };
    const text = frameOf(marked);
    const first = frameOf(chunk([{ delta: { role: 'assistant', content: '"content_filter_offsets":' } }]));
    assert.deepEqual(sink.data(), [{ ...first, ...promptResults }, late, text, text, frameOf(finish), late]);
  });

  it('Azure fails a stream whose filters report without end', async () => {
    const results = Array.from({ length: 3 }, (_, at) => ({ choices: [], [`result_${at}`]: 'x'.repeat(500_000) }));
    server.answer((response) => sendStream(response, [events([...results, ...(streams['plain text'] ?? [])])]));
    await assert.rejects(vendor.chat(callOf({ model }), collect()), { message: /too many results of its filters/ });
  });

  it('Azure reports a content filter rejection as content_policy_violation, in every capability', async () => {
    const inner = { inner_error: { code: 'ResponsibleAIPolicyViolation' } };
    for (const body of [
      filterError,
      azureError('contentFilter', 'Your task failed as a result of our safety system.'),
      azureError('content_policy_violation', 'Not allowed.', inner),
      azureError('invalid_request', 'Not allowed.', inner),
      azureError('moderation_blocked', 'Not allowed.'),
    ]) {
      server.answer((response) => sendJson(response, 400, body));
      for (const [path, make] of calls) {
        const { code, vendorCode, message } = await failure(make());
        assert.deepEqual([code, vendorCode], ['invalid_request_error', 'content_policy_violation'], path + body);
        assert.equal(message, JSON.parse(body).error.message);
      }
    }
  });

  it('Azure reports a content filter rejection inside a stream, before and after its first chunk', async () => {
    const refusal = `data: ${filterError}\n\n`;
    for (const begun of [[], [chunk([{ delta: { role: 'assistant', content: 'Once' } }])]]) {
      server.answer((response) => sendStream(response, [events(begun, ''), refusal]));
      const { code, vendorCode } = await failure(vendor.chat(callOf({ model }), collect()));
      assert.deepEqual([code, vendorCode], ['invalid_request_error', 'content_policy_violation']);
    }
  });

  it('Azure maps every other status to the matching code, without a retry', async () => {
    const notFound = azureError('404', 'Resource not found');
    const unknown = azureError('DeploymentNotFound', 'The API deployment for this resource does not exist.');
    const throttled = azureError('429', 'Requests have exceeded the call rate limit. Please retry after 7 seconds.');
    for (const [status, body, code] of [
      [400, azureError('BadRequest', `No good: ${apiKey}`, { param: 'temperature' }), 'invalid_request_error'],
      [401, azureError('401', 'Access denied due to invalid subscription key.'), 'service_unavailable'],
      [403, azureError('AccessDenied', 'Access denied due to Virtual Network rules.'), 'service_unavailable'],
      [404, unknown, 'model_not_found'],
      [404, notFound, 'service_unavailable'],
      [408, azureError('Timeout', 'The operation was timeout.'), 'timeout'],
      [429, throttled, 'rate_limit_exceeded'],
      [500, azureError('InternalServerError', 'Oh'), 'server_error'],
      [500, '<h1>Oh</h1>', 'server_error'],
      [503, azureError('503', 'Overloaded'), 'service_unavailable'],
      [529, azureError('529', 'Overloaded'), 'service_unavailable'],
    ] as const) {
      for (const headers of [{ 'retry-after-ms': '7100' }, { 'retry-after': '7' }] as Record<string, string>[]) {
        server.requests.length = 0;
        server.answer((response) => sendJson(response, status, body, headers));
        for (const [path, make] of calls) {
          const error = await failure(make());
          assert.equal(error.code, code, `${status} ${path}`);
          if (status === 429) assert.equal(error.retryAfterMs, 'retry-after' in headers ? 7000 : 7100);
          if (status === 400) assert.deepEqual([error.message, error.param], ['No good: [key]', 'temperature']);
        }
        assert.equal(server.requests.length, calls.length);
      }
    }
  });

  it('Azure fails when the connection breaks or falls silent, or an answer is senseless', async () => {
    const created = calls.length - 1;
    server.answer((response) => response.socket?.resetAndDestroy());
    for (const [index, [path, make]] of calls.entries()) {
      assert.equal((await failure(make())).code, index === created ? 'outcome_unknown' : 'server_error', path);
    }
    server.answer(() => undefined);
    const silent = calls.map(async ([path, make], index) => {
      const { code } = await failure(make({ silenceMs: 50 }));
      assert.equal(code, index === created ? 'outcome_unknown' : 'timeout', path);
    });
    await Promise.all(silent);
    server.reset();
    for (const body of ['{', '[]', '{}', 'null']) {
      server.answer((response) => sendJson(response, 200, body));
      for (const [index, [path, make]] of calls.entries()) {
        assert.equal((await failure(make())).code, index === created ? 'outcome_unknown' : 'server_error', path + body);
      }
    }
  });

  it('Azure images are requested without response_format, and returned in the form the caller wants', async () => {
    const { files, saved } = memoryFiles();
    const { body } = await vendor.image(picture({ response_format: 'url' }, { files }), collect());
    assert.deepEqual(JSON.parse(server.requests.at(-1)?.body ?? ''), { model, prompt: 'A lighthouse' });
    assert.equal(JSON.parse(bodyText(body)).data[0].file, 'file-1');
    assert.ok(saved[0]?.content.equals(png));
  });

  it('Azure rejects image variations without a call', async () => {
    const error = await failure(vendor.image(picture({ task: 'variation', images: [upload] }), collect()));
    assert.deepEqual([error.code, error.param], ['invalid_request_error', 'model']);
    assert.equal(server.requests.length, 0);
  });
});

describe('the settings of Azure OpenAI', () => {
  it('AZURE_API_KEY and AZURE_BASE_URL turn Azure on, open to every deployment', () => {
    const { vendors } = readConfig({ AZURE_API_KEY: 'a-key', AZURE_BASE_URL: 'https://me.openai.azure.com/' });
    assert.deepEqual(Object.keys(vendors), ['azure']);
    assert.equal(vendors.azure?.baseUrl, 'https://me.openai.azure.com');
    assert.equal(vendors.azure?.isOpen, true);
  });

  it('AZURE_API_KEY without AZURE_BASE_URL is reported as incomplete', () => {
    assert.throws(
      () => readConfig({ AZURE_API_KEY: 'a-secret-key' }),
      (error) =>
        error instanceof ConfigError &&
        error.message.includes('AZURE_BASE_URL') &&
        error.message.includes('https://NAME.openai.azure.com') &&
        !error.message.includes('a-secret-key'),
    );
  });
});
