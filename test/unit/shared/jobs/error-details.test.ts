import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApiError } from '../../../../shared/errors.ts';
import { errorDetails, readErrorDetails } from '../../../../shared/jobs/settlement/error-details.ts';
import { type JobRecord, parseRecord, recordText } from '../../../../shared/jobs/settlement/outbox.ts';
import { withoutKeys, withoutWordsOf } from '../../../../shared/runtime/redact.ts';

const record: JobRecord = {
  ...{ id: 'a'.repeat(32), account: 'account', apiKeyId: 'key', endpoint: 'chat', capability: 'chat', model: 'model' },
  ...{ vendor: 'openai', stream: false, createdAt: 1, beganAt: 2, endedAt: 3, outcome: 'failed', attempts: 1 },
  ...{ errorCode: 'invalid_request_error', usage: undefined, retentionMs: 0 },
};

describe('error details of job records', () => {
  test('a job record carries the details of its error, and a record of the previous release is read without them', () => {
    const details = errorDetails(
      new ApiError('invalid_request_error', 'No.', { param: 'voice', vendorStatus: 400 }),
      '{}',
    );
    assert.deepEqual(readErrorDetails(details), { message: 'No.', param: 'voice', vendorStatus: 400 });
    const text = recordText({ ...record, errorDetails: details });
    assert.equal(parseRecord(text)?.errorDetails, details);
    assert.equal((JSON.parse(text) as { error: string }).error, 'invalid_request_error', 'the code stays where it was');
    const old = parseRecord(recordText(record));
    assert.deepEqual([old?.errorCode, old?.errorDetails], ['invalid_request_error', undefined]);
  });

  test('a record of a completed job has no error details', () => {
    const { errorCode: _, ...rest } = record;
    assert.doesNotMatch(recordText({ ...rest, errorCode: undefined, outcome: 'completed' }), /details/);
  });

  test('readErrorDetails returns undefined for anything but details', () => {
    for (const text of [null, undefined, '', 'no JSON', 'null', '[]', '{"message":1}']) {
      assert.equal(readErrorDetails(text), undefined);
    }
  });

  test("errorDetails drops the vendor's message when the request is unknown or too long to compare", () => {
    const error = new ApiError('invalid_request_error', 'You said: my secret plan.', { vendorStatus: 400 });
    const long = JSON.stringify({ messages: Array.from({ length: 3 }, () => 'a long text '.repeat(50_000)) });
    for (const request of [undefined, 'no JSON', long]) assert.doesNotMatch(errorDetails(error, request), /secret/);
    const unnamed = new ApiError('server_error', 'You said: my secret plan.', { isQuoted: true });
    assert.deepEqual(readErrorDetails(errorDetails(unnamed)), { message: "The model's vendor had an error." });
    const own = new ApiError('server_error', 'The answer broke off.');
    assert.deepEqual(readErrorDetails(errorDetails(own)), { message: 'The answer broke off.' });
  });
});

describe('redaction of error messages', () => {
  test('withoutKeys removes API keys, and keeps words, models, dates and request ids', () => {
    for (const [text, expected] of [
      ['Incorrect API key provided: sk-nonse****ense. Look at', 'Incorrect API key provided: [key] Look at'],
      ['key AIzaSyA-0123456789abcdefghij is invalid', 'key [key] is invalid'],
      ['Bearer abcdef0123456789 was refused', 'Bearer [key] was refused'],
      ['The key 0123456789abcdef0123456789abcdef is unknown', 'The key [key] is unknown'],
    ] as const) {
      assert.equal(withoutKeys(text), expected);
    }
    const harmless =
      "The model 'claude-sonnet-4-5-20250929' takes max_completion_tokens up to 128000 since 2026-01-01.";
    assert.equal(withoutKeys(harmless), harmless);
  });

  test('withoutWordsOf removes what a message repeats of the request, whole or in part, and keeps field names', () => {
    const prompt = 'Write a letter to my landlord about the leaking roof.';
    const request = JSON.stringify({
      messages: [{ role: 'user', content: prompt }],
      response_format: { type: 'text' },
    });
    assert.equal(withoutWordsOf(`Bad: "${prompt}"`, request), 'Bad: "[…]"');
    assert.equal(withoutWordsOf(`Bad: ${prompt.slice(5, 45)}...`, request), 'Bad: […]...');
    assert.equal(withoutWordsOf('Bad response_format of type text', request), 'Bad response_format of type text');
    const chinese = JSON.stringify({ messages: [{ content: '我的密码是一二三四' }] });
    assert.equal(withoutWordsOf('拒绝：我的密码是一二三四', chinese), '拒绝：[…]');
  });

  test('withoutWordsOf removes quotes that a message shows escaped, as JSON, its ASCII form and Python do, also one in another', () => {
    const prompts = [
      'PIN: 1234\nfor Jörg',
      'PIN: 1234\nof Jane Doe, 12 Acacia Road, who is ill',
      'Say "hello" to\tmy wife',
      'Look at C:\\new\\plans',
      '我的密码是一二三四',
    ];
    for (const prompt of prompts) {
      const request = JSON.stringify({ messages: [{ role: 'user', content: prompt }] });
      const json = JSON.stringify(prompt).slice(1, -1);
      const ascii = json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
      const python = json.replaceAll('\\"', '"');
      const twice = JSON.stringify(ascii).slice(1, -1);
      for (const quote of [
        prompt,
        json,
        ascii,
        ascii.replace(/(?<=\\u)..../g, (digits) => digits.toUpperCase()),
        python,
        twice,
      ]) {
        assert.equal(
          withoutWordsOf(`Input should be a list, input_value='${quote}'.`, request),
          "Input should be a list, input_value='[…]'.",
        );
      }
    }
  });

  test('withoutWordsOf leaves a message that quotes nothing as it was written, escapes and all', () => {
    const message = String.raw`'name' does not match '^[\w-]{1,64}$' at C:\new, see \u00e9.`;
    assert.equal(withoutWordsOf(message, JSON.stringify({ name: 'Some text of a caller' })), message);
  });

  test('withoutWordsOf removes the names of files, of the request and beside it, unless they are single words', () => {
    const content = [
      { type: 'file', file: { filename: 'diagnosis-of-jane-doe.pdf', file_data: 'data:application/pdf;base64,AA' } },
    ];
    const request = JSON.stringify({ messages: [{ role: 'user', content }] });
    assert.equal(withoutWordsOf("Cannot read 'diagnosis-of-jane-doe.pdf'.", request), "Cannot read '[…]'.");
    assert.equal(
      withoutWordsOf('The file will.m4a is no audio file', '{}', ['will.m4a', 'file']),
      'The file […] is no audio file',
    );
  });
});
