import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

type Pairs = readonly (readonly [name: string, value: string])[];

const good: Pairs = [['model', 'sandbox-transcribe']];
const both = ['transcriptions', 'translations'];

/** Fields that are refused, on which routes, and the parameter that the answer names. */
const wrong: [what: string, fields: Pairs, param: string, routes?: readonly string[]][] = [
  ['a missing model', [], 'model', both],
  ['an empty model', [['model', '']], 'model', both],
  ['a repeated model', [...good, ...good], 'model', both],
  ['a speech model', [['model', 'sandbox-speech']], 'model', both],
  ['a temperature that is not a number', [...good, ['temperature', 'hot']], 'temperature', both],
  ['a temperature over 1', [...good, ['temperature', '1.5']], 'temperature', both],
  ['an unknown format', [...good, ['response_format', 'docx']], 'response_format', both],
  [
    'diarized_json from a model without speakers',
    [...good, ['response_format', 'diarized_json']],
    'response_format',
    both,
  ],
  ['speaker names for a model without speakers', [...good, ['known_speaker_names[]', 'Ann']], 'known_speaker_names'],
  ['a stream that is not a boolean', [...good, ['stream', '1']], 'stream', both],
  ['a streamed translation', [...good, ['stream', 'true']], 'stream', ['translations']],
  ['a streamed srt', [...good, ['stream', 'true'], ['response_format', 'srt']], 'response_format'],
  ['granularities without verbose_json', [...good, ['timestamp_granularities[]', 'word']], 'timestamp_granularities'],
  [
    'numbered granularities without verbose_json',
    [...good, ['timestamp_granularities[0]', 'word']],
    'timestamp_granularities',
  ],
  [
    'an unknown granularity',
    [...good, ['response_format', 'verbose_json'], ['timestamp_granularities[]', 'letter']],
    'timestamp_granularities[0]',
  ],
  ['log probabilities with srt', [...good, ['response_format', 'srt'], ['include[]', 'logprobs']], 'include'],
];

describe('POST /v1/audio/transcriptions and /v1/audio/translations with bad input', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  function post(route: string, body: FormData | string, headers: Record<string, string> = {}): Promise<Response> {
    const init = { method: 'POST', body, headers: { authorization: `Bearer ${gateway.apiKey}`, ...headers } };
    return fetch(`${gateway.url}/v1/audio/${route}`, init);
  }

  function formOf(fields: Pairs, files: readonly [field: string, content: string][] = [['file', 'RIFF']]): FormData {
    const form = new FormData();
    for (const [name, value] of fields) form.append(name, value);
    for (const [field, content] of files) form.append(field, new Blob([content], { type: 'audio/wav' }), 'a.wav');
    return form;
  }

  for (const [what, fields, param, routes = ['transcriptions']] of wrong) {
    for (const route of routes) {
      it(`POST /v1/audio/${route} returns 400 naming ${param} for ${what}`, async () => {
        const error = await assertErrorAnswer(await post(route, formOf(fields)), 400, 'invalid_request_error');
        assert.equal(error.param, param);
      });
    }
  }

  for (const route of both) {
    it(`POST /v1/audio/${route} returns 400 for a file that is missing, empty, repeated, a text field or under another name`, async () => {
      const refused: [FormData, string][] = [
        [formOf(good, []), 'file'],
        [formOf(good, [['file', '']]), 'file'],
        [
          formOf(good, [
            ['file', 'a'],
            ['file', 'b'],
          ]),
          'file',
        ],
        [formOf([...good, ['file', 'a text']], []), 'file'],
        [
          formOf(good, [
            ['file', 'a'],
            ['image', 'b'],
          ]),
          'image',
        ],
      ];
      for (const [form, param] of refused) {
        const error = await assertErrorAnswer(await post(route, form), 400, 'invalid_request_error');
        assert.equal(error.param, param);
      }
    });

    it(`POST /v1/audio/${route} returns 404 for an unknown model, 415 for JSON and 400 for a broken form`, async () => {
      const unknown = await post(route, formOf([['model', 'nobody']]));
      await assertErrorAnswer(unknown, 404, 'model_not_found');
      const json = await post(route, '{"model":"sandbox-transcribe"}', { 'content-type': 'application/json' });
      await assertErrorAnswer(json, 415, 'unsupported_media_type');
      const type = 'multipart/form-data; boundary=x';
      const broken = await post(route, '--x\r\nContent-Disposition: form-data; name="a"', { 'content-type': type });
      await assertErrorAnswer(broken, 400, 'invalid_request_error');
    });
  }

  it('POST /v1/audio/transcriptions and translations call no vendor and keep no upload for invalid requests', async () => {
    assert.deepEqual(await vendorCalls(gateway), []);
    await eventually(async () => assert.deepEqual(await storedBlobs(gateway.dataDir), []));
  });
});
