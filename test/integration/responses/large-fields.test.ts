import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
before(async () => {
  gateway = await TestGateway.start();
});
after(() => gateway?.stop());

const post = (body: object): Promise<Response> =>
  gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify({ model: 'sandbox-chat', ...body }) });

describe('fields of a response that each of its readings repeats', () => {
  it('a response is refused whose fields beside its input have more values than the event loop may parse at each reading', async () => {
    const properties = Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`field${index}`, 1]));
    const tools = [{ type: 'function', name: 'look_up', parameters: { type: 'object', properties } }];
    const refused = await assertErrorAnswer(await post({ input: 'Hi', tools }), 400, 'invalid_request_error');
    assert.match(refused.message, /^Too many values beside 'input'/);
    const input = Array.from({ length: 30_000 }, () => ({ role: 'user', content: 'Hi' }));
    assert.equal((await post({ input, max_output_tokens: 16 })).status, 200, 'the input may have more');
  });

  it('long instructions are counted among what may be read at a time', async () => {
    const made = await post({ input: 'Hi', instructions: 'Be brief. '.repeat(120_000) });
    const { id } = (await made.json()) as { id: string };
    const paths = [
      `/v1/responses/${id}`,
      `/v1/responses/${id}/input_items`,
      `/v1/jobs/${id.replace('resp_', 'job_')}`,
      `/v1/jobs/${id.replace('resp_', 'job_')}/events`,
    ];
    const [small, large] = [
      await gateway.startApi({ SLUICE_BODIES_MIB: '1' }),
      await gateway.startApi({ SLUICE_BODIES_MIB: '16' }),
    ];
    for (const path of paths) {
      const refused = await gateway.fetch(path, { url: small.url });
      const { message } = await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
      assert.match(message, /^Too many bytes of this account's requests are under way/, path);
      const read = await gateway.fetch(path, { url: large.url });
      assert.equal(read.status, 200, path);
      await read.text();
    }
    const body = JSON.stringify({ model: 'sandbox-chat', input: 'Hi', previous_response_id: id });
    const goOn = (url: string) => gateway.fetch('/v1/responses', { method: 'POST', body, url });
    await assertErrorAnswer(await goOn(small.url), 429, 'rate_limit_exceeded');
    assert.equal((await goOn(large.url)).status, 200);
  });

  it('the events that repeat long instructions are counted until they are sent', async () => {
    const made = await post({ input: 'Hi', instructions: 'Be brief. '.repeat(800_000) });
    const { id } = (await made.json()) as { id: string };
    const { url } = await gateway.startApi({ SLUICE_BODIES_MIB: '128' });
    const watch = (signal?: AbortSignal): Promise<Response> =>
      gateway.fetch(`/v1/jobs/${id.replace('resp_', 'job_')}/events`, { url, ...(signal && { signal }) });
    const leaving = new AbortController();
    // It reads none of them: they are more than a connection has room for.
    assert.equal((await watch(leaving.signal)).status, 200);
    await assertErrorAnswer(await watch(), 429, 'rate_limit_exceeded');
    leaving.abort();
    await eventually(async () => {
      const read = await watch();
      await read.text();
      assert.equal(read.status, 200);
    });
  });
});
