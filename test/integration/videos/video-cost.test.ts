import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const second = 100_000_000;

describe('what a video costs whose vendor does not tell its length', () => {
  let records: JobRecords;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response, { method, url = '' }) => {
      const film = { 'content-type': 'video/mp4' };
      if (url.includes('/content')) {
        if (url.endsWith('=video')) response.writeHead(200, film).end('a film');
        else sendJson(response, 404, '{}');
      } else if (method === 'POST') sendJson(response, 200, '{"id":"video_1","object":"video","status":"queued"}');
      else sendJson(response, 200, '{"id":"video_1","object":"video","status":"completed","progress":100}');
    });
    records = await JobRecords.start({
      configuration: {
        vendors: { cinema: { like: 'openai', base_url: vendor.baseUrl, api_keys: ['any'] } },
        models: {
          film: {
            ...{ capability: 'video', prices: { second: 0.1 } },
            video: { sizes: ['1280x720'], seconds: [4, 12], input: true, remix: true },
            routes: [{ vendor: 'cinema', model: 'film' }],
          },
        },
      },
    });
  });
  after(async () => {
    await records.stop();
    await vendor.close();
  });

  it('a video without a size and a length has those of its model, also if its request has a picture that is large', async () => {
    const { id: account, key } = await makeLimitedAccount(records.gateway, { credit: 100 * second });
    for (const bytes of [100, 2_000_000]) {
      const image_url = `data:image/png;base64,${Buffer.alloc(bytes, 1).toString('base64')}`;
      const body = { model: 'film', prompt: 'Waves', input_reference: { image_url } };
      const response = await records.post(body, { authorization: `Bearer ${key}` }, { path: '/v1/videos' });
      const video = (await response.json()) as { id: string; seconds: string; size: string };
      assert.deepEqual([response.status, video.seconds, video.size], [200, '4', '1280x720']);
      const { cost } = await eventually(() => records.ended(video.id.slice('video_'.length)), 30_000);
      assert.equal(cost, 4 * second);
      const begun = vendor.requests.filter(({ method }) => method === 'POST').at(-1) ?? assert.fail();
      const { size, seconds, prompt, input_reference: picture } = JSON.parse(begun.body);
      assert.deepEqual([size, seconds, prompt, picture], ['1280x720', '4', 'Waves', { image_url }]);
    }
    assert.equal((await readAccountMoney(records.redis, account))?.charged, 8 * second);
  });

  it('a video and its remix cost the length that was requested of the video, and that much is held for each', async () => {
    const { id: account, key } = await makeLimitedAccount(records.gateway, { credit: 100 * second });
    const headers = { authorization: `Bearer ${key}` };
    const money = async () => (await readAccountMoney(records.redis, account)) ?? assert.fail();
    const make = async (path: string, body: object): Promise<string> => {
      const response = await records.post(body, headers, { path });
      const video = (await response.json()) as { id: string; seconds: string };
      assert.deepEqual([response.status, video.seconds], [200, '12'], path);
      assert.equal((await money()).held, 12 * second);
      const id = video.id.slice('video_'.length);
      const { outcome, cost } = await eventually(() => records.ended(id), 30_000);
      assert.deepEqual([outcome, cost], ['completed', 12 * second]);
      await eventually(async () => assert.equal((await money()).held, 0));
      return video.id;
    };
    const made = await make('/v1/videos', { model: 'film', prompt: 'Waves', seconds: '12' });
    await make(`/v1/videos/${made}/remix`, { prompt: 'The same at night' });
    assert.equal((await money()).charged, 24 * second);
  });
});
