import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobObject } from '../../api/pipeline/job-object.ts';
import { eventually } from '../support/eventually.ts';
import { type LauncherProcess, runKeys, startLauncher } from './launcher-process.ts';

describe('without a redis-server on the PATH', () => {
  let folder = '';
  let dataDir = '';
  let launcher: LauncherProcess;
  let baseUrl = '';
  let apiKey = '';

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-in-memory-'));
    dataDir = join(folder, 'data');
    const bin = join(folder, 'bin');
    await mkdir(bin);
    await symlink(process.execPath, join(bin, 'node'));
    launcher = await startLauncher({ dataDir, settings: { PATH: bin } });
    ({ baseUrl, key: apiKey } = await launcher.welcome());
  });
  after(async () => {
    launcher?.signal('SIGINT');
    assert.equal(await launcher?.exit, 0);
    await rm(folder, { recursive: true, force: true });
  });

  function send(method: string, path: string, { key = apiKey, body, ...headers }: Record<string, unknown> = {}) {
    return fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  const chat = (prompt: string, more: object = {}) => ({
    body: { model: 'sandbox-chat', messages: [{ role: 'user', content: prompt }], ...more },
  });

  test('it runs in memory and says so', async () => {
    assert.match(launcher.errors, /^No redis-server or valkey-server is on the PATH: .* trying out only .*\n$/);
    assert.ok('in-memory-redis' in launcher.children());
    const streamed = await (
      await send('POST', '/chat/completions', chat('Reply with exactly: in memory', { stream: true }))
    ).text();
    const said = [...streamed.matchAll(/"delta":\{[^}]*"content":"([^"]*)"/g)].map(([, text]) => text);
    assert.equal(said.join(''), 'in memory');
    assert.match(streamed, /data: \[DONE\]/);
  });

  test('a stream that is cancelled can be read again, as far as it came', async () => {
    const streamed = await send('POST', '/chat/completions', chat('WORDS:200@20', { stream: true }));
    const job = streamed.headers.get('x-request-id');
    const wordsOf = (text: string): string[] =>
      [...text.matchAll(/"content":" ?(word\d+)"/g)].map(([, word]) => word as string);
    let text = '';
    for await (const chunk of (streamed.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      const had = wordsOf(text).length;
      text += chunk;
      if (had < 5 && wordsOf(text).length >= 5) assert.equal((await send('DELETE', `/jobs/${job}`)).status, 200);
    }
    assert.match(text, /"code":"cancelled"/);
    const again = await (await send('GET', `/jobs/${job}/events`)).text();
    assert.match(again, /"code":"cancelled"/);
    assert.deepEqual(wordsOf(again), wordsOf(text));
  });

  test('its scripts reckon with large numbers: times in milliseconds, and limits', async () => {
    const limits = ['--tpm', '1000000000000', '--budget', '1000000'];
    const { key } = JSON.parse((await runKeys(dataDir, ['create', ...limits, '--json'])).stdout) as { key: string };
    const before = Math.floor(Date.now() / 1000);
    const accepted = await send('POST', '/chat/completions', { key, prefer: 'respond-async', ...chat('Hello') });
    assert.equal(accepted.status, 202);
    assert.match(String(accepted.headers.get('x-ratelimit-remaining-tokens')), /^999999\d{6}$/);
    const { id } = (await accepted.json()) as JobObject;
    const job = await eventually(async () => {
      const job = (await (await send('GET', `/jobs/${id}`, { key })).json()) as JobObject;
      assert.equal(job.status, 'completed');
      return job;
    });
    for (const time of [job.started_at, job.finished_at]) {
      assert.ok(time !== null && time >= before && time <= Date.now() / 1000 + 1, JSON.stringify(job));
    }
  });

  test('a refused request is found by its id', async () => {
    const { key } = JSON.parse((await runKeys(dataDir, ['create', '--operator', '--json'])).stdout) as { key: string };
    const refused = await send('POST', '/chat/completions', { body: { model: 'sandbox-chat' } });
    const id = refused.headers.get('x-request-id');
    await eventually(async () => {
      const headers = { authorization: `Bearer ${key}` };
      const found = await fetch(baseUrl.replace(/v1$/, `admin/v1/requests/${id}`), { headers });
      const text = await found.text();
      assert.equal(found.status, 200, text);
      assert.equal((JSON.parse(text) as { refusal: { status: number } }).refusal.status, 400);
    });
  });

  test('requests that come together are all answered', async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) => send('POST', '/chat/completions', chat(`Reply with exactly: ${at}`))),
    );
    for (const [at, answer] of answers.entries()) {
      const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
      assert.equal(choices[0]?.message.content, String(at));
    }
  });
});
