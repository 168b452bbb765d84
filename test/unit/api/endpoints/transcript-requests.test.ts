import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkTranscription } from '../../../../api/endpoints/audio/check-transcription.ts';
import { parseTranscription, parseTranslation } from '../../../../api/endpoints/audio/parse-transcription.ts';
import { transcriptionView } from '../../../../api/endpoints/audio/transcription-view.ts';
import type { Form, ParseForm } from '../../../../api/pipeline/parsed-request.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';
import { Upload } from '../../../../shared/blobs/upload.ts';
import type { TranscriptionFormat } from '../../../../shared/capabilities/transcription.ts';
import { routedModel } from '../../../support/routed-model.ts';

const record = { field: 'file', blob: '2025010100/blob', name: 'a.wav', type: 'audio/wav', bytes: 1000 };
const upload = new Upload(record);

function form(fields: Record<string, string | string[]>, files: Form['files'] = [upload]): Form {
  return { fields: new Map(Object.entries(fields).map(([name, value]) => [name, [value].flat()])), files };
}

function refusal(parse: ParseForm, given: Form): unknown {
  try {
    parse(given);
  } catch (error) {
    const { code, param } = error as { code: string; param: string };
    return [code, param];
  }
  return 'nothing was refused';
}

describe('transcription requests', () => {
  it('parseTranscription reads numbers, booleans and lists from the form, and keeps unknown fields as text', () => {
    const parsed = parseTranscription(
      form({
        model: 'whisper-1',
        language: 'en',
        prompt: 'Names: Ann.',
        response_format: 'verbose_json',
        temperature: '0.20',
        timestamp_granularities: ['word', 'segment'],
        stream: 'false',
        chunking_strategy: 'auto',
        'chunking_strategy[type]': 'server_vad',
        languages: 'en',
        something_new: '5',
        several: ['1', '2'],
      }),
    );
    const { request, ...rest } = parsed;
    assert.deepEqual(JSON.parse(textOf(request)), {
      task: 'transcribe',
      format: 'verbose_json',
      options: {
        language: 'en',
        prompt: 'Names: Ann.',
        temperature: 0.2,
        timestamp_granularities: ['word', 'segment'],
        chunking_strategy: 'auto',
        'chunking_strategy[type]': 'server_vad',
        languages: ['en'],
        something_new: '5',
        several: ['1', '2'],
      },
    });
    assert.deepEqual(rest, {
      model: 'whisper-1',
      stream: false,
      hasMedia: true,
      viewOptions: { format: 'verbose_json' },
      extent: { seconds: 1 },
      // Nobody knows what a vendor bills for these.
      extras: [
        { name: 'something_new', param: 'something_new' },
        { name: 'several', param: 'several' },
      ],
      requirements: {
        task: 'transcribe',
        format: 'verbose_json',
        speakers: undefined,
        mediaFields: [
          ...['language', 'prompt', 'temperature', 'timestamp_granularities', 'chunking_strategy', 'languages'],
          ...['something_new', 'several'],
        ],
      },
      files: [upload],
    });
  });

  const wrong: [string, string, Record<string, string | string[]>][] = [
    ['a temperature that is no number', 'temperature', { temperature: 'warm' }],
    ['a temperature in hexadecimal', 'temperature', { temperature: '0x1' }],
    ['a temperature over 1', 'temperature', { temperature: '1.1' }],
    ['a temperature under 0', 'temperature', { temperature: '-0.1' }],
    ['a stream that is no boolean', 'stream', { stream: 'yes' }],
    ['an unknown response format', 'response_format', { response_format: 'xml' }],
    ['a repeated field', 'language', { language: ['en', 'de'] }],
    ['a repeated model', 'model', { model: ['a', 'b'] }],
    ['an empty model', 'model', { model: '' }],
    [
      'an unknown granularity',
      'timestamp_granularities[1]',
      { response_format: 'verbose_json', timestamp_granularities: ['word', 'letter'] },
    ],
    ['granularities without verbose_json', 'timestamp_granularities', { timestamp_granularities: 'word' }],
    ['granularities with srt', 'timestamp_granularities', { timestamp_granularities: 'word', response_format: 'srt' }],
    ['log probabilities with text', 'include', { include: 'logprobs', response_format: 'text' }],
    ['a stream of srt', 'response_format', { stream: 'true', response_format: 'srt' }],
    ['a stream of vtt', 'response_format', { stream: 'true', response_format: 'vtt' }],
    ['a stream of verbose_json', 'response_format', { stream: 'true', response_format: 'verbose_json' }],
    ['five speakers', 'known_speaker_names', { known_speaker_names: ['a', 'b', 'c', 'd', 'e'] }],
  ];
  for (const [what, param, fields] of wrong) {
    it(`parseTranscription rejects ${what} and names the field`, () => {
      const given = form({ model: 'whisper-1', ...fields });
      assert.deepEqual(refusal(parseTranscription, given), ['invalid_request_error', param]);
    });
  }

  it('parseTranscription rejects a missing model', () => {
    assert.deepEqual(refusal(parseTranscription, form({})), ['invalid_request_error', 'model']);
  });

  it('parseTranscription and parseTranslation reject a file that is missing, text, empty, too large, repeated or misnamed', () => {
    const fields = { model: 'whisper-1' };
    const limit = 25 * 1024 * 1024;
    for (const parse of [parseTranscription, parseTranslation]) {
      const of = (given: Form): unknown => refusal(parse, given);
      assert.deepEqual(of(form(fields, [])), ['invalid_request_error', 'file']);
      assert.deepEqual(of(form({ ...fields, file: 'x' }, [])), ['invalid_request_error', 'file']);
      assert.deepEqual(of(form({ ...fields, file: 'x' })), ['invalid_request_error', 'file']);
      assert.deepEqual(of(form(fields, [new Upload({ ...record, bytes: 0 })])), ['invalid_request_error', 'file']);
      assert.deepEqual(of(form(fields, [new Upload({ ...record, bytes: limit + 1 })])), ['request_too_large', 'file']);
      assert.deepEqual(of(form(fields, [upload, upload])), ['invalid_request_error', 'file']);
      assert.deepEqual(of(form(fields, [upload, new Upload({ ...record, field: 'mask' })])), [
        'invalid_request_error',
        'mask',
      ]);
      assert.equal(parse(form(fields, [new Upload({ ...record, bytes: limit })])).model, 'whisper-1');
    }
  });

  it('parseTranslation rejects streams and speakers', () => {
    const fields = { model: 'whisper-1' };
    assert.equal(JSON.parse(textOf(parseTranslation(form(fields)).request)).task, 'translate');
    assert.equal(parseTranslation(form({ ...fields, stream: 'false' })).stream, false);
    const streamed = form({ ...fields, stream: 'true' });
    assert.deepEqual(refusal(parseTranslation, streamed), ['invalid_request_error', 'stream']);
    const diarized = form({ ...fields, response_format: 'diarized_json' });
    assert.deepEqual(refusal(parseTranslation, diarized), ['invalid_request_error', 'response_format']);
  });

  it('checkTranscription rejects formats, streams, translations and speakers that the model does not support', () => {
    const check = (modelId: string, fields: Record<string, string>, parse = parseTranscription): string => {
      try {
        checkTranscription(parse(form({ model: modelId, ...fields })), routedModel(modelId));
      } catch (error) {
        return (error as { param: string }).param;
      }
      return 'fine';
    };
    for (const format of ['srt', 'vtt', 'verbose_json']) {
      assert.equal(check('gpt-4o-transcribe', { response_format: format }), 'response_format');
      assert.equal(check('whisper-1', { response_format: format }), 'fine');
    }
    assert.equal(check('gpt-4o-transcribe', { stream: 'true' }), 'fine');
    assert.equal(check('gpt-4o-transcribe', { stream: 'true', response_format: 'text' }), 'fine');
    assert.equal(check('whisper-1', { stream: 'true' }), 'stream');
    assert.equal(check('whisper-1', {}, parseTranslation), 'fine');
    assert.equal(check('gpt-4o-transcribe', {}, parseTranslation), 'model');
    assert.equal(check('whisper-1', { response_format: 'diarized_json' }), 'response_format');
    assert.equal(check('whisper-1', { known_speaker_names: 'Ann' }), 'known_speaker_names');
    assert.equal(check('whisper-1', { known_speaker_references: 'data:' }), 'known_speaker_references');
    const speakers = { response_format: 'diarized_json', known_speaker_names: 'Ann' };
    assert.equal(check('gpt-4o-transcribe-diarize', speakers), 'fine');
    assert.equal(check('gpt-4o-transcribe-diarize', { ...speakers, stream: 'true' }), 'fine');
  });
});

describe('the view of a transcript', () => {
  const end = {
    text: 'Hi.',
    duration: 1.5,
    segments: [{ start: 0, end: 1.5, text: ' Hi.' }],
    usage: { type: 'duration' },
  };
  const frame = { seq: 1, type: 'end' as const, text: JSON.stringify(end) };
  const shown = (format: TranscriptionFormat): [string | undefined, string] => {
    const job = { id: '1', model: 'm', createdAt: 0, viewOptions: { format }, link: () => '' };
    return [transcriptionView.contentType?.(job), transcriptionView.held(job, [frame])];
  };

  it('the view of a transcript shows every format with its content type', () => {
    assert.deepEqual(shown('text'), ['text/plain; charset=utf-8', 'Hi.\n']);
    assert.deepEqual(shown('srt'), [
      'application/x-subrip; charset=utf-8',
      '1\n00:00:00,000 --> 00:00:01,500\nHi.\n\n',
    ]);
    assert.deepEqual(shown('vtt'), ['text/vtt; charset=utf-8', 'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHi.\n\n']);
    for (const format of ['json', 'verbose_json', 'diarized_json'] as const) {
      assert.deepEqual(shown(format), [undefined, frame.text]);
    }
  });

  it('the view of a transcript ends a stream with the text and with a usage of tokens, but with none of seconds', () => {
    const job = { id: '1', model: 'm', createdAt: 0, viewOptions: { format: 'json' as const }, link: () => '' };
    const done = (usage: unknown): unknown => {
      const [event] = transcriptionView.stream(job)({ ...frame, text: JSON.stringify({ ...end, usage }) });
      return JSON.parse((event ?? '').slice('data: '.length));
    };
    const tokens = { type: 'tokens', input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    assert.deepEqual(done(tokens), { type: 'transcript.text.done', text: 'Hi.', usage: tokens });
    for (const usage of [{ type: 'duration', seconds: 2 }, null, undefined]) {
      assert.deepEqual(done(usage), { type: 'transcript.text.done', text: 'Hi.' });
    }
  });
});
