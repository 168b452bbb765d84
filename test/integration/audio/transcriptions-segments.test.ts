import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

test('subtitles of a transcript with broken segments are answered: it is paid for', async (t) => {
  const vendor = await startFixtureVendor();
  t.after(() => vendor.close());
  const records = await JobRecords.start({
    configuration: {
      vendors: { studio: { like: 'openai', base_url: vendor.baseUrl, api_keys: ['any'] } },
      models: {
        heard: {
          ...{ capability: 'transcription', prices: { second: 0.001 } },
          transcription: { timestamps: true, translates: false, streams: false, diarizes: false },
          routes: [{ vendor: 'studio', model: 'heard' }],
        },
      },
    },
  });
  t.after(() => records.stop());
  for (const segments of [[null, { start: 0 }], {}, []]) {
    vendor.answer((response) => sendJson(response, 200, JSON.stringify({ text: 'Good day.', duration: 3, segments })));
    for (const format of ['srt', 'vtt']) {
      const form = new FormData();
      form.append('model', 'heard');
      form.append('response_format', format);
      form.append('file', new Blob(['RIFF'], { type: 'audio/wav' }), 'a.wav');
      const headers = { authorization: `Bearer ${records.gateway.apiKey}` };
      const response = await fetch(`${records.gateway.url}/v1/audio/transcriptions`, {
        ...{ method: 'POST', body: form, headers },
      });
      assert.equal(response.status, 200);
      assert.match(await response.text(), /00:00:00[.,]000 --> 00:00:03[.,]000\nGood day\.\n\n$/);
      assert.equal((await records.ended(jobIdOf(response))).cost, 3_000_000);
    }
  }
});
