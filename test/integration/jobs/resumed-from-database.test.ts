import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';

const tools = [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }];
const calling = 'TOOL:look_up {"a":"some longer text to be said"}';
const said = (content: string) => [{ role: 'user', content }];

/** Streams of each kind whose frames are joined where they are stored, by path. */
const requests: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { messages: said('WORDS:20'), stream_options: { include_usage: true } }],
  ['/v1/chat/completions', { messages: said(calling), tools }],
  ['/v1/chat/completions', { messages: said('Hello'), model: 'sandbox-reasoning', n: 2 }],
  ['/v1/messages', { messages: said('WORDS:20'), max_tokens: 100 }],
  [
    '/v1/messages',
    {
      ...{ messages: said(calling), max_tokens: 100, model: 'sandbox-reasoning' },
      tools: [{ name: 'look_up', input_schema: { type: 'object' } }],
    },
  ],
  ['/v1/responses', { input: 'WORDS:20' }],
  ['/v1/responses', { input: 'WORDS:20', model: 'sandbox-responses' }],
  ['/v1/responses', { input: 'Hello', model: 'sandbox-reasoning' }],
  ['/v1/responses', { input: 'WORDS:20', background: true }],
];

/** The events of a stream, each as it came, and the position after it. */
function eventsOf(stream: string): { readonly text: string; readonly id: string | undefined }[] {
  const blocks = stream.split('\n\n').slice(0, -1);
  return blocks.map((text) => ({ text, id: /^id: (.*)$/m.exec(text)?.[1] }));
}

describe('streams that are resumed from the database', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start();
  });
  after(() => records.stop());

  for (const [path, body] of requests) {
    it(`a stream of ${path} with ${JSON.stringify(body)} is resumed after each event with exactly the rest, or refused`, async () => {
      const request = { model: 'sandbox-chat', ...body, stream: true };
      const response = await records.post(request, { 'idempotency-key': randomUUID() }, { path });
      assert.equal(response.status, 200);
      const whole = eventsOf(await response.text());
      const id = jobIdOf(response);
      await records.forget(id);
      const events = (position: string): Promise<Response> =>
        records.gateway.fetch(`/v1/jobs/${id}/events`, { headers: { 'last-event-id': position } });
      for (const [index, event] of whole.entries()) {
        if (event.id === undefined) continue;
        const rest = await events(event.id);
        if (rest.status === 200) {
          const expected = whole.slice(index + 1).map(({ text }) => `${text}\n\n`);
          assert.equal(await rest.text(), expected.join(''), `after ${event.id}`);
        } else await assertErrorAnswer(rest, 410, 'resume_expired');
      }
      const last = whole.findLast((event) => event.id !== undefined)?.id?.split('.')[0] as string;
      const after = await events(last);
      assert.equal(after.status, 200, 'who has all of it is not told that it is gone');
      assert.match(await after.text(), /^(data: \[DONE\]\n\n)?$/);
    });
  }
});
