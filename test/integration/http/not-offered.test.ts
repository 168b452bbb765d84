import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';

describe('endpoints that are not offered', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
    client = gateway.client();
  });
  after(() => gateway.stop());

  const paths = [
    ['/v1/fine_tuning/jobs', 'Fine-tuning'],
    ['/v1/fine_tuning/jobs/x/events', 'Fine-tuning'],
    ['/v1/fine-tunes', 'Fine-tuning'],
    ['/v1/files', 'File management'],
    ['/v1/files/file-x/content', 'File management'],
    ['/v1/uploads/x/parts', 'File management'],
    ['/v1/batches', 'Batch processing'],
    ['/v1/assistants', 'The Assistants API'],
    ['/v1/threads/x/runs', 'The Assistants API'],
    ['/v1/vector_stores', 'Vector store management'],
    ['/v1/organization/users', 'Organization management'],
    ['/v1/organization/costs', 'Organization management'],
    ['/v1/dashboard/billing/subscription', 'Billing management'],
    ['/dashboard/billing/credit_grants', 'Billing management'],
    ['/v1/billing/usage?date=2026-01-01', 'Billing management'],
    ['/v1/moderations', 'Moderation'],
    ['/v1/content_provenance_checks', 'Checking the provenance of content'],
    ['/v1/realtime/sessions', 'The Realtime API'],
    ['/v1/evals', 'The Evals API'],
    ['/v1/containers', 'Container management'],
    ['/v1/conversations/x/items', 'The Conversations API'],
    ['/v1/chat/completions/chatcmpl-x', 'Listing and changing stored chat completions'],
    ['/v1/chat/completions/chatcmpl-x/messages', 'Listing and changing stored chat completions'],
    ['/v1/Files/', 'File management'],
    ['/v1/responses/input_tokens', 'Counting the tokens of a response before it is made'],
    ['/v1/responses/compact', 'Compacting responses'],
    ['/v1/videos/edits', 'Editing, extending and casting videos'],
    ['/v1/videos/characters/x', 'Editing, extending and casting videos'],
  ] as const;

  it('an endpoint that is not offered returns 404 naming its area, whatever the method, body and key', async () => {
    for (const [path, area] of paths) {
      for (const method of ['GET', 'POST', 'DELETE', 'PATCH', 'PUT', 'OPTIONS', 'REPORT']) {
        const hasBody = method === 'POST' || method === 'PUT';
        const response = await fetch(`${gateway.url}${path}`, { method, ...(hasBody ? { body: 'not JSON' } : {}) });
        const error = await assertErrorAnswer(response, 404, 'not_found');
        assert.equal(error.message, `${area} is not offered by this gateway.`, `${method} ${path}`);
        assert.equal(error.param, null);
      }
    }
  });

  it('an endpoint that is not offered is a NotFoundError of the OpenAI client, naming its area', async () => {
    const requests: [() => PromiseLike<unknown>, RegExp][] = [
      [() => client.fineTuning.jobs.create({ model: 'x', training_file: 'y' }), /Fine-tuning/],
      [() => client.files.list(), /File management/],
      [() => client.files.create({ file: new File(['x'], 'x.jsonl'), purpose: 'batch' }), /File management/],
      [() => client.batches.retrieve('x'), /Batch processing/],
      [() => client.vectorStores.list(), /Vector store/],
      [() => client.moderations.create({ input: 'x' }), /Moderation/],
      [() => client.chat.completions.retrieve('x'), /stored chat completions/],
    ];
    for (const [request, message] of requests) {
      await assert.rejects(
        async () => await request(),
        (error) => {
          assert.ok(error instanceof OpenAI.NotFoundError, String(error));
          assert.equal(error.code, 'not_found');
          assert.match(error.message, message);
          return true;
        },
      );
    }
  });

  it('other paths keep their 404, 405 and 200', async () => {
    for (const path of ['/v1/filesystem', '/v1/usual', '/v1/nothing', '/files', '/v1']) {
      const { message } = await assertErrorAnswer(await gateway.fetch(path), 404, 'not_found');
      const hint = path.startsWith('/v1') ? '' : `. The base URL of the API is ${gateway.url}/v1`;
      assert.equal(message, `Unknown path: GET ${path}${hint}`);
    }
    await assertErrorAnswer(await gateway.fetch('/v1/chat/completions'), 405, 'method_not_allowed');
    for (const path of ['/v1/models', '/v1/models/', '/v1/models/sandbox-chat', '/v1/models/sandbox-chat/'])
      assert.equal((await gateway.fetch(path)).status, 200);
  });
});
