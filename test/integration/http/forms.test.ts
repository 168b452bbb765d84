import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';

describe('forms on JSON routes', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway?.stop());

  /** Status, code and message of the answer to a form. */
  async function postForm(path: string, form: FormData): Promise<[status: number, code: string, message: string]> {
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    const response = await fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: form });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return [response.status, error.code, error.message];
  }

  it('POST /v1/chat/completions returns 415 for a form, small or large, and keeps none of its files', async () => {
    for (const bytes of [10, 30_000_000]) {
      const form = new FormData();
      form.append('model', 'sandbox-chat');
      form.append('file', new Blob([new Uint8Array(bytes)]), 'a.png');
      const [status, code, message] = await postForm('/v1/chat/completions', form);
      assert.deepEqual([status, code], [415, 'unsupported_media_type']);
      assert.match(message, /application\/json/);
    }
    assert.deepEqual(await readdir(join(gateway.dataDir, 'blobs')), ['identity']);
  });
});
