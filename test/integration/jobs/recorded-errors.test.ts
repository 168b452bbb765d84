import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';

const prompt = 'PIN: 1234\nof Jörg Müller, 12 Acacia Road';
/** So long that the request is a blob, and so long that it is not compared at all. */
const lengths = [70_000, 2_200_000];
const streamHead = { 'content-type': 'text/event-stream' };
const chunk = (content: string): string =>
  `data: ${JSON.stringify({
    ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })}\n\n`;

describe('recorded errors of vendors', () => {
  let records: JobRecords;
  let vendor: Server;
  let answer: (response: ServerResponse) => void;
  before(async () => {
    vendor = createServer((request, response) => {
      request.resume().once('end', () => answer(response));
    });
    await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`;
    records = await JobRecords.start({
      configuration: {
        vendors: { mine: { like: 'openai', base_url: baseUrl, api_keys: ['a-key'], open: true } },
        routing: { attempts: 1 },
      },
    });
  });
  after(async () => {
    await records.stop();
    vendor.closeAllConnections();
    vendor.close();
  });

  const recorded = async (body: object): Promise<string> => {
    const response = await records.post(body);
    await response.text();
    return (await records.ended(jobIdOf(response))).error_details ?? '';
  };

  it('an error without a code keeps nothing of a long request: at the begin of a stream, in its middle, and held', async () => {
    const error = JSON.stringify({ error: `cannot read: ${prompt}` });
    for (const length of lengths) {
      const filler = { role: 'user', content: 'word '.repeat(length / 5) };
      const more = { model: 'mine/m', messages: [{ role: 'user', content: prompt }, filler] };
      for (const before of ['', chunk('One')]) {
        answer = (response) => response.writeHead(200, streamHead).end(`${before}data: ${error}\n\n`);
        const details = await recorded(streamed(prompt, more));
        assert.doesNotMatch(details, /1234|Acacia/, `${length} ${before}`);
        assert.match(details, length === 70_000 ? /cannot read: \[…\]/ : /The model's vendor had an error\./);
      }
      answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(error);
      assert.doesNotMatch(await recorded(held(prompt, more)), /1234|Acacia/, `${length} held`);
    }
  });

  it('an error that shows the request escaped, as Python prints it, keeps nothing of it', async () => {
    const input = JSON.stringify([{ role: 'user', content: prompt }]).replaceAll('"', "'");
    const body = JSON.stringify({ error: { message: `1 validation error: input=${input}`, code: 400 } });
    answer = (response) => response.writeHead(400, { 'content-type': 'application/json' }).end(body);
    const details = await recorded(held(prompt, { model: 'mine/m' }));
    assert.doesNotMatch(details, /1234|Acacia/);
    assert.match(details, /1 validation error: /);
  });

  it("the name of a caller's file that an error repeats is not recorded", async () => {
    const name = 'diagnosis-of-jane-doe.mp3';
    const body = JSON.stringify({ error: { message: `Invalid file '${name}'.`, code: null } });
    answer = (response) => response.writeHead(400, { 'content-type': 'application/json' }).end(body);
    const form = new FormData();
    form.set('model', 'mine/transcribe');
    form.set('file', new File(['RIFF'], name));
    const { url, apiKey } = records.gateway;
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', body: form, headers });
    assert.match(await response.text(), /diagnosis-of-jane-doe/, 'its caller sees it');
    const { error_details: details } = await records.ended(jobIdOf(response));
    assert.match(details ?? '', /Invalid file '\[…\]'\./);
  });
});
