import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { sseEvents } from '../../support/sse-events.ts';

const said = 'Reply with exactly: one two three four';
const requests: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { model: 'sandbox-chat', messages: [{ role: 'user', content: said }] },
  '/v1/completions': { model: 'sandbox-chat', prompt: said },
  '/v1/responses': { model: 'sandbox-responses', input: said },
  '/v1/messages': { model: 'sandbox-chat', max_tokens: 50, messages: [{ role: 'user', content: said }] },
};

/**
 * What a client gets that looks at two lines at a time, as cleverclient (of simple-openai, Java) does: data whose line
 * before is empty, or the name of its event.
 */
function pairedData(text: string): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const isPaired = line.startsWith('data: ') && /^(event: \w[\w.]*)?$/.test(lines[index - 1] ?? '');
    return isPaired ? [line.slice('data: '.length)] : [];
  });
}

describe('lines of a stream', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway?.stop());

  for (const [path, request] of Object.entries(requests)) {
    it(`POST ${path} streams lines that a pairing client reads completely, and resumes after each event`, async () => {
      const body = JSON.stringify({ ...request, stream: true });
      const headers = { 'idempotency-key': `lines of ${path}` };
      const response = await gateway.fetch(path, { method: 'POST', headers, body });
      const whole = await response.text();
      assert.equal(response.status, 200, whole);
      const events = sseEvents(whole);
      assert.ok(events.length > 4, whole);
      assert.deepEqual(
        pairedData(whole),
        events.map(({ data }) => data),
      );
      const job = response.headers.get('x-request-id');
      for (const [index, { id, data }] of events.entries()) {
        // Nothing comes after the mark of the end, which stands as OpenAI sends it.
        if (data === '[DONE]') assert.ok(id === undefined && whole.endsWith('\n\ndata: [DONE]\n\n'));
        else {
          assert.ok(id !== undefined, `no id: ${data}`);
          const rest = await gateway.fetch(`/v1/jobs/${job}/events`, { headers: { 'last-event-id': id } });
          assert.deepEqual(sseEvents(await rest.text()), events.slice(index + 1));
        }
      }
    });
  }
});
