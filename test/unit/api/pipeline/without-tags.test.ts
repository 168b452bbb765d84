import assert from 'node:assert/strict';
import { it } from 'node:test';
import { parseSpeech } from '../../../../api/endpoints/audio/parse-speech.ts';
import { parseCompletion } from '../../../../api/endpoints/completions/parse-completion.ts';
import { parseEmbeddings } from '../../../../api/endpoints/embeddings/parse-embeddings.ts';
import { parseImageGeneration } from '../../../../api/endpoints/images/parse-image.ts';
import { parseVideo } from '../../../../api/endpoints/videos/parse-video.ts';
import type { ParsedRequest } from '../../../../api/pipeline/parsed-request.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';

type Parse = (body: Buffer) => Pick<ParsedRequest, 'metadata' | 'request'>;

const endpoints: readonly (readonly [parse: Parse, body: object])[] = [
  [parseEmbeddings, { model: 'm', input: ['Hi'] }],
  [parseSpeech, { model: 'm', voice: 'alloy', input: 'Hi' }],
  [parseImageGeneration, { model: 'm', prompt: 'A lighthouse' }],
  [parseVideo, { model: 'm', prompt: 'A lighthouse' }],
  [parseCompletion, { model: 'm', prompt: 'Hi' }],
];

it('tags of a request that has no metadata at OpenAI count its usage, and are not sent to its vendor, which would refuse them', () => {
  for (const [parse, body] of endpoints) {
    const sent = (metadata: unknown) => parse(Buffer.from(JSON.stringify({ ...body, metadata })));
    const plain = textOf(parse(Buffer.from(JSON.stringify(body))).request);
    const tagged = sent({ team: 'search' });
    assert.equal(tagged.metadata, '{"team":"search"}');
    assert.equal(textOf(tagged.request), plain);
    assert.equal(textOf(sent({}).request), plain);
    // No tags: its vendor may know what it is.
    const own = sent({ depth: { of: 3 } });
    assert.equal(own.metadata, undefined);
    assert.ok(textOf(own.request).includes('"metadata":{"depth":{"of":3}}'));
  }
});
