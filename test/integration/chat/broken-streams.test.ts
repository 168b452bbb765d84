import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { streamed, streamedText } from '../../support/chat-requests.ts';
import { completionErrorDetails, type ErrorDetails } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';

describe('streams broken by their vendor', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ settings: { SLUICE_VENDOR_SILENCE_SECONDS: '1' } });
  });
  after(() => gateway.stop());

  /** A stream whose last event must be an error: what it said before, and the error. */
  async function broken(fault: object): Promise<{ text: string; error: ErrorDetails }> {
    const request = streamed('WORDS:20', { sandbox: { fault } });
    const init = { method: 'POST', body: JSON.stringify(request) };
    const response = await gateway.fetch('/v1/chat/completions', init);
    assert.equal(response.status, 200);
    const events = sseEvents(await response.text());
    assert.ok(events.every(({ data }) => data !== '[DONE]'));
    const last = events.pop();
    assert.match(last?.id ?? '', /^\d+\.0$/);
    return { text: textOf(events), error: completionErrorDetails(JSON.parse(last?.data ?? '')) };
  }

  const words = Array.from({ length: 20 }, (_, index) => `word${index + 1}`);

  for (const kind of ['reset', 'malformed', 'eof', 'silence']) {
    it(`a stream with the fault ${kind} after five tokens sends them, then an error as its last event, and no [DONE]`, async () => {
      const { text, error } = await broken({ kind, after_tokens: 5 });
      assert.equal(text, words.slice(0, 5).join(' '));
      assert.ok(['stream_interrupted', 'timeout'].includes(error.code ?? ''), error.code ?? '');
      assert.equal(error.type, 'server_error');
    });
  }

  it('a stream turns an error event of its vendor into its last event, with the meaning of its code', async () => {
    const limited = await broken({ kind: 'rate_limit', after_tokens: 5 });
    assert.equal(limited.error.code, 'rate_limit_exceeded');
    assert.equal(limited.text, words.slice(0, 5).join(' '));
    const failed = await broken({ kind: 'error', status: 500, after_tokens: 3 });
    assert.equal(failed.error.type, 'server_error');
    assert.equal(failed.text, words.slice(0, 3).join(' '));
  });

  it('the OpenAI client throws an APIError after the tokens of a broken stream', async () => {
    const request = streamed('WORDS:20', { sandbox: { fault: { kind: 'reset', after_tokens: 5 } } });
    const texts: string[] = [];
    await assert.rejects(
      async () => {
        for await (const chunk of await gateway.client().chat.completions.create(request)) {
          texts.push(chunk.choices[0]?.delta.content ?? '');
        }
      },
      (error) => error instanceof OpenAI.APIError && error.code === 'stream_interrupted',
    );
    assert.equal(texts.join(''), words.slice(0, 5).join(' '));
  });

  it('a stream whose vendor sends a finish reason but no [DONE] is complete', async () => {
    const request = streamed('WORDS:20', { sandbox: { fault: { kind: 'no_done' } } });
    const init = { method: 'POST', body: JSON.stringify(request) };
    const events = sseEvents(await (await gateway.fetch('/v1/chat/completions', init)).text());
    assert.equal(events.at(-1)?.data, '[DONE]');
    assert.equal(textOf(events), words.join(' '));
  });

  it('a stream that arrives byte by byte with CRLF is read correctly', async () => {
    const request = streamed('Reply with exactly: é😀\u2028漢字', { sandbox: { fault: { kind: 'slow_bytes' } } });
    assert.equal(await streamedText(await gateway.client().chat.completions.create(request)), 'é😀\u2028漢字');
  });

  it('broken streams leave nothing in Redis', async () => {
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });
});
