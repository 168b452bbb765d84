import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { megabytes, peakWhile } from '../../support/faults/resident-memory.ts';
import { JobRecords } from '../../support/job-records.ts';
import { readSse, sseEvents, type WireEvent } from '../../support/sse-events.ts';

type Response = OpenAI.Responses.Response;

let records: JobRecords;
before(async () => {
  records = await JobRecords.start();
});
after(() => records?.stop());

const jobIdOf = ({ id }: { id: string }): string => id.slice('resp_'.length);
const post = (body: object, headers: Record<string, string> = {}) =>
  records.post(body, headers, { path: '/v1/responses' });
const get = (path: string, headers: Record<string, string> = {}) =>
  records.gateway.fetch(`/v1/responses/${path}`, { headers });

async function create(body: object): Promise<Response> {
  const answer = await post(body);
  assert.equal(answer.status, 200);
  return (await answer.json()) as Response;
}

const typesOf = (events: readonly WireEvent[]): string[] =>
  events.map(({ data }) => (data === '[DONE]' ? data : (JSON.parse(data) as { type: string }).type));

/** What one account may keep of a response ends: its body's time is over, and Redis has let it go. */
async function expire(response: Response): Promise<void> {
  const id = jobIdOf(response);
  await records.ended(id);
  await eventually(async () => assert.ok((await records.redis.pttl(jobKeys.state(id))) <= 300_000, 'not let go yet'));
  await records.redis.del(jobKeys.state(id), jobKeys.log(id));
  await records.db.updateTable('job_bodies').set({ expires_at: 1 }).where('job_id', '=', id).execute();
}

for (const model of ['sandbox-chat', 'sandbox-responses']) {
  describe(`GET /v1/responses/{id} of ${model}`, () => {
    it(`GET /v1/responses/{id} of ${model} returns 400 naming an unknown value, or a parameter without a stream`, async () => {
      const { id } = await create({ model, input: 'Hi' });
      for (const [query, param] of [
        ['include[]=reasoning.encrypted_content&include[]=thoughts', 'include'],
        ['include=thoughts', 'include'],
        ['stream=maybe', 'stream'],
        ['stream=true&stream=true', 'stream'],
        ['starting_after=1', 'starting_after'],
        ['include_obfuscation=true', 'include_obfuscation'],
      ] as const) {
        const refused = await assertErrorAnswer(await get(`${id}?${query}`), 400, 'invalid_request_error');
        assert.equal(refused.param, param, query);
      }
      const listed = await get(`${id}/input_items?include[]=thoughts`);
      assert.equal((await assertErrorAnswer(listed, 400, 'invalid_request_error')).param, 'include');
      for (const query of [
        'stream=false',
        'include[]=message.output_text.logprobs',
        'include=reasoning.encrypted_content',
      ]) {
        assert.equal((await get(`${id}?${query}`)).status, 200, query);
      }
    });

    it(`GET /v1/responses/{id} of ${model} streams a background response before any output`, {
      timeout: 30_000,
    }, async () => {
      const body = { model, input: 'Hi', background: true, stream: true, sandbox: { first_token_ms: 600_000 } };
      const answer = await post(body);
      const events = readSse(answer);
      const first = [(await events.next()).value, (await events.next()).value] as WireEvent[];
      assert.deepEqual(typesOf(first), ['response.created', 'response.queued']);
      const { id } = (JSON.parse((first[0] as WireEvent).data) as { response: Response }).response;
      const again = readSse(await get(`${id}?stream=true&starting_after=0`));
      assert.deepEqual((await again.next()).value, first[1]);
      assert.equal((await records.post({}, {}, { path: `/v1/responses/${id}/cancel` })).status, 200);
      for (const rest of [events, again]) {
        const types: string[] = [];
        for await (const event of rest) types.push(...typesOf([event]));
        assert.deepEqual(types, ['response.in_progress', 'response.failed']);
      }
    });

    it(`GET /v1/responses/{id} of ${model} streams an early failure up to response.failed`, async () => {
      const fault = { sandbox: { fault: { kind: 'error', status: 500, message: 'broken' } } };
      const answer = await post({ model, input: 'Hi', background: true, stream: true, ...fault });
      assert.equal(answer.status, 200);
      const events = sseEvents(await answer.text());
      const order = ['response.created', 'response.queued', 'response.in_progress', 'error', 'response.failed'];
      assert.deepEqual(typesOf(events), order);
      const { response } = JSON.parse((events[4] as WireEvent).data) as { response: Response };
      assert.deepEqual([response.status, response.error?.code], ['failed', 'server_error']);
      assert.deepEqual(sseEvents(await (await get(`${response.id}?stream=true`)).text()), events);
      assert.equal(await (await get(`${response.id}?stream=true&starting_after=99`)).text(), '');
      await records.forget(jobIdOf(response));
      assert.deepEqual(sseEvents(await (await get(`${response.id}?stream=true`)).text()), events);
    });

    it(`GET /v1/responses/{id} of ${model} resumes after the later of starting_after and Last-Event-ID`, async () => {
      const answer = await post({ model, input: 'Count from 1 to 5', background: true, stream: true });
      const whole = sseEvents(await answer.text());
      const { id } = (JSON.parse((whole[0] as WireEvent).data) as { response: Response }).response;
      for (let last = 0; last < whole.length - 1; last++) {
        const headers = { 'last-event-id': (whole[last] as WireEvent).id as string };
        const rest = sseEvents(await (await get(`${id}?stream=true&starting_after=3`, headers)).text());
        assert.deepEqual(rest, whole.slice(Math.max(3, last) + 1));
      }
      const beyond = sseEvents(await (await get(`${id}?stream=true&starting_after=9999`)).text());
      assert.deepEqual(typesOf(beyond), ['[DONE]']);
      const events = await records.gateway.fetch(`/v1/jobs/${id}/events`);
      assert.deepEqual(sseEvents(await events.text()), whole, 'the job has the same events under the same ids');
    });

    it(`GET /v1/responses/{id} of ${model} returns 404 once it has expired, and references to it fail`, async () => {
      const made = await create({ model, input: 'Hi' });
      await expire(made);
      await assertErrorAnswer(await get(made.id), 404, 'not_found');
      await assertErrorAnswer(await get(`${made.id}/input_items`), 404, 'not_found');
      const next = await post({ model, input: 'Hi', previous_response_id: made.id });
      await assertErrorAnswer(next, 400, 'previous_response_not_found');
      const item = { type: 'item_reference', id: made.output[0]?.id };
      const { param } = await assertErrorAnswer(await post({ model, input: [item] }), 400, 'invalid_request_error');
      assert.equal(param, 'input[0].id');
      await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${made.id}/events`), 410, 'resume_expired');
      // Its row in the ledger stays, with nothing of what was said.
      await records.db.deleteFrom('job_bodies').where('job_id', '=', jobIdOf(made)).execute();
      await assertErrorAnswer(await get(made.id), 404, 'not_found');
    });

    it(`POST /v1/responses with ${model} continues no unfinished or cancelled response, but an incomplete one`, async () => {
      const running = await create({ model, input: 'Hi', background: true, sandbox: { first_token_ms: 600_000 } });
      const next = { model, input: 'Hi', previous_response_id: running.id };
      const early = await assertErrorAnswer(await post(next), 400, 'invalid_request_error');
      assert.match(early.message, /has not ended/);
      await records.post({}, {}, { path: `/v1/responses/${running.id}/cancel` });
      const late = await assertErrorAnswer(await post(next), 400, 'invalid_request_error');
      assert.deepEqual([late.param, /was cancelled/.test(late.message)], ['previous_response_id', true]);
      const cut = await create({ model, input: 'WORDS:100', max_output_tokens: 16 });
      assert.equal(cut.status, 'incomplete');
      assert.equal((await create({ model, input: 'Hi', previous_response_id: cut.id })).status, 'completed');
    });
  });
}

describe('GET /v1/responses/{id} with include', () => {
  const asked = { model: 'sandbox-responses', input: 'Reply with exactly: done', reasoning: { effort: 'low' } };
  const encrypted = ({ output }: Pick<Response, 'output'>) =>
    output.map((item) => (item as { encrypted_content?: string }).encrypted_content !== undefined);

  it('GET /v1/responses/{id} and input_items show encrypted reasoning only with include', async () => {
    const made = await create(asked);
    assert.deepEqual(encrypted(made), [false, false]);
    const read = async (query: string): Promise<Response> =>
      (await (await get(`${made.id}${query}`)).json()) as Response;
    assert.deepEqual(encrypted(await read('')), [false, false]);
    assert.deepEqual(encrypted(await read('?include[]=reasoning.encrypted_content')), [true, false]);
    const next = await create({ ...asked, previous_response_id: made.id });
    const list = async (query: string) => {
      const { data } = (await (await get(`${next.id}/input_items?order=asc${query}`)).json()) as { data: unknown[] };
      return encrypted({ output: data as Response['output'] });
    };
    assert.deepEqual(await list(''), [false, false, false, false]);
    assert.deepEqual(await list('&include[]=reasoning.encrypted_content'), [false, true, false, false]);
  });
});

describe('item_reference', () => {
  const model = 'sandbox-chat';
  const reference = (id: string | undefined) => ({ type: 'item_reference', id });

  it('item_reference resolves any earlier item, repeatedly, and a 400 names the first unknown one', async () => {
    const one = await create({ model, input: 'Reply with exactly: one' });
    const two = await create({ model, input: 'Reply with exactly: two', previous_response_id: one.id });
    const { data } = (await (await get(`${two.id}/input_items?order=asc`)).json()) as { data: { id: string }[] };
    const known = [...data.map(({ id }) => id), one.output[0]?.id, two.output[0]?.id, one.output[0]?.id].map(reference);
    const said = { role: 'user', content: 'Hi' };
    const made = await create({ model, input: [...known, said], instructions: 'Be brief.' });
    const listed = await (await get(`${made.id}/input_items?order=asc`)).json();
    const texts = (listed as { data: { content: [{ text: string }] }[] }).data.map(({ content }) => content[0].text);
    const hi = 'Reply with exactly: ';
    assert.deepEqual(texts, [`${hi}one`, 'one', `${hi}two`, 'one', 'two', 'one', 'Hi']);
    const unknown = [said, ...known, reference(`msg_0_${'0'.repeat(32)}`), reference('msg_of_mine'), said];
    const refused = await assertErrorAnswer(await post({ model, input: unknown }), 400, 'invalid_request_error');
    assert.equal(refused.param, `input[${known.length + 1}].id`);
  });

  it('input_items lists an item that was given twice on two pages', async () => {
    const { output } = await create({ model, input: 'Reply with exactly: one' });
    const named = reference(output[0]?.id);
    const { id } = await create({ model, input: [named, named, named, { role: 'user', content: 'Hi' }] });
    const texts: string[] = [];
    const ids = new Set<string>();
    for (let after = ''; texts.length < 10; ) {
      const page = await (await get(`${id}/input_items?order=asc&limit=1${after}`)).json();
      const { data, has_more: hasMore } = page as {
        data: [{ id: string; content: [{ text: string }] }];
        has_more: boolean;
      };
      texts.push(data[0].content[0].text);
      ids.add(data[0].id);
      after = `&after=${data[0].id}`;
      if (!hasMore) break;
    }
    assert.deepEqual(texts, ['one', 'one', 'one', 'Hi']);
    assert.equal(ids.size, 4);
    const again = await create({ model, input: [...[...ids].map(reference), { role: 'user', content: 'Hi' }] });
    assert.equal(again.status, 'completed');
  });

  it('item_reference returns 400 for items of more than a thousand responses, and reads none of them', async () => {
    const input = Array.from({ length: 1001 }, (_, index) =>
      reference(`msg_0_${index.toString(16).padStart(32, '0')}`),
    );
    const refused = await assertErrorAnswer(await post({ model, input }), 400, 'invalid_request_error');
    assert.equal(refused.param, 'input');
  });

  it('item_reference returns 413 when a few references make a request that is too large', async () => {
    const long = `${'otter '.repeat(100_000)} Reply with exactly: read`;
    const { id } = await create({ model, input: long });
    const { data } = (await (await get(`${id}/input_items`)).json()) as { data: { id: string }[] };
    const named = reference(data[0]?.id);
    assert.equal((await create({ model, input: [named, named] })).status, 'completed');
    const refused = await post({ model, input: Array.from({ length: 40 }, () => named) });
    assert.equal((await assertErrorAnswer(refused, 413, 'request_too_large')).param, 'input');
  });
});

describe('previous_response_id', () => {
  it('previous_response_id and input_items read no more of long conversations at a time than request bodies may have', async () => {
    const api = await records.gateway.startApi({ SLUICE_BODIES_MIB: '64' });
    const image = `data:image/png;base64,${'QUJD'.repeat(2_500_000)}`;
    const parts = [
      { type: 'input_text', text: 'Reply with exactly: seen' },
      { type: 'input_image', image_url: image },
    ];
    const made = await post({ model: 'sandbox-chat', input: [{ type: 'message', role: 'user', content: parts }] });
    const { id } = (await made.json()) as Response;
    const before = await peakWhile(api, Promise.resolve());
    const asks: Record<string, () => Promise<globalThis.Response>> = {
      previous_response_id: () => {
        const body = JSON.stringify({ model: 'none-such', input: 'Hi', previous_response_id: id });
        return records.gateway.fetch('/v1/responses', { method: 'POST', body, url: api.url });
      },
      input_items: () => records.gateway.fetch(`/v1/responses/${id}/input_items`, { url: api.url }),
    };
    for (const [name, ask] of Object.entries(asks)) {
      const statuses = Promise.all(
        Array.from({ length: 60 }, async () => {
          const answer = await ask();
          await answer.arrayBuffer();
          return answer.status;
        }),
      );
      const peak = await peakWhile(api, statuses);
      const expected = name === 'input_items' ? 200 : 404;
      assert.deepEqual(new Set(await statuses), new Set([expected, 429]), name);
      assert.ok(peak - before < 500 * 1024 * 1024, `${name}: it grew by ${megabytes(peak - before)} MB`);
      assert.equal((await ask()).status, expected, 'what is read is released');
    }
    await api.stop();
  });

  it('a long answer is read by a key that reads nothing else, though it is more than a quarter of what bodies may have', async () => {
    const api = await records.gateway.startApi({ SLUICE_BODIES_MIB: '4' });
    const said = 'x'.repeat(1_200_000);
    const made = await create({ model: 'sandbox-chat', input: `Reply with exactly: ${said}` });
    for (const path of [`/v1/jobs/${jobIdOf(made)}`, `/v1/responses/${made.id}`]) {
      const answer = await records.gateway.fetch(path.replace('/jobs/', '/jobs/job_'), { url: api.url });
      assert.equal(answer.status, 200, path);
      assert.ok((await answer.text()).includes(said), path);
    }
    await api.stop();
  });

  it('a stored answer is counted while it is read, however small it is: its events where it is streamed, too', async () => {
    const api = await records.gateway.startApi({ SLUICE_BODIES_MIB: '1' });
    const request = streamed(`Reply with exactly: ${'x'.repeat(400_000)}`);
    const id = await records.postLater(request, { 'idempotency-key': 'counted' });
    await records.forget(id);
    const events = () => records.gateway.fetch(`/v1/jobs/${id}/events`, { url: api.url });
    const { message } = await assertErrorAnswer(await events(), 429, 'rate_limit_exceeded');
    assert.match(message, /^Too many bytes of this account's requests are under way/);
    const held = await records.gateway.fetch(`/v1/jobs/${id}`, { url: api.url });
    assert.equal(held.status, 200, 'its body is counted once');
    assert.ok((await held.text()).length > 400_000);
    assert.equal((await records.gateway.fetch(`/v1/jobs/${id}/events`)).status, 200);
    await api.stop();
  });

  it('previous_response_id returns 413 when the whole conversation is too large', async () => {
    const model = 'sandbox-chat';
    const image = `data:image/png;base64,${'QUJD'.repeat(2_900_000)}`;
    const ask = (previous?: string) => {
      const content = [
        { type: 'input_text', text: 'Reply with exactly: seen' },
        { type: 'input_image', image_url: image },
      ];
      const message = { type: 'message', role: 'user', content };
      return post({ model, input: [message], ...(previous && { previous_response_id: previous }) });
    };
    const one = (await (await ask()).json()) as Response;
    assert.equal(one.status, 'completed');
    const refused = await assertErrorAnswer(await ask(one.id), 413, 'request_too_large');
    assert.equal(refused.param, 'previous_response_id');
    assert.equal((await create({ model, input: 'Hi', previous_response_id: one.id })).status, 'completed');
  });
});
