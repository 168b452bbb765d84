/** A body, and how it was changed, for the name of a failure. */
export interface ChangedBody {
  readonly how: string;
  readonly body: unknown;
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Objects by which our own records name a blob, or once did. */
function recordsOf(id: string): { readonly [name: string]: Json }[] {
  const file = { name: 'a.png', type: 'image/png', bytes: 1 };
  return [
    { file: id, ...file },
    { blob: id, field: 'image', ...file },
    { blob: id, bytes: 1 },
    { files: [id], uploads: [{ blob: id, field: 'image', ...file }], requestBlob: id },
  ];
}

/**
 * All that can be made of a body by naming a blob in it once: in place of each text, in place of each object, among the fields
 * of each object, and among the items of each list.
 */
export function namingBlob(body: unknown, id: string): ChangedBody[] {
  const changed: ChangedBody[] = [];
  const visit = (value: Json, path: string, put: (changed: Json) => unknown): void => {
    const add = (how: string, now: Json): void => void changed.push({ how: `${path}: ${how}`, body: put(now) });
    if (typeof value === 'string') add('the id', id);
    if (typeof value === 'string' && value !== id) add('a link to it', `/results/${id}`);
    if (typeof value !== 'object' || value === null) return;
    const isList = Array.isArray(value);
    for (const [index, record] of recordsOf(id).entries()) {
      add(`record ${index} in its place`, record);
      if (isList) add(`record ${index} as an item`, [...value, record]);
      else add(`record ${index} among its fields`, { ...(value as object), ...record });
    }
    for (const [name, child] of Object.entries(value)) {
      visit(child as Json, `${path}.${name}`, (now) => {
        if (!isList) return put({ ...(value as { readonly [name: string]: Json }), [name]: now });
        return put(value.map((item: Json, at: number) => (String(at) === name ? now : item)));
      });
    }
  };
  visit(body as Json, 'body', (now) => now);
  return changed;
}

const link = 'https://example.com/x.png';
const data = 'data:image/png;base64,iVBORw0KGgo=';
const user = (content: unknown) => ({ role: 'user', content });
const tool = { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } };
const chat = {
  model: 'gpt-4o-mini',
  messages: [
    { role: 'system', content: 'Be short' },
    user([
      { type: 'text', text: 'Hi' },
      { type: 'image_url', image_url: { url: data, detail: 'low' } },
      { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
    ]),
  ],
  tools: [tool],
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
  metadata: { tag: 'a' },
  user: 'u',
};
const message = {
  model: 'gpt-4o-mini',
  messages: [
    user([
      { type: 'text', text: 'Hi' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
      { type: 'image', source: { type: 'url', url: link } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
    ]),
  ],
  tools: [{ name: 'f', input_schema: { type: 'object' } }],
};
const image = { model: 'gpt-image-2', prompt: 'An otter', size: '1024x1024', user: 'u' };
const video = { model: 'sora-2', prompt: 'An otter', seconds: '4', size: '720x1280' };

/** A good JSON body for each endpoint that takes one, with an object in every place that it has for one. */
export const goodBodies: Readonly<Record<string, readonly object[]>> = {
  chat: [chat],
  completions: [{ model: 'gpt-3.5-turbo-instruct', prompt: ['Hi'], suffix: 's', user: 'u' }],
  embeddings: [{ model: 'text-embedding-3-small', input: ['Hi', 'there'], user: 'u' }],
  'images.generations': [image],
  'images.edits': [
    { ...image, images: [{ image_url: link }], mask: { image_url: data } },
    { ...image, images: [{ image_url: data }, { image_url: link }] },
  ],
  'audio.speech': [{ model: 'tts-1', input: 'Hi', voice: 'alloy', instructions: 'i' }],
  responses: [
    {
      model: 'gpt-4o-mini',
      instructions: 'i',
      input: [
        { type: 'message', role: 'user', content: [{ type: 'input_image', image_url: data }] },
        { type: 'message', role: 'user', content: [{ type: 'input_file', filename: 'a.pdf', file_data: 'JVBERi0=' }] },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'done' },
      ],
      metadata: { tag: 'a' },
      store: false,
    },
    { model: 'gpt-4o-mini', input: [{ type: 'item_reference', id: 'msg_1' }], previous_response_id: 'resp_1' },
  ],
  messages: [{ ...message, max_tokens: 9, metadata: { user_id: 'u' } }],
  'messages.count_tokens': [message],
  videos: [
    { ...video, input_reference: { image_url: data } },
    { ...video, metadata: { tag: 'a' } },
  ],
  'videos.remix': [{ prompt: 'Another' }],
};
