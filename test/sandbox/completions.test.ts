import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { saidInCompletions } from '../support/said-in-completion.ts';

let sandbox: RunningSandbox;
before(async () => {
  sandbox = await startSandbox();
});
after(() => sandbox.close());

const model = 'sandbox-instruct';

function ask(fields: object): Promise<Response> {
  const body = JSON.stringify({ model, prompt: 'Hello', ...fields });
  return fetch(`${sandbox.url}/v1/completions`, { method: 'POST', body });
}

async function held(fields: object): Promise<OpenAI.Completion> {
  const response = await ask(fields);
  assert.equal(response.status, 200);
  return (await response.json()) as OpenAI.Completion;
}

/** The data of the events of a streamed answer. */
async function streamed(fields: object): Promise<string[]> {
  const text = await (await ask({ ...fields, stream: true })).text();
  return text
    .split(/\r?\n\r?\n/)
    .filter(Boolean)
    .map((event) => event.replace(/^data: /, ''));
}

const textsOf = ({ choices }: OpenAI.Completion): string[] => choices.map(({ text }) => text);

describe('sandbox POST /v1/completions', () => {
  it('sandbox POST /v1/completions answers like its chat, with 16 tokens by default, and deterministically', async () => {
    const answer = await held({ prompt: 'WORDS:40' });
    assert.equal(answer.object, 'text_completion');
    assert.match(answer.id, /^cmpl-/);
    assert.equal(answer.choices[0]?.text.split(' ').length, 16);
    assert.equal(answer.choices[0]?.finish_reason, 'length');
    assert.deepEqual(textsOf(await held({})), textsOf(await held({})));
    assert.notDeepEqual(textsOf(await held({ seed: 1 })), textsOf(await held({})));
    assert.deepEqual(textsOf(await held({ prompt: 'Count from 1 to 9', stop: ' 4' })), ['1 2 3']);
  });

  it('sandbox POST /v1/completions numbers choices across prompts, echoes the prompt, and counts its tokens', async () => {
    const answer = await held({ prompt: ['WORDS:2', 'WORDS:3'], n: 2, echo: true });
    assert.deepEqual(textsOf(answer), [
      ...['WORDS:2word1 word2', 'WORDS:2word1 word2'],
      ...['WORDS:3word1 word2 word3', 'WORDS:3word1 word2 word3'],
    ]);
    assert.deepEqual(
      answer.choices.map(({ index }) => index),
      [0, 1, 2, 3],
    );
    assert.equal(answer.usage?.completion_tokens, 10);
    assert.equal(answer.usage?.prompt_tokens, 6);
  });

  it('sandbox POST /v1/completions returns the best of several by their mean log probability', async () => {
    const fields = { max_tokens: 40, logprobs: 0 };
    const all = (await held({ ...fields, n: 4 })).choices;
    const mean = (choice: OpenAI.CompletionChoice): number => {
      const logprobs = choice.logprobs?.token_logprobs ?? [];
      return logprobs.reduce((sum, value) => sum + value, 0) / logprobs.length;
    };
    const best = all.reduce((one, other) => (mean(other) > mean(one) ? other : one));
    const answer = await held({ ...fields, best_of: 4 });
    assert.deepEqual(textsOf(answer), [best.text]);
  });

  it('a sandbox completions stream adds up to the held answer, for every form of request', async () => {
    const forms = [
      {},
      { n: 3, max_tokens: 30 },
      { prompt: ['a', 'WORDS:20', [1, 2]], echo: true, logprobs: 5 },
      { prompt: [1, 2], suffix: 'end', max_tokens: 0 },
      { prompt: 'Reply with exactly: ', logprobs: 1 },
    ];
    for (const form of forms) {
      const chunks = await streamed({ ...form, stream_options: { include_usage: true } });
      assert.equal(chunks.pop(), '[DONE]');
      const parsed = chunks.map((data) => JSON.parse(data) as OpenAI.Completion);
      const whole = await held(form);
      assert.deepEqual(saidInCompletions(parsed), saidInCompletions([whole]));
      assert.equal(parsed.at(-1)?.usage?.total_tokens, whole.usage?.total_tokens);
    }
  });

  it('sandbox POST /v1/completions applies the faults of streams', async () => {
    const fault = (kind: string) => streamed({ prompt: 'WORDS:9', sandbox: { fault: { kind, after_tokens: 2 } } });
    assert.equal((await fault('eof')).length, 2);
    const unfinished = await fault('no_done');
    assert.equal(unfinished.length, 10);
    assert.ok(!unfinished.includes('[DONE]'));
    assert.match((await fault('error')).at(-1) ?? '', /^\{"error":/);
    await assert.rejects(fault('reset'));
    const slow = await fault('slow_bytes');
    assert.equal(slow.at(-1), '[DONE]');
  });

  it('sandbox POST /v1/completions returns an error naming the parameter at fault', async () => {
    const cases: [string, object, number?][] = [
      ['model', { model: 'sandbox-chat' }, 404],
      ['prompt', { prompt: 5 }],
      ['prompt', { prompt: [] }],
      ['prompt[1]', { prompt: ['a', null] }],
      ['prompt', { prompt: [1, -1] }],
      ['best_of', { n: 2, best_of: 1 }],
      ['best_of', { best_of: 2, stream: true }],
      ['logprobs', { logprobs: 6 }],
      ['max_tokens', { max_tokens: -1 }],
      ['stop', { stop: [1] }],
      ['temperature', { temperature: 3 }],
      ['echo', { echo: 1 }],
      ['suffix', { suffix: 1 }],
      ['stream_options', { stream_options: { include_usage: true } }],
      ['messages', { messages: [] }],
      ['sandbox.fault.kind', { sandbox: { fault: { kind: 'large_event' } } }],
    ];
    for (const [param, fields, status = 400] of cases) {
      const response = await ask(fields);
      const { error } = (await response.json()) as { error: { param: string } };
      assert.equal(response.status, status, JSON.stringify(fields));
      assert.equal(error.param, param);
    }
  });
});
