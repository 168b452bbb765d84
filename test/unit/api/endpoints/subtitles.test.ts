import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { toSrt, toVtt } from '../../../../api/endpoints/audio/subtitles.ts';

const segments = [
  { start: 0, end: 2.5, text: ' Good day.' },
  { start: 2.5, end: 3723.0405, text: ' Fish & chips <3, two\nlines --> here' },
];

interface ReadCue {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const time = /^(\d{2,}):([0-5]\d):([0-5]\d)[.,](\d{3})$/;

function readTime(text: string, point: string): number {
  const match = time.exec(text);
  assert.ok(match && text.includes(point), `no time: ${text}`);
  const [hours, minutes, seconds, thousandths] = match.slice(1).map(Number) as [number, number, number, number];
  return ((hours * 60 + minutes) * 60 + seconds) * 1000 + thousandths;
}

function readCue(block: string, point: string): ReadCue {
  const [times, ...lines] = block.split('\n') as [string, ...string[]];
  const [start, end, ...more] = times.split(' --> ') as [string, string, ...string[]];
  assert.deepEqual(more, []);
  return { start: readTime(start, point), end: readTime(end, point), text: lines.join('\n') };
}

/** Cues of a file, which is cut at its blank lines as every player does. */
function readSrt(text: string): ReadCue[] {
  const blocks = text.split('\n\n');
  assert.equal(blocks.pop(), '');
  return blocks.map((block, index) => {
    assert.ok(block.startsWith(`${index + 1}\n`), block);
    return readCue(block.slice(block.indexOf('\n') + 1), ',');
  });
}

function readVtt(text: string): ReadCue[] {
  const [head, ...blocks] = text.split('\n\n');
  assert.equal(head, 'WEBVTT');
  assert.equal(blocks.pop(), '');
  const plainText = (escaped: string): string => {
    assert.doesNotMatch(escaped, /-->|</);
    return escaped.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
  };
  return blocks.map((block) => readCue(block, '.')).map((cue) => ({ ...cue, text: plainText(cue.text) }));
}

const lines = (text: string): string[] =>
  text
    .split(/\r\n|\n|\r/)
    .map((line) => line.trim())
    .filter(Boolean);

describe('subtitles', () => {
  it('toSrt writes exact SubRip', () => {
    assert.equal(
      toSrt({ text: '', segments }),
      '1\n00:00:00,000 --> 00:00:02,500\nGood day.\n\n' +
        '2\n00:00:02,500 --> 01:02:03,041\nFish & chips <3, two\nlines -> here\n\n',
    );
  });

  it('toVtt writes exact WebVTT', () => {
    assert.equal(
      toVtt({ text: '', segments }),
      'WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nGood day.\n\n' +
        '00:00:02.500 --> 01:02:03.041\nFish &amp; chips &lt;3, two\nlines --&gt; here\n\n',
    );
  });

  it('subtitles of silence are empty', () => {
    assert.equal(toSrt({ text: '', segments: [] }), '');
    assert.equal(toVtt({ text: '' }), 'WEBVTT\n\n');
  });

  it('subtitles of a transcript without segments have one cue', () => {
    assert.deepEqual(readSrt(toSrt({ text: 'All of it.', duration: 90.25 })), [
      { start: 0, end: 90_250, text: 'All of it.' },
    ]);
    assert.deepEqual(readVtt(toVtt({ text: 'All of it.' })), [{ start: 0, end: 0, text: 'All of it.' }]);
  });

  it('subtitles of a transcript whose vendor has made no segments of it, or broken ones, have its text', () => {
    const whole = [{ start: 0, end: 3000, text: 'Good day.' }];
    for (const segments of [[], {}, 'none', [null, { start: 1 }, { text: 5 }], [{ start: 0, end: 1, text: ' ' }]]) {
      const transcript = { text: 'Good day.', duration: 3, segments };
      assert.deepEqual(readSrt(toSrt(transcript)), whole);
      assert.deepEqual(readVtt(toVtt(transcript)), whole);
    }
    const [some] = readSrt(
      toSrt({ text: '', duration: 'long', segments: [null, { start: '1', end: 2, text: 'Hi.' }] }),
    );
    assert.deepEqual(some, { start: 0, end: 2000, text: 'Hi.' });
  });

  const anyTime = fc.oneof(fc.double(), fc.double({ min: 0, max: 400_000, noNaN: true }), fc.nat(100));
  const anyText = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc
      .array(fc.constantFrom('a', ' ', '\n', '\r\n', '-->', '<b>', '&amp;', '>', '1', '00:00:00.000', '😀'))
      .map((parts) => parts.join('')),
  );
  const anySegments = fc.array(fc.record({ start: anyTime, end: anyTime, text: anyText }), { maxLength: 12 });

  it('subtitles of any segments have times that never go back, and lose no text', () => {
    fc.assert(
      fc.property(anySegments, (given) => {
        const said = given.flatMap(({ text }) => lines(text));
        const srt = readSrt(toSrt({ text: '', segments: given }));
        const vtt = readVtt(toVtt({ text: '', segments: given }));
        for (const cues of [srt, vtt]) {
          let latest = 0;
          for (const { start, end } of cues) {
            assert.ok(start >= latest && end >= start);
            latest = start;
          }
        }
        assert.deepEqual(
          vtt.flatMap(({ text }) => text.split('\n')),
          said,
        );
        assert.deepEqual(
          srt.flatMap(({ text }) => text.split('\n')),
          said.map((line) => line.replaceAll('-->', '->')),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('subtitles keep the times of ordered segments to the millisecond', () => {
    const ordered = fc
      .array(fc.tuple(fc.nat(5_000_000), fc.nat(60_000)), { maxLength: 20 })
      .map((pairs) => pairs.sort(([one], [other]) => one - other));
    fc.assert(
      fc.property(ordered, (pairs) => {
        const given = pairs.map(([start, length]) => ({
          start: start / 1000,
          end: (start + length) / 1000,
          text: 'x',
        }));
        const expected = pairs.map(([start, length]) => ({ start, end: start + length, text: 'x' }));
        assert.deepEqual(readSrt(toSrt({ text: '', segments: given })), expected);
        assert.deepEqual(readVtt(toVtt({ text: '', segments: given })), expected);
      }),
    );
  });
});
