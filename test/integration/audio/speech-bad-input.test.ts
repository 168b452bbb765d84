import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const good = { model: 'sandbox-speech', voice: 'alloy', input: 'Hello' };

const wrong: [what: string, fields: object, param: string][] = [
  ['a missing model', { model: undefined }, 'model'],
  ['an empty model', { model: '' }, 'model'],
  ['a chat model', { model: 'sandbox-chat' }, 'model'],
  ['a missing input', { input: undefined }, 'input'],
  ['an empty input', { input: '' }, 'input'],
  ['an input that is a list', { input: ['Hello'] }, 'input'],
  ['an input of 4097 characters', { input: 'é'.repeat(4097) }, 'input'],
  ['a missing voice', { voice: undefined }, 'voice'],
  ['an empty voice', { voice: '' }, 'voice'],
  ['a voice that is a number', { voice: 1 }, 'voice'],
  ['a custom voice without id', { voice: {} }, 'voice.id'],
  ['instructions of 4097 characters', { instructions: 'x'.repeat(4097) }, 'instructions'],
  ['a speed that is a string', { speed: '1' }, 'speed'],
  ['a speed under 0.25', { speed: 0.2 }, 'speed'],
  ['a speed over 4', { speed: 4.1 }, 'speed'],
  ['an unknown format', { response_format: 'midi' }, 'response_format'],
  ['a format that the model does not support', { response_format: 'opus' }, 'response_format'],
  ['an unknown stream format', { stream_format: 'ws' }, 'stream_format'],
];

describe('POST /v1/audio/speech with bad input', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  const post = (body: object): Promise<Response> =>
    gateway.fetch('/v1/audio/speech', { method: 'POST', body: JSON.stringify(body) });

  for (const [what, fields, param] of wrong) {
    it(`POST /v1/audio/speech returns 400 naming ${param} for ${what}`, async () => {
      const error = await assertErrorAnswer(await post({ ...good, ...fields }), 400, 'invalid_request_error');
      assert.equal(error.param, param);
    });
  }

  it('POST /v1/audio/speech returns 404 naming the unknown model', async () => {
    const error = await assertErrorAnswer(await post({ ...good, model: 'nobody' }), 404, 'model_not_found');
    assert.equal(error.param, 'model');
  });

  it('POST /v1/audio/speech returns 415 for a form', async () => {
    const form = new FormData();
    form.set('model', 'sandbox-speech');
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    const response = await fetch(`${gateway.url}/v1/audio/speech`, { method: 'POST', body: form, headers });
    await assertErrorAnswer(response, 415, 'unsupported_media_type');
  });

  it('POST /v1/audio/speech calls no vendor for invalid requests', async () => {
    assert.deepEqual(await vendorCalls(gateway), []);
  });
});
