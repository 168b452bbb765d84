import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt } from '../../support/gateway.ts';
import { JobRecords, later } from '../../support/job-records.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

describe('timeouts that client libraries send on their own', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start({ configuration: oneAttempt });
  });
  after(() => records?.stop());

  const endsOf = async (user: string): Promise<(string | null)[]> =>
    (await vendorCalls(records.gateway, user)).map(({ ended }) => ended);

  it("OpenAI's client whose timeout is shorter than its keyed request gets the answer of the first try by a retry", async () => {
    const client = records.gateway.client({ maxRetries: 2 });
    const body = held('WORDS:30@10', { user: 'keyed' });
    const options = { timeout: 2000, headers: { 'idempotency-key': 'keyed' } };
    const { choices } = await client.chat.completions.create(body, options);
    assert.equal(choices[0]?.message.content?.split(' ').length, 30);
    assert.deepEqual(await endsOf('keyed'), ['completed']);
  });

  it("OpenAI's client gets the whole of a stream that takes longer than its timeout, which is for the beginning", async () => {
    const client = records.gateway.client();
    for (const headers of [{}, { 'idempotency-key': 'streamed' }, { 'x-sluice-cache': '60' }]) {
      const body = streamed('WORDS:30@10', { user: `streamed-${Object.keys(headers)}` });
      const text = await streamedText(await client.chat.completions.create(body, { timeout: 2000, headers }));
      assert.equal(text.split(' ').length, 30);
    }
  });

  it('a stream that has not begun within its timeout gets 504, and its vendor is not called on', async () => {
    const body = streamed('Hi', { user: 'silent', sandbox: { first_token_ms: 60_000 } });
    await assertErrorAnswer(await records.post(body, { 'x-stainless-timeout': '1' }), 504, 'timeout');
    await eventually(async () => assert.deepEqual(await endsOf('silent'), ['client_closed']));
  });

  it('a keyed request gets 504 after its own timeout, and a repeat the answer', async () => {
    const body = held('WORDS:30@10', { user: 'impatient' });
    const headers = { 'idempotency-key': 'impatient' };
    await assertErrorAnswer(await records.post(body, { ...headers, 'x-stainless-timeout': '1' }), 504, 'timeout');
    const again = await records.post(body, headers);
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
    assert.deepEqual(await endsOf('impatient'), ['completed']);
  });

  it('an asynchronous request, for which nobody waits, runs longer than its timeout', async () => {
    const body = held('WORDS:30@10', { user: 'asynchronous' });
    const id = await records.postLater(body, { ...later, 'x-stainless-timeout': '1' });
    const { status } = await eventually(async () => {
      const job = await records.read(id);
      assert.ok(/completed|failed/.test(job.status), job.status);
      return job;
    }, 20_000);
    assert.equal(status, 'completed');
    assert.deepEqual(await endsOf('asynchronous'), ['completed']);
  });
});
