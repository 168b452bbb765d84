import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withOutputLimit } from '../../../../workers/execute/execution.ts';
import { requestText } from '../../../../workers/vendors/request-body.ts';

describe('withOutputLimit', () => {
  it("withOutputLimit adds the gateway's limit at the end of the request, under the endpoint's own name", () => {
    const of = (endpoint: string, request: string, outputLimit?: number): string =>
      requestText(withOutputLimit(request, { endpoint, ...(outputLimit !== undefined && { outputLimit }) }));
    const asked = '{"stream_options":{},"messages":[]}';
    assert.equal(of('chat', asked, 5), '{"stream_options":{},"messages":[],"max_completion_tokens":5}');
    assert.equal(of('completions', '{"prompt":"}"}\n', 5), '{"prompt":"}","max_tokens":5}');
    assert.equal(of('responses', '{ }', 50), '{"max_output_tokens":50}');
    assert.deepEqual(JSON.parse(of('chat', '{"max_completion_tokens":null}', 5)), { max_completion_tokens: 5 });
    assert.equal(of('responses', '{}', 5), '{"max_output_tokens":16}', 'OpenAI takes no less');
    const bytes = withOutputLimit(Buffer.from('{"messages":["é"]}'), { endpoint: 'chat', outputLimit: 5 });
    assert.equal(bytes, '{"messages":["é"],"max_completion_tokens":5}');
  });

  it('withOutputLimit leaves a request without a limit and an endpoint that knows none unchanged', () => {
    const request = '{"messages":[]}';
    assert.equal(withOutputLimit(request, { endpoint: 'chat' }), request);
    for (const endpoint of ['messages.count_tokens', 'embeddings', 'toString']) {
      assert.equal(withOutputLimit(request, { endpoint, outputLimit: 5 }), request);
    }
  });
});
