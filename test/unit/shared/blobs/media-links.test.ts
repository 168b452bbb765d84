import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { endpoints } from '../../../../api/endpoints/endpoints.ts';
import { linkPath, mediaLinks } from '../../../../shared/blobs/media-links.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { goodBodies } from '../../../support/named-blobs.ts';

const takingJson = endpoints.filter(({ parse }) => parse !== undefined);

function refusal(parse: (body: Uint8Array) => unknown, body: string): ApiError | undefined {
  try {
    parse(Buffer.from(body));
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error;
  }
}

const strange = [
  ...[
    'file:///etc/passwd',
    'FILE:///etc/passwd',
    'gopher://127.0.0.1:6379/_',
    'ftp://example.com/x.png',
    'javascript:1',
  ],
  ...[
    '/etc/passwd',
    'C:\\x.png',
    '//169.254.169.254/latest',
    ' file:///etc/passwd',
    '\nhttp://x',
    'httpx://a',
    's3://b/c',
  ],
  ...['view-source:http://a', 'jar:http://a!/b', 'http:', 'https:/a', 'unix:/var/run/docker.sock'],
];

describe('media links in a request', () => {
  for (const { name, parse } of takingJson) {
    it(`a media link to ${name} that is neither http(s): nor data: is a 400 that names it`, () => {
      for (const good of goodBodies[name] ?? []) {
        for (const path of mediaLinks(good).map(linkPath)) {
          for (const url of strange) {
            // A copy for each: the link is put in where it stands.
            const body = structuredClone(good);
            const link = mediaLinks(body).find((one) => linkPath(one) === path) ?? assert.fail();
            link.holder[link.key] = url;
            const error = parse && refusal(parse, JSON.stringify(body));
            assert.deepEqual([error?.status, error?.param], [400, path], url);
          }
        }
      }
    });
  }

  it('mediaLinks finds the links of every endpoint that has some', () => {
    const found = Object.entries(goodBodies).map(([name, bodies]) => [
      name,
      bodies.flatMap((body) => mediaLinks(body).length),
    ]);
    const counts = Object.fromEntries(found);
    assert.deepEqual(counts.chat, [1]);
    assert.deepEqual(counts.messages, [1]);
    assert.deepEqual(counts['images.edits'], [2, 2]);
    assert.deepEqual(counts.responses, [1, 0]);
    assert.deepEqual(counts.videos, [1, 0]);
  });

  it('media links are found in lists, in unknown vendor fields, and however their names are escaped', () => {
    const { parse } = endpoints.find(({ name }) => name === 'chat') ?? assert.fail();
    const chat = (part: string, more = ''): string =>
      `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x",${part}}]}]${more}}`;
    const text = '"detail":"low"';
    const file = '"file:///etc/passwd"';
    for (const [body, param] of [
      [chat(`"image_url":${file}`), 'messages[0].content[0].image_url'],
      [chat(`"video_url":{"url":${file}}`), 'messages[0].content[0].video_url.url'],
      [chat(`"audio_url":{"type":"x_call","url":${file}}`), 'messages[0].content[0].audio_url.url'],
      [chat(`"image_\\u0075rl":${file}`), 'messages[0].content[0].image_url'],
      [chat(text, `,"image_urls":["https://example.com/a.png",${file}]`), 'image_urls[1]'],
      [chat(text, `,"documents":[{"uri":${file}}]`), 'documents[0].uri'],
    ] as const) {
      assert.equal((parse && refusal(parse, body))?.param, param, body);
    }
  });

  it('mediaLinks ignores URLs in schemas, texts, metadata, tool calls and model output', () => {
    const url = 'file:///etc/passwd';
    const { parse } = endpoints.find(({ name }) => name === 'messages') ?? assert.fail();
    const body = {
      ...{ model: 'm', max_tokens: 9, metadata: { user_id: 'u', url } },
      tools: [{ name: 'fetch', input_schema: { type: 'object', properties: { url: { default: url } }, url } }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: `{"url":"${url}"}` }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'fetch', input: { url } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: url }] },
      ],
    };
    assert.equal(parse && refusal(parse, JSON.stringify(body)), undefined);
    const items = [{ type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'open_page', url } }];
    assert.deepEqual(mediaLinks({ input: items }), []);
    const said = { type: 'output_text', text: 'x', annotations: [{ type: 'url_citation', url }] };
    assert.deepEqual(mediaLinks({ input: [{ type: 'message', role: 'assistant', content: [said] }] }), []);
  });
});
