import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { maxEvent, SseReader } from '../../../workers/vendors/support/delta-stream.ts';
import { cut } from '../contracts/fixture-vendor.ts';

type Event = { data: string; type: string | undefined };

function read(parts: readonly Buffer[]): Event[] {
  const events: Event[] = [];
  const reader = new SseReader((data, type) => events.push({ data, type }));
  for (const part of parts) reader.read(part);
  return events;
}

function dataOf(text: string): string[] {
  return read([Buffer.from(text)]).map((event) => event.data);
}

/** The standard's algorithm word by word (https://html.spec.whatwg.org/multipage/server-sent-events.html), on whole input. */
function eventsByTheStandard(bytes: Buffer): Event[] {
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\n|\r/);
  // What follows the last line end is no line.
  lines.pop();
  const events: Event[] = [];
  let data: string[] = [];
  let type: string | undefined;
  for (const line of lines) {
    if (line === '') {
      if (data.length > 0) events.push({ data: data.join('\n'), type });
      data = [];
      type = undefined;
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data.push(value);
    if (field === 'event') type = value || undefined;
  }
  return events;
}

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }).map((each) => each.replace(/[\r\n]/g, '')),
  fc.constantFrom('{"a":"ż"}', '[DONE]', '🦥', ' ', ':', ''),
);
const line = fc.oneof(
  { weight: 6, arbitrary: text.map((each) => `data: ${each}`) },
  text.map((each) => `data:${each}`),
  text.map((each) => `event: ${each}`),
  text.map((each) => `: ${each}`),
  text.map((each) => `id: ${each}`),
  fc.constantFrom('data', 'retry: 10', 'retry: soon', 'nonsense', 'datum: 1'),
);
const ending = fc.constantFrom('\n', '\r\n', '\r');
const stream = fc
  .tuple(
    fc.constantFrom('', '\uFEFF'),
    fc.array(fc.oneof({ weight: 2, arbitrary: fc.tuple(line, ending) }, fc.tuple(fc.constant(''), ending)), {
      maxLength: 30,
    }),
    fc.constantFrom('', 'data: unfinished', 'data: unfinished\n'),
  )
  .map(([mark, lines, rest]) => Buffer.from(mark + lines.flat().join('') + rest));
const places = fc.array(fc.nat(), { maxLength: 20 });

describe('SseReader', () => {
  it('SseReader follows the standard however the bytes are split', () => {
    fc.assert(
      fc.property(stream, places, (bytes, at) => {
        assert.deepEqual(read(cut(bytes, at)), eventsByTheStandard(bytes));
      }),
      { numRuns: 1000 },
    );
  });

  it('SseReader follows the standard when every byte arrives alone', () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        assert.deepEqual(read([...bytes].map((byte) => Buffer.from([byte]))), eventsByTheStandard(bytes));
      }),
    );
  });

  it('SseReader reads invalid UTF-8 the same however the bytes are split', () => {
    const broken = fc.array(fc.constantFrom(0x41, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0xa6, 0xff, 0xed, 0xa0), {
      maxLength: 24,
    });
    fc.assert(
      fc.property(broken, places, (middle, at) => {
        const bytes = Buffer.concat([Buffer.from('data: '), Buffer.from(middle), Buffer.from('\n\n')]);
        assert.deepEqual(read(cut(bytes, at)), eventsByTheStandard(bytes));
      }),
      { numRuns: 1000 },
    );
  });

  it('SseReader yields an event at its blank line without waiting for the next byte, for every line end', () => {
    for (const end of ['\n', '\r\n', '\r']) assert.deepEqual(dataOf(`data: a${end}${end}`), ['a']);
  });

  it('SseReader joins the data lines of one event, and drops an unfinished event', () => {
    assert.deepEqual(dataOf('data: a\ndata: b\n\ndata: c\n'), ['a\nb']);
  });

  it('SseReader reads an event of 4 MiB that arrives in many parts', () => {
    const data = 'é'.repeat(1024 * 1024 * 2);
    const bytes = Buffer.from(`data: ${data}\n\n`);
    const parts = Array.from({ length: Math.ceil(bytes.length / 10_007) }, (_, at) =>
      bytes.subarray(at * 10_007, (at + 1) * 10_007),
    );
    assert.equal(read(parts)[0]?.data, data);
  });

  // Looked at line by line to its end, such a chunk takes minutes.
  it('SseReader looks once at each byte of a chunk of empty lines with one CR among them', () => {
    const lines = '\n'.repeat(4 * 1024 * 1024);
    assert.deepEqual(dataOf(`data: a\r${lines}data: b\n\n`), ['a', 'b']);
    assert.deepEqual(dataOf(`data: a\n${lines}\rdata: b\n\n`), ['a', 'b']);
  });

  it('SseReader fails with a clear error when an event exceeds the limit, in one line or in many', () => {
    for (const part of ['x'.repeat(65_536), `data: ${'x'.repeat(65_536)}\n`]) {
      const reader = new SseReader(() => assert.fail('no event is whole'));
      const readAll = () => {
        for (let bytes = 0; bytes <= maxEvent + part.length; bytes += 65_536) reader.read(Buffer.from(part));
      };
      assert.throws(readAll, { name: 'ApiError', code: 'server_error', message: /more than 8388608 characters/ });
    }
  });

  it('SseReader fails with a clear error when an event has very many lines, which take more memory than they say', () => {
    const reader = new SseReader(() => assert.fail('no event is whole'));
    const part = Buffer.from('data:\n'.repeat(10_000));
    const readAll = () => {
      for (let lines = 0; lines < 1_000_000; lines += 10_000) reader.read(part);
    };
    assert.throws(readAll, { name: 'ApiError', code: 'server_error', message: /more than 100000 lines/ });
  });

  it('SseReader reads as many pings and blank lines as its vendor sends', () => {
    const seen: string[] = [];
    const reader = new SseReader((data) => seen.push(data));
    for (let round = 0; round < 20; round++) {
      reader.read(Buffer.from(':\n\n'.repeat(20_000)));
      reader.read(Buffer.from('\n'.repeat(20_000)));
    }
    reader.read(Buffer.from('data: a\n\n'));
    assert.deepEqual(seen, ['a']);
  });
});
