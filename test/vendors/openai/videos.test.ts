import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, it } from 'node:test';
import OpenAI from 'openai';
import type { VideoEnd, VideoJob } from '../../../shared/capabilities/video.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { VendorTask } from '../../../shared/jobs/vendor-task.ts';
import { executeVideo, followVideo, type KnownTask, type VideoCall } from '../../../workers/execute/execute-video.ts';
import type { Pause, RememberTask } from '../../../workers/execute/execution.ts';
import { createHttpClient } from '../../../workers/http/http-client.ts';
import { OpenAiAnswerReader } from '../../../workers/vendors/openai/answer-reader.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import { openAiVideos } from '../../../workers/vendors/openai/videos.ts';
import type {
  CallFiles,
  JobAnswer,
  TaskCall,
  Vendor,
  VendorCall,
  VideoTasks,
} from '../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import {
  bodyText,
  callOf,
  collect,
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';

const key = 'sk-test-0123456789abcdef';

/** As OpenAI's reference shows a video that has just been asked for. */
const queued = {
  id: 'video_68d7512d07848190b3e45da0ecbebcde004da08e1e0678d5',
  object: 'video',
  created_at: 1758941485,
  status: 'queued',
  model: 'sora-2',
  progress: 0,
  seconds: '8',
  size: '1280x720',
  prompt: 'A calico cat playing a piano on stage',
  completed_at: null,
  expires_at: null,
  remixed_from_video_id: null,
  error: null,
};
const running = { ...queued, status: 'in_progress', progress: 33 };
const completed = { ...queued, status: 'completed', progress: 100, completed_at: 1758941600, expires_at: 1758945200 };
const failed = (code: string, message = 'It did not work.') => ({
  ...running,
  status: 'failed',
  error: { code, message },
});

const film = Buffer.concat([Buffer.from('0000001866747970', 'hex'), Buffer.alloc(300_000, 7)]);
const thumbnail = Buffer.from('RIFF....WEBP');

/** Files of one call, kept in memory; a file counts once it is whole. */
function memoryFiles(uploads: Record<string, string> = {}) {
  const saved: { type: string; content: Buffer }[] = [];
  const opened: Readable[] = [];
  const files: CallFiles = {
    open: async ({ blob }) => {
      const stream = Readable.from([Buffer.from(uploads[blob] as string)]);
      opened.push(stream);
      return { content: stream, bytes: Buffer.byteLength(uploads[blob] as string) };
    },
    save: async (content, type) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of content as Readable) chunks.push(chunk);
      saved.push({ type, content: Buffer.concat(chunks) });
      return { file: `file-${saved.length}`, type, bytes: saved.at(-1)?.content.length ?? 0 };
    },
  };
  return { files, saved, opened };
}

function jobText(job: Partial<VideoJob> = {}): string {
  return JSON.stringify({ prompt: 'A cat', input: null, remixed: null, parameters: {}, ...job });
}

function creation(job: Partial<VideoJob> = {}, call: Partial<VendorCall> = {}): VendorCall {
  return callOf({ model: 'sora-2', stream: false, request: jobText(job), ...call });
}

function about(call: Partial<TaskCall> = {}): TaskCall {
  const { model, signal, silenceMs, files } = callOf({ model: 'sora-2' });
  return { model, signal, silenceMs, files, task: queued.id, ...call };
}

function sendFile(response: ServerResponse, content: Buffer, type: string, cutAt = content.length): void {
  response.writeHead(200, { 'content-type': type, 'content-length': content.length });
  response.write(content.subarray(0, cutAt), () => {
    if (cutAt < content.length) response.destroy();
    else response.end();
  });
}

const hasCode = (code: string) => (error: unknown) => error instanceof ApiError && error.code === code;

let server: FixtureVendor;
let vendor: Vendor & { video: VideoTasks };
before(async () => {
  server = await startFixtureVendor();
  vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: key });
});
after(async () => {
  await vendor.close();
  await server.close();
});
beforeEach(() => {
  server.requests.length = 0;
});

const received = () => server.requests.map(({ method, url }) => `${method} ${url}`);

describe('video creation of the OpenAI dialect', () => {
  it('OpenAI video creation posts JSON and returns the id of the task', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(queued)));
    const job = {
      size: '1280x720',
      seconds: '8',
      parameters: { user: 'me' },
      input: { image_url: 'data:image/png;,' },
    };
    assert.equal(await vendor.video.create(creation(job)), queued.id);
    assert.deepEqual(received(), ['POST /v1/videos']);
    assert.equal(server.requests[0]?.headers.authorization, `Bearer ${key}`);
    assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ''), {
      ...{ model: 'sora-2', prompt: 'A cat', size: '1280x720', seconds: '8', user: 'me' },
      input_reference: { image_url: 'data:image/png;,' },
    });
  });

  it('OpenAI video creation omits the fields that the caller omitted', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(queued)));
    await vendor.video.create(creation());
    assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ''), { model: 'sora-2', prompt: 'A cat' });
  });

  it('OpenAI video creation posts a form when the first image is an upload, and closes the file', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(queued)));
    const { files, opened } = memoryFiles({ upload: 'a picture' });
    const input = { file: 'upload', name: 'cat.png', type: 'image/png', bytes: 9 } as never;
    assert.equal(await vendor.video.create(creation({ input, seconds: '4' }, { files })), queued.id);
    const { headers, body } = server.requests[0] as ReceivedRequest;
    const form = await new Response(body, {
      headers: { 'content-type': headers['content-type'] as string },
    }).formData();
    assert.deepEqual([...form.keys()], ['model', 'prompt', 'seconds', 'input_reference']);
    const file = form.get('input_reference') as File;
    assert.deepEqual([file.name, file.type, await file.text()], ['cat.png', 'image/png', 'a picture']);
    assert.ok(opened[0]?.destroyed, 'the file is left open');
  });

  it('OpenAI video creation remixes a video at the vendor that has it', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify({ ...queued, id: 'video_2' })));
    const remixed = { vendor: 'openai', task: 'video/1' };
    assert.equal(await vendor.video.create(creation({ remixed, prompt: 'A dog' })), 'video_2');
    assert.deepEqual(received(), ['POST /v1/videos/video%2F1/remix']);
    assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ''), { prompt: 'A dog' });
    server.answer((response) => sendJson(response, 404, '{"error":{"message":"no such video","code":null}}'));
    await assert.rejects(vendor.video.create(creation({ remixed })), hasCode('not_found'));
  });

  it('OpenAI video creation passes a rejection on with the matching code', async () => {
    const refusals = [
      [400, 'invalid_request_error'],
      [404, 'service_unavailable'],
      [429, 'rate_limit_exceeded'],
      [500, 'server_error'],
      [503, 'service_unavailable'],
    ] as const;
    for (const [status, code] of refusals) {
      server.answer((response) => sendJson(response, status, '{"error":{"message":"no","code":null}}'));
      await assert.rejects(vendor.video.create(creation()), hasCode(code), String(status));
    }
    server.answer((response) => sendJson(response, 200, '{"error":{"message":"no","code":"invalid_request_error"}}'));
    await assert.rejects(vendor.video.create(creation()), hasCode('invalid_request_error'));
    const nobody = createOpenAiDialect({ name: 'openai', baseUrl: 'http://127.0.0.1:1/v1', apiKey: key });
    await assert.rejects((nobody.video as VideoTasks).create(creation()), hasCode('service_unavailable'));
    await nobody.close();
  });

  it('OpenAI video creation reports outcome_unknown when the vendor may have started the video', async () => {
    const answers: Record<string, (response: ServerResponse) => void> = {
      'a reset before the answer': (response) => response.socket?.resetAndDestroy(),
      'an end inside the answer': (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 500 });
        response.write('{"id":', () => response.destroy());
      },
      silence: () => undefined,
      'an answer that is cut': (response) => sendJson(response, 200, JSON.stringify(queued).slice(0, 40)),
      'an answer without a name': (response) => sendJson(response, 200, JSON.stringify({ ...queued, id: undefined })),
      'a name that leads elsewhere': (response) => sendJson(response, 200, JSON.stringify({ ...queued, id: '..' })),
      'a name that is no text of a path': (response) =>
        sendJson(response, 200, JSON.stringify({ ...queued, id: '\ud800' })),
    };
    for (const [name, answer] of Object.entries(answers)) {
      server.answer(answer);
      await assert.rejects(vendor.video.create(creation({}, { silenceMs: 500 })), hasCode('outcome_unknown'), name);
    }
    assert.equal(server.requests.length, Object.keys(answers).length, 'a creation was sent again');
  });
});

describe('video polling of the OpenAI dialect', () => {
  const pollOf = (video: object) => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(video)));
    return vendor.video.poll(about());
  };

  it('an OpenAI video poll reports the progress', async () => {
    assert.deepEqual(await pollOf(queued), { status: 'running', progress: 0 });
    assert.deepEqual(await pollOf(running), { status: 'running', progress: 33 });
    assert.deepEqual(await pollOf({ ...running, progress: null }), { status: 'running', progress: 0 });
    assert.deepEqual(await pollOf(completed), { status: 'completed', size: '1280x720', seconds: '8' });
    assert.deepEqual(await pollOf({ ...completed, seconds: 8, size: null }), { status: 'completed', seconds: '8' });
    assert.deepEqual([...new Set(received())], [`GET /v1/videos/${queued.id}`]);
    const endless = '8'.repeat(100_000);
    assert.deepEqual(await pollOf({ ...completed, size: endless, seconds: endless }), { status: 'completed' });
    for (const none of ['-8', 'Infinity', 'NaN']) {
      assert.deepEqual(await pollOf({ ...completed, seconds: none, size: 7 }), { status: 'completed' }, none);
    }
  });

  it('an OpenAI video poll tells a policy rejection from a vendor fault', async () => {
    for (const code of ['moderation_blocked', 'content_policy_violation', 'sentinel_block', 'invalid_image']) {
      const state = await pollOf(failed(code, 'Not allowed.'));
      assert.ok(state.status === 'failed', code);
      assert.deepEqual(state.error.toData(), {
        ...{ code: 'invalid_request_error', message: 'Not allowed.', vendorCode: code },
      });
    }
    for (const error of [{ code: 'internal_error', message: 'Oh.' }, { code: 'has spaces' }, null]) {
      const state = await pollOf({ ...running, status: 'failed', error });
      assert.ok(state.status === 'failed' && state.error.code === 'server_error', JSON.stringify(error));
    }
  });

  it('a video that fails shows its caller no key of the vendor, in whatever form its error repeats that', async () => {
    const bearer = Buffer.from(`Bearer ${key}`).toString('base64');
    for (const code of ['moderation_blocked', 'internal_error']) {
      const state = await pollOf(failed(code, `Refused: ${key}, ${bearer}.`));
      assert.ok(state.status === 'failed' && state.error.message.startsWith('Refused: [key]'), JSON.stringify(state));
      assert.ok(!state.error.message.includes(bearer));
    }
  });

  it("an OpenAI video poll fails with the vendor's error, and with not_found for a missing video", async () => {
    const answers = [
      [404, '{"error":{"message":"Video not found","code":null}}', 'not_found'],
      [500, '', 'server_error'],
      [401, '{"error":{"message":"bad key"}}', 'service_unavailable'],
      [200, '{"status":"dreaming"}', 'server_error'],
      [200, '[]', 'server_error'],
    ] as const;
    for (const [status, body, code] of answers) {
      server.answer((response) => sendJson(response, status, body));
      await assert.rejects(vendor.video.poll(about()), hasCode(code), `${status} ${body}`);
    }
    server.answer((response) => sendJson(response, 429, '{}', { 'retry-after': '7' }));
    await assert.rejects(vendor.video.poll(about()), (error: ApiError) => error.retryAfterMs === 7000);
    server.answer(() => undefined);
    await assert.rejects(vendor.video.poll(about({ silenceMs: 300 })), hasCode('timeout'));
    server.answer((response) => response.socket?.resetAndDestroy());
    await assert.rejects(vendor.video.poll(about()), hasCode('server_error'));
  });
});

describe('video files of the OpenAI dialect', () => {
  it("OpenAI video files are stored as they arrive, with the vendor's type when it is a video type", async () => {
    const { files, saved } = memoryFiles();
    server.answer((response) => sendFile(response, film, 'video/mp4; codecs=avc1'));
    assert.deepEqual(await vendor.video.fetch(about({ files }), 'video'), {
      ...{ file: 'file-1', type: 'video/mp4', bytes: film.length },
    });
    assert.ok(saved[0]?.content.equals(film), 'the file is not what was sent');
    server.answer((response) => sendFile(response, thumbnail, 'application/x-unknown'));
    assert.equal((await vendor.video.fetch(about({ files }), 'thumbnail'))?.type, 'image/webp');
    const [one, two] = received();
    assert.equal(one, `GET /v1/videos/${queued.id}/content?variant=video`);
    assert.equal(two, `GET /v1/videos/${queued.id}/content?variant=thumbnail`);
  });

  it('OpenAI video files are undefined when the vendor has none', async () => {
    server.answer((response) => sendJson(response, 404, '{"error":{"message":"no spritesheet"}}'));
    assert.equal(await vendor.video.fetch(about(), 'spritesheet'), undefined);
  });

  it('OpenAI video files leave nothing behind when they break off, are empty or are no files', async () => {
    const { files, saved } = memoryFiles();
    const answers: ((response: ServerResponse) => void)[] = [
      (response) => sendFile(response, film, 'video/mp4', 100_000),
      (response) => sendFile(response, Buffer.alloc(0), 'video/mp4'),
      (response) => sendJson(response, 200, '{"url":"https://elsewhere"}'),
      (response) => sendFile(response, Buffer.from('{"error":"busy"}'), 'Application/JSON'),
      (response) => sendFile(response, Buffer.from('{"error":"busy"}'), 'application/problem+json; charset=utf-8'),
      (response) => sendFile(response, Buffer.from('<h1>Busy</h1>'), 'text/html'),
      (response) => sendFile(response, Buffer.from('<svg/>'), 'video/mp4'),
      (response) => sendFile(response, Buffer.from(`${'\n'.repeat(100)}<h1>Busy</h1>`), 'video/mp4'),
      // In two pieces, the first of which says nothing.
      (response) => {
        response.writeHead(200, { 'content-type': 'video/mp4' });
        response.write('\n');
        setTimeout(() => response.end('<h1>Busy</h1>'), 100);
      },
      (response) => sendFile(response, Buffer.from('<svg/>'), 'image/svg+xml'),
      (response) => sendFile(response, Buffer.from('\x89PNG', 'latin1'), 'application/octet-stream'),
      (response) => sendJson(response, 500, '{}'),
    ];
    for (const answer of answers) {
      server.answer(answer);
      await assert.rejects(vendor.video.fetch(about({ files }), 'video'), hasCode('server_error'));
    }
    assert.equal(saved.length, 0);
  });

  it('OpenAI video files fail with the error of the storage', async () => {
    server.answer((response) => sendFile(response, film, 'video/mp4'));
    const save = () => Promise.reject(new Error('the disk is full'));
    const files = { ...memoryFiles().files, save };
    await assert.rejects(
      vendor.video.fetch(about({ files }), 'video'),
      ({ code, cause }: ApiError) => code === 'server_error' && (cause as Error).message === 'the disk is full',
    );
  });

  it('OpenAI video files that are too large are not stored', async () => {
    const http = createHttpClient({ vendor: 'openai', baseUrl: server.baseUrl, headers: {}, secret: key });
    const small = openAiVideos(http, new OpenAiAnswerReader('openai', key), 200_000);
    const { files, saved } = memoryFiles();
    server.answer((response) => sendFile(response, film, 'video/mp4'));
    await assert.rejects(small.fetch(about({ files }), 'video'), hasCode('request_too_large'));
    assert.equal(saved.length, 0);
    await http.close();
  });

  it('OpenAI video files are deleted with the discarded video', async () => {
    const deleted = JSON.stringify({ id: queued.id, object: 'video.deleted', deleted: true });
    server.answer((response) => sendJson(response, 200, deleted));
    await vendor.video.discard?.(about());
    assert.deepEqual(received(), [`DELETE /v1/videos/${queued.id}`]);
    server.answer((response) => sendJson(response, 404, '{}'));
    await assert.rejects(vendor.video.discard?.(about()) as Promise<void>, hasCode('not_found'));
  });
});

it("OpenAI's own client reads the recorded videos as intended", async () => {
  const client = new OpenAI({ apiKey: key, baseURL: server.baseUrl, maxRetries: 0 });
  server.answer((response, { method, url }) => {
    if (url?.includes('/content')) sendFile(response, film, 'video/mp4');
    else sendJson(response, 200, JSON.stringify(method === 'POST' ? queued : completed));
  });
  const video = await client.videos.create({ model: 'sora-2', prompt: 'A cat' });
  assert.deepEqual({ ...video }, queued);
  assert.equal((await client.videos.retrieve(video.id)).status, 'completed');
  assert.ok(Buffer.from(await (await client.videos.downloadContent(video.id)).arrayBuffer()).equals(film));
  const own = server.requests.map(({ method, url }) => `${method} ${url}`);
  assert.deepEqual(own.slice(0, 2), ['POST /v1/videos', `GET /v1/videos/${queued.id}`]);
});

describe('executeVideo and followVideo', () => {
  const row = madeUpModel({ id: 'film', capability: 'video', routes: [{ vendor: 'openai', model: 'sora-2' }] });
  const account = 'an-account';

  function create(rememberTask: RememberTask, call: Partial<VendorCall> = {}): Promise<JobAnswer | Pause> {
    const performance = { vendor, row, endpoint: 'videos', keep: true, sink: collect() };
    return executeVideo({ ...performance, call: creation({}, call), rememberTask });
  }

  function follow(call: Partial<VideoCall> = {}, ageMs = 0, isHurried = false): Promise<JobAnswer | Pause> {
    const known: VendorTask = {
      ...{ vendor: 'openai', account, model: 'sora-2', task: queued.id },
      ...{ attempt: 1, beganAt: Date.now() - ageMs },
    };
    const seconds = async (made: string | undefined): Promise<number | undefined> => Number(made ?? 4);
    const task: KnownTask = {
      known,
      hasOwnKey: true,
      progress: 12,
      filesStayMs: 60_000,
      seconds,
      mayFetch: () => true,
      isHurried,
    };
    const { model, signal, silenceMs, files } = callOf({ model: 'sora-2' });
    return followVideo(vendor, { model, signal, silenceMs, files, ...call }, task);
  }

  async function pauseOf(result: Promise<JobAnswer | Pause>): Promise<Pause> {
    const pause = await result;
    assert.ok('pauseMs' in pause, 'the job ended');
    return pause;
  }

  it('followVideo gives a poll that is in the way of others hardly any time', { timeout: 20_000 }, async () => {
    server.answer(() => undefined);
    const { progress, error } = await pauseOf(follow({}, 0, true));
    assert.deepEqual([progress, error?.code], [12, 'timeout']);
  });

  it('executeVideo creates the task, stores its id first, and polls soon', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(running)));
    const names: string[] = [];
    const { progress, pauseMs } = await pauseOf(create(async (name) => void names.push(name)));
    assert.deepEqual([names, progress, received()], [[queued.id], 0, ['POST /v1/videos']]);
    assert.ok(pauseMs >= 1000 && pauseMs <= 2000, String(pauseMs));
  });

  it('executeVideo stores no id that is too long to be kept', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify({ ...queued, id: 'v'.repeat(1_000_000) })));
    await assert.rejects(
      create(async () => assert.fail('it is stored')),
      hasCode('outcome_unknown'),
    );
  });

  it('executeVideo creates nothing for an aborted job, and stores the id when aborted during the creation', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(queued)));
    await assert.rejects(
      create(async () => undefined, { signal: AbortSignal.abort() }),
      hasCode('cancelled'),
    );
    assert.equal(server.requests.length, 0);
    const stop = new AbortController();
    server.answer((response) => {
      stop.abort();
      setTimeout(() => sendJson(response, 200, JSON.stringify(queued)), 100);
    });
    const names: string[] = [];
    await create(async (name) => void names.push(name), { signal: stop.signal });
    assert.deepEqual(names, [queued.id]);
  });

  it('followVideo waits longer for the next poll, the older the task is', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify({ ...running, progress: 33.9 })));
    for (const [age, least] of [
      [0, 2000],
      [30_000, 5000],
      [3_600_000, 10_000],
    ] as const) {
      const { progress, pauseMs } = await pauseOf(follow({}, age));
      assert.equal(progress, 33);
      assert.ok(pauseMs >= least && pauseMs <= least * 1.25, `${pauseMs} ms at an age of ${age} ms`);
    }
  });

  it('followVideo ends with a page or a picture in place of the film, and polls again after JSON', async () => {
    const answerFilm = (text: string, type: string): void => {
      server.answer((response, { url }) => {
        if (url?.includes('/content')) sendFile(response, Buffer.from(text), type);
        else sendJson(response, 200, JSON.stringify(completed));
      });
    };
    answerFilm('<h1>Sign in</h1>', 'text/html');
    await assert.rejects(follow(), { code: 'server_error', message: /text in place of a video/ });
    answerFilm('\x89PNG', 'image/png');
    await assert.rejects(follow(), { code: 'server_error', message: /picture in place of a video/ });
    answerFilm('{"error":"not yet"}', 'application/octet-stream');
    assert.equal((await pauseOf(follow())).error?.code, 'server_error');
  });

  it('followVideo keeps the progress between 0 and 100', async () => {
    for (const [said, expected] of [
      [-5, 0],
      [250, 100],
    ]) {
      server.answer((response) => sendJson(response, 200, JSON.stringify({ ...running, progress: said })));
      assert.equal((await pauseOf(follow())).progress, expected);
    }
  });

  it('followVideo polls again later after a failed poll, as late as the vendor says', async () => {
    for (const [status, headers, least] of [
      [500, {}, 2000],
      [429, { 'retry-after': '20' }, 20_000],
      [503, { 'retry-after': '3600' }, 60_000],
      [401, {}, 2000],
    ] as const) {
      server.answer((response) => sendJson(response, status, '{}', headers));
      const { progress, pauseMs, error } = await pauseOf(follow());
      assert.equal(progress, 12);
      assert.ok(pauseMs >= least && pauseMs <= least * 1.25, `${pauseMs} ms after ${status}`);
      assert.ok(error instanceof ApiError);
    }
    server.answer((response) => response.socket?.resetAndDestroy());
    await pauseOf(follow());
    server.answer(() => undefined);
    await pauseOf(follow({ silenceMs: 200 }));
    assert.ok(
      received().every((request) => request.startsWith('GET ')),
      'something else than a poll was sent',
    );
  });

  it('followVideo ends the job when the video is missing or failed, and is cancelled with the job', async () => {
    server.answer((response) => sendJson(response, 404, '{}'));
    await assert.rejects(follow(), hasCode('outcome_unknown'));
    server.answer((response) => sendJson(response, 200, JSON.stringify(failed('moderation_blocked'))));
    await assert.rejects(follow(), hasCode('invalid_request_error'));
    await assert.rejects(follow({ signal: AbortSignal.abort() }), hasCode('cancelled'));
  });

  /** Answers a completed video whose files are sent by `content`. */
  function answerCompleted(content: (response: ServerResponse, variant: string) => void): void {
    server.answer((response, { url = '' }) => {
      const variant = new URL(url, server.baseUrl).searchParams.get('variant');
      if (variant === null) sendJson(response, 200, JSON.stringify(completed));
      else content(response, variant);
    });
  }

  it('followVideo ends with the files that exist', async () => {
    const { files, saved } = memoryFiles();
    answerCompleted((response, variant) => {
      if (variant === 'video') sendFile(response, film, 'video/mp4');
      else if (variant === 'thumbnail') sendFile(response, thumbnail, 'image/webp');
      else sendJson(response, 404, '{}');
    });
    const answer = await follow({ files });
    assert.ok('body' in answer);
    const { completedAt, expiresAt, ...end } = JSON.parse(bodyText(answer.body)) as VideoEnd;
    assert.deepEqual(end, {
      ...{ vendor: 'openai', account, task: queued.id, size: '1280x720', seconds: '8' },
      files: {
        video: { file: 'file-1', type: 'video/mp4', bytes: film.length },
        thumbnail: { file: 'file-2', type: 'image/webp', bytes: thumbnail.length },
      },
    });
    assert.ok(Math.abs(completedAt - Date.now() / 1000) < 5 && expiresAt === completedAt + 60);
    assert.equal(saved.length, 2);
  });

  it('followVideo fetches a truncated file again, and gives up a preview sooner than the video', async () => {
    const { files, saved } = memoryFiles();
    let films = 0;
    answerCompleted((response, variant) => {
      if (variant === 'video') sendFile(response, film, 'video/mp4', ++films < 3 ? 1000 : film.length);
      else if (variant === 'thumbnail') sendJson(response, 500, '{}');
      else sendJson(response, 404, '{}');
    });
    const answer = await follow({ files });
    assert.ok('body' in answer);
    assert.deepEqual(Object.keys((JSON.parse(bodyText(answer.body)) as VideoEnd).files), ['video']);
    assert.deepEqual([films, saved.length], [3, 1]);
  });

  it('followVideo stores a film once where the vendor sends it in place of previews', async () => {
    const { files, saved } = memoryFiles();
    answerCompleted((response) => sendFile(response, film, 'video/mp4'));
    const answer = await follow({ files });
    assert.ok('body' in answer);
    assert.deepEqual(Object.keys((JSON.parse(bodyText(answer.body)) as VideoEnd).files), ['video']);
    assert.equal(saved.length, 1);
  });

  it('followVideo ends with the film while previews do not come, and asks for each of them once', async () => {
    const { files } = memoryFiles();
    const asked: string[] = [];
    answerCompleted((response, variant) => {
      asked.push(variant);
      if (variant === 'video') sendFile(response, film, 'video/mp4');
    });
    const answer = await follow({ files, silenceMs: 200 });
    assert.ok('body' in answer);
    assert.deepEqual(asked, ['video', 'thumbnail', 'spritesheet']);
  });

  it('followVideo leaves a video that cannot be fetched now to the next poll, and fails when there is none', async () => {
    const { files } = memoryFiles();
    answerCompleted((response) => sendFile(response, film, 'video/mp4', 1000));
    assert.equal((await pauseOf(follow({ files }))).error?.code, 'server_error');
    answerCompleted((response) => sendJson(response, 404, '{}'));
    await assert.rejects(follow({ files }), hasCode('outcome_unknown'));
  });
});
