import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readConfig } from '../../../shared/config/config.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { pngFile } from '../../support/image-files.ts';

describe('requests without a model', () => {
  let gateway: TestGateway;
  let without: string;
  before(async () => {
    gateway = await TestGateway.start({
      settings: { SLUICE_DEFAULT_MODELS: 'image=sandbox-image, video=sandbox-video' },
    });
    without = (await gateway.startApi({ SLUICE_DEFAULT_MODELS: '' })).url;
  });
  after(() => gateway?.stop());

  const size = '256x256';
  const form = (fields: Readonly<Record<string, string>>) => async () => {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.set(name, value);
    data.set('image', pngFile('image.png'));
    return data;
  };
  const requests: Readonly<Record<string, () => Promise<FormData | string>>> = {
    'images/generations': async () => JSON.stringify({ prompt: 'A boat', size }),
    'images/edits': form({ prompt: 'A boat', size }),
    'images/variations': form({ size }),
    videos: async () => JSON.stringify({ prompt: 'A boat', model: null }),
  };
  for (const [name, make] of Object.entries(requests)) {
    const send = async (url: string): Promise<Response> => {
      const body = await make();
      const type = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
      const headers = { authorization: `Bearer ${gateway.apiKey}`, ...type };
      return await fetch(`${url}/v1/${name}`, { method: 'POST', headers, body });
    };
    it(`POST /v1/${name} without a model uses the default of the operator, and returns 400 naming the setting if none is set`, async () => {
      const answer = await send(gateway.url);
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      if (name === 'videos') assert.equal(JSON.parse(text).model, 'sandbox-video');
      const error = await assertErrorAnswer(await send(without), 400, 'invalid_request_error');
      assert.equal(error.param, 'model');
      assert.match(error.message, /^Missing required parameter: 'model'\. .*SLUICE_DEFAULT_MODELS/);
    });
  }

  it('POST /v1/chat/completions without a model returns 400, and an invalid SLUICE_DEFAULT_MODELS fails at the start', async () => {
    const chat = { method: 'POST', body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }] }) };
    const { param } = await assertErrorAnswer(
      await gateway.fetch('/v1/chat/completions', chat),
      400,
      'invalid_request_error',
    );
    assert.equal(param, 'model');
    for (const wrong of ['sandbox-image', 'chat=x', 'image=', 'image=a,image=b', 'image=a b']) {
      assert.throws(() => readConfig({ SLUICE_DEFAULT_MODELS: wrong }), /SLUICE_DEFAULT_MODELS/, wrong);
    }
  });

  it('an api says at its start which of SLUICE_DEFAULT_MODELS is no model of its capability', async () => {
    const wrong = await gateway.startApi({ SLUICE_DEFAULT_MODELS: 'image=sandbox-imag,video=sandbox-image' });
    await eventually(() => {
      assert.match(wrong.output(), /"nearest":\["sandbox-image".*image=sandbox-imag is no image model/);
      assert.match(wrong.output(), /video=sandbox-image is no video model/);
      assert.match(gateway.apis[0]?.output() ?? '', /"msg":"listening"/);
    });
    assert.doesNotMatch(gateway.apis[0]?.output() ?? '', /SLUICE_DEFAULT_MODELS/);
  });
});
