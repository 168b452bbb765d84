import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';

/** The header of a PNG of 320×200 pixels, which is all that the sandbox reads, and random bytes behind it. */
function imageUrl(bytes: number): string {
  const header = Buffer.from('89504e470d0a1a0a0000000d4948445200000140000000c80802000000', 'hex');
  return `data:image/png;base64,${Buffer.concat([header, randomBytes(bytes)]).toString('base64')}`;
}

describe('large and multimodal chat completions', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(() => gateway.stop());

  async function blobs(): Promise<string[]> {
    const entries = await readdir(join(gateway.dataDir, 'blobs'), { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile() && entry.name !== 'identity');
    return files.map((entry) => join(entry.parentPath, entry.name));
  }

  /** Everything that Redis is told while `work` runs, the commands of scripts included. */
  async function redisTraffic(work: () => Promise<void>): Promise<string> {
    const monitor = connect({ host: '127.0.0.1', port: Number(new URL(gateway.redisUrl).port) });
    const heard: string[] = [];
    monitor.setEncoding('latin1').on('data', (text: string) => heard.push(text));
    try {
      monitor.write('MONITOR\r\n');
      await once(monitor, 'data');
      await work();
      return heard.join('');
    } finally {
      monitor.destroy();
    }
  }

  it('a chat with an image stores it as a blob, never in Redis, and deletes it afterwards', async () => {
    const url = imageUrl(3000);
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url } },
    ];
    let seen: string[] = [];
    const traffic = await redisTraffic(async () => {
      const request = { ...held(''), messages: [{ role: 'user', content }], sandbox: { first_token_ms: 400 } };
      const answered = client.chat.completions.create(request as OpenAI.Chat.ChatCompletionCreateParamsNonStreaming);
      seen = await eventually(async () => {
        const files = await blobs();
        assert.equal(files.length, 1);
        const text = await readFile(files[0] as string, 'utf8');
        // It may be seen while it is being written.
        assert.ok(text.endsWith('}'), 'the text is not whole');
        return [text];
      });
      assert.match((await answered).choices[0]?.message.content ?? '', /PNG image of 320×200 pixels/);
    });
    const data = url.slice(url.indexOf(',') + 1);
    assert.ok(seen[0]?.includes(data), 'the blob holds the image');
    assert.ok(traffic.includes('requestBlob'), 'the queued job names the blob');
    assert.ok(!traffic.includes(data.slice(40, 200)), 'Redis never holds the image');
    await eventually(async () => assert.deepEqual(await blobs(), []));
  });

  it('a chat with an image over 256 KiB stores it as a blob', async () => {
    const url = imageUrl(400_000);
    const traffic = await redisTraffic(async () => {
      const answer = await client.chat.completions.create({
        model: 'sandbox-chat',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      });
      assert.match(answer.choices[0]?.message.content ?? '', /320×200/);
    });
    // The texts of scripts, which each connection sends once, are no part of it: they alone can be as long.
    const told = traffic.split('\n').filter((line) => !line.includes('] "eval" "-- '));
    const characters = told.join('\n').length;
    assert.ok(characters < url.length / 2, `Redis was told ${characters} characters`);
    for (let from = 40; from < url.length - 160; from += 10_000) {
      assert.ok(
        !traffic.includes(url.slice(from, from + 160)),
        `Redis was told of the image from character ${from} on`,
      );
    }
    await eventually(async () => assert.deepEqual(await blobs(), []));
  });

  for (const size of [70_000, 5 * 1024 * 1024]) {
    it(`a chat request of ${size} characters is stored as a blob and answered in full`, async () => {
      const filler = randomBytes(Math.ceil(size / 2)).toString('hex');
      const messages = [
        { role: 'system', content: filler },
        { role: 'user', content: 'Reply with exactly: got it' },
      ];
      const request = { ...held(''), messages } as OpenAI.Chat.ChatCompletionCreateParamsNonStreaming;
      const traffic = await redisTraffic(async () => {
        const answer = await client.chat.completions.create(request);
        assert.equal(answer.choices[0]?.message.content, 'got it');
        assert.ok((answer.usage?.prompt_tokens ?? 0) > size / 20);
      });
      assert.ok(!traffic.includes(filler.slice(0, 64)));
      await eventually(async () => assert.deepEqual(await blobs(), []));
    });
  }

  it('a chat request just under 64 KiB goes through the queue itself', async () => {
    const filler = randomBytes(30_000).toString('hex');
    const traffic = await redisTraffic(async () => {
      const answer = await client.chat.completions.create(held(`Reply with exactly: ${filler}`));
      assert.equal(answer.choices[0]?.message.content, filler);
    });
    assert.ok(traffic.includes(filler));
    assert.ok(!traffic.includes('requestBlob'));
  });

  it('a chat whose client disconnects before a worker claims it has its blob removed', async () => {
    const idle = await TestGateway.start({ workers: 0 });
    const leave = new AbortController();
    try {
      const url = imageUrl(1000);
      const content = [{ type: 'image_url', image_url: { url } }];
      const answered = idle.fetch('/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content }] }),
        signal: leave.signal,
      });
      const folder = join(idle.dataDir, 'blobs');
      const count = async (): Promise<number> =>
        (await readdir(folder, { recursive: true })).filter((path) => /[0-9a-f-]{36}$/.test(path)).length;
      await eventually(async () => assert.equal(await count(), 1));
      leave.abort();
      await assert.rejects(answered);
      await eventually(async () => assert.equal(await count(), 0), 3000);
    } finally {
      await idle.stop();
    }
  });

  it('a held chat answer over 64 KiB does not go through Redis', async () => {
    const words = Array.from({ length: 20_000 }, (_, index) => `word${index + 1}`).join(' ');
    const traffic = await redisTraffic(async () => {
      const answer = await client.chat.completions.create(held('WORDS:20000'));
      assert.equal(answer.choices[0]?.message.content, words);
    });
    assert.ok(!traffic.includes('word7000 word7001'));
  });

  it('a streamed chat event over 64 KiB arrives whole and in order', async () => {
    const fault = { kind: 'large_event', after_tokens: 5, bytes: 200_000 };
    let text = '';
    const traffic = await redisTraffic(async () => {
      text = await streamedText(await client.chat.completions.create(streamed('WORDS:40', { sandbox: { fault } })));
    });
    assert.ok(!traffic.includes('x'.repeat(66_000)));
    const plain = Array.from({ length: 40 }, (_, index) => `word${index + 1}`).join(' ');
    assert.match(text, /^word1 word2 word3 word4 word5x{100000,200000} word6 word7/);
    assert.equal(text.replace(/x+/, ''), plain);
  });

  it('a long chat stream arrives complete at a slow reader', async () => {
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(streamed('WORDS:20000')),
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let text = '';
    for (let reads = 0; ; reads++) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
      if (reads % 20 === 0) await once(AbortSignal.timeout(5), 'abort');
    }
    const words = [...text.matchAll(/"content":" ?word(\d+)"/g)].map((match) => Number(match[1]));
    assert.deepEqual(
      words,
      Array.from({ length: 20_000 }, (_, index) => index + 1),
    );
    assert.ok(text.endsWith('data: [DONE]\n\n'));
  });
});
