import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { decodedSize, largePngFile, pngBytes, pngFile } from '../../support/image-files.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const model = 'sandbox-image';
const dataUrl = `data:image/png;base64,${pngBytes(32).toString('base64')}`;

type FormValues = readonly (readonly [field: string, value: string | File])[];

function formOf(values: FormValues): FormData {
  const form = new FormData();
  for (const [field, value] of values) form.append(field, value);
  return form;
}

describe('POST /v1/images/edits and /v1/images/variations', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(() => gateway.stop());

  /** Posts a form, the fields of a good edit before those given. */
  function post(path: string, values: FormValues, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${gateway.apiKey}`, ...init.headers };
    return fetch(`${gateway.url}${path}`, { method: 'POST', body: formOf(values), ...init, headers });
  }

  const edit = (values: FormValues, init?: RequestInit): Promise<Response> =>
    post('/v1/images/edits', [['model', model], ['prompt', 'Make it night'], ['size', '256x256'], ...values], init);

  async function decoded(image: OpenAI.Image | undefined): Promise<string> {
    if (image?.b64_json !== undefined) return decodedSize(Buffer.from(image.b64_json, 'base64'));
    const response = await fetch(image?.url ?? '');
    assert.equal(response.status, 200);
    return decodedSize(new Uint8Array(await response.arrayBuffer()));
  }

  /** The blobs that are no result: uploads, requests, large frames. Results have an ending. */
  const uploads = async (): Promise<string[]> =>
    (await storedBlobs(gateway.dataDir)).filter((name) => !name.endsWith('.png'));

  const noUploads = (): Promise<void> => eventually(async () => assert.deepEqual(await uploads(), []));

  it('POST /v1/images/edits edits one image of a form', async () => {
    const image = pngFile('otter.png');
    const answer = await client.images.edit({ model, image, prompt: 'Make it night', size: '512x512', user: 'one' });
    assert.equal(answer.data?.length, 1);
    assert.equal(await decoded(answer.data?.[0]), '512x512');
    assert.ok((answer.usage?.input_tokens_details.image_tokens ?? 0) > 0, 'the vendor counted the image');
    assert.equal((await vendorCalls(gateway, 'one')).length, 1);
    await noUploads();
  });

  it('POST /v1/images/edits edits several images with a mask, and keeps their order', async () => {
    const [one, two] = [pngFile('one.png', 64), pngFile('two.png', 48)];
    const mask = pngFile('mask.png', 64);
    const request = { model, prompt: 'Join them', n: 2, response_format: 'b64_json', size: '256x256' } as const;
    const joined = await client.images.edit({ ...request, image: [one, two], mask });
    const images = joined.data ?? [];
    assert.equal(images.length, 2);
    assert.deepEqual(await Promise.all(images.map(decoded)), ['256x256', '256x256']);
    const again = await client.images.edit({ ...request, image: [one, two], mask });
    assert.deepEqual(again.data, images);
    const unmasked = await client.images.edit({ ...request, image: [one, two] });
    assert.notDeepEqual(unmasked.data, images);
    const turned = await client.images.edit({ ...request, image: [two, one] });
    assert.notDeepEqual(turned.data, unmasked.data);
    await noUploads();
  });

  it('POST /v1/images/edits accepts 16 images, as repeated image or image[] fields, and as image[0] to image[15]', async () => {
    const files = Array.from({ length: 16 }, (_, index) => pngFile(`${index}.png`, 16 + index));
    const named = await edit([...files.map((file) => ['image', file] as const), ['response_format', 'b64_json']]);
    const bracketed = await edit([...files.map((file) => ['image[]', file] as const), ['response_format', 'b64_json']]);
    const indexed = files.map((file, index) => [`image[${index}]`, file] as const);
    const numbered = await edit([...indexed, ['response_format', 'b64_json']]);
    const [one, ...others] = await Promise.all(
      [named, bracketed, numbered].map(async (response) => (await response.json()) as OpenAI.ImagesResponse),
    );
    assert.equal(await decoded(one?.data?.[0]), '256x256');
    for (const other of others) assert.deepEqual(one?.data, other.data);
  });

  it('POST /v1/images/edits accepts JSON with data URLs, and returns the same as for a form', async () => {
    const fields = { model, prompt: 'Make it night', size: '256x256', response_format: 'b64_json' };
    const response = await gateway.fetch('/v1/images/edits', {
      method: 'POST',
      body: JSON.stringify({ ...fields, images: [{ image_url: dataUrl }], mask: { image_url: dataUrl } }),
    });
    const answer = (await response.json()) as OpenAI.ImagesResponse;
    assert.equal(response.status, 200);
    const form = await edit([
      ['image', pngFile('a.png', 32)],
      ['mask', pngFile('b.png', 32)],
      ['response_format', 'b64_json'],
    ]);
    assert.deepEqual(answer.data, ((await form.json()) as OpenAI.ImagesResponse).data);
    await noUploads();
  });

  it('POST /v1/images/edits accepts a large image in JSON', async () => {
    const large = Buffer.from(await largePngFile('large.png', 3_000_000).arrayBuffer()).toString('base64');
    const response = await gateway.fetch('/v1/images/edits', {
      method: 'POST',
      body: JSON.stringify({ model, prompt: 'x', images: [{ image_url: `data:image/png;base64,${large}` }] }),
    });
    assert.equal(response.status, 200);
    await noUploads();
  });

  it('POST /v1/images/edits streams image_edit events', async () => {
    const image = pngFile('otter.png');
    const types: string[] = [];
    const stream = await client.images.edit({ model, image, prompt: 'x', stream: true, partial_images: 2 });
    for await (const event of stream) {
      types.push(event.type);
      assert.equal(decodedSize(Buffer.from(event.b64_json, 'base64')), '1024x1024');
    }
    assert.deepEqual(types, ['image_edit.partial_image', 'image_edit.partial_image', 'image_edit.completed']);
    await noUploads();
  });

  it('POST /v1/images/edits with respond-async keeps the upload until its job ends', async () => {
    const response = await edit([['image', pngFile('otter.png')]], { headers: { prefer: 'respond-async' } });
    assert.equal(response.status, 202);
    const { id } = (await response.json()) as { id: string };
    const job = await eventually(async () => {
      const read = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as { status: string };
      assert.equal(read.status, 'completed');
      return read as { status: string; endpoint: string; result: OpenAI.ImagesResponse };
    });
    assert.equal(job.endpoint, 'images.edits');
    assert.equal(await decoded(job.result.data?.[0]), '256x256');
    await noUploads();
  });

  it('POST /v1/images/variations makes variations of an image', async () => {
    const image = pngFile('otter.png', 64);
    const request = { model, image, n: 2, size: '256x256', response_format: 'b64_json', user: 'varied' } as const;
    const answer = await client.images.createVariation(request);
    assert.deepEqual(await Promise.all((answer.data ?? []).map(decoded)), ['256x256', '256x256']);
    const linked = await client.images.createVariation({ model, image, size: '512x512' });
    assert.equal(await decoded(linked.data?.[0]), '512x512');
    assert.equal((await vendorCalls(gateway, 'varied')).length, 1);
    await noUploads();
  });

  it('POST /v1/images/edits keeps no upload of a request refused by the gateway or the vendor', async () => {
    const before = (await storedBlobs(gateway.dataDir)).length;
    const image = pngFile('otter.png');
    await assertErrorAnswer(
      await edit([
        ['image', image],
        ['n', '99'],
      ]),
      400,
      'invalid_request_error',
    );
    await assertErrorAnswer(
      await edit([
        ['image', image],
        ['model', 'nothing'],
      ]),
      400,
      'invalid_request_error',
    );
    const unknown = await post('/v1/images/edits', [
      ['model', 'no-such-model'],
      ['prompt', 'x'],
      ['image', image],
    ]);
    await assertErrorAnswer(unknown, 404, 'model_not_found');
    const wrongModel = await post('/v1/images/edits', [
      ['model', 'sandbox-chat'],
      ['prompt', 'x'],
      ['image', image],
    ]);
    assert.equal((await assertErrorAnswer(wrongModel, 400, 'invalid_request_error')).param, 'model');
    const wrongSize = await edit([
      ['image', image],
      ['size', '3x3'],
    ]);
    assert.equal(wrongSize.status, 400);
    const text = new File(['no image'], 'a.txt', { type: 'text/plain' });
    const refused = await edit([['image', text]]);
    const error = await assertErrorAnswer(refused, 400, 'unsupported_file_mimetype');
    assert.equal(error.param, 'image');
    await eventually(async () => assert.equal((await storedBlobs(gateway.dataDir)).length, before));
  });

  it('POST /v1/images/edits keeps no upload after its client disconnects', async () => {
    const before = (await storedBlobs(gateway.dataDir)).length;
    const leave = new AbortController();
    const values: FormValues = [
      ['image', largePngFile('large.png', 1_000_000)],
      ['user', 'leaving'],
      ['sandbox', '{"first_token_ms":60000}'],
    ];
    const asked = edit(values, { signal: leave.signal });
    await eventually(async () => {
      const { open } = (await (await fetch(`${gateway.sandbox.url}/__open`)).json()) as { open: number };
      assert.equal(open, 1);
    });
    assert.ok((await uploads()).length >= 1, 'the upload is there while the job runs');
    leave.abort();
    await assert.rejects(asked);
    await eventually(async () => assert.equal((await storedBlobs(gateway.dataDir)).length, before));
  });

  it('POST /v1/images/edits keeps no upload of a job deleted while it runs', async () => {
    const before = (await storedBlobs(gateway.dataDir)).length;
    const values: FormValues = [
      ['image', pngFile('otter.png')],
      ['sandbox', '{"first_token_ms":60000}'],
    ];
    const accepted = await edit(values, { headers: { prefer: 'respond-async' } });
    const { id } = (await accepted.json()) as { id: string };
    const deleted = await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    assert.equal(((await deleted.json()) as { status: string }).status, 'cancelled');
    await eventually(async () => assert.equal((await storedBlobs(gateway.dataDir)).length, before));
  });

  const badForms: [name: string, values: () => FormValues, param: string][] = [
    ['a missing image', () => [], 'image'],
    ['an image that is text', () => [['image', 'otter']], 'image'],
    ['an empty image', () => [['image', new File([], 'a.png')]], 'image'],
    [
      'a file in an unknown field',
      () => [
        ['image', pngFile('a.png')],
        ['picture', pngFile('b.png')],
      ],
      'picture',
    ],
    [
      'two masks',
      () => [
        ['image', pngFile('a.png')],
        ['mask', pngFile('b.png')],
        ['mask', pngFile('c.png')],
      ],
      'mask',
    ],
    [
      'an n that is not a number',
      () => [
        ['image', pngFile('a.png')],
        ['n', 'two'],
      ],
      'n',
    ],
    [
      'a stream that is 1',
      () => [
        ['image', pngFile('a.png')],
        ['stream', '1'],
      ],
      'stream',
    ],
    [
      'partial images without a stream',
      () => [
        ['image', pngFile('a.png')],
        ['partial_images', '1'],
      ],
      'partial_images',
    ],
    [
      'an unknown fidelity',
      () => [
        ['image', pngFile('a.png')],
        ['input_fidelity', 'most'],
      ],
      'input_fidelity',
    ],
    [
      'a second prompt',
      () => [
        ['image', pngFile('a.png')],
        ['prompt', 'x'],
      ],
      'prompt',
    ],
  ];
  it('POST /v1/images/edits returns 400 naming the invalid field of a form', async (t) => {
    for (const [name, values, param] of badForms) {
      await t.test(`POST /v1/images/edits refuses ${name}`, async () => {
        const error = await assertErrorAnswer(await edit(values()), 400, 'invalid_request_error');
        assert.equal(error.param, param);
      });
    }
    await noUploads();
  });

  const badBodies: [fields: object, param: string][] = [
    [{ images: [] }, 'images'],
    [{ images: [{ file_id: 'file-1' }] }, 'images[0].file_id'],
    [{ images: [{ image_url: 'http://example.com/a.png' }] }, 'images[0].image_url'],
    [{ mask: { file_id: 'file-1' } }, 'mask.file_id'],
    [{ prompt: '' }, 'prompt'],
  ];
  it('POST /v1/images/edits returns 400 naming the invalid field of a JSON body', async (t) => {
    for (const [fields, param] of badBodies) {
      await t.test(`POST /v1/images/edits refuses ${JSON.stringify(fields)}`, async () => {
        const body = JSON.stringify({ model, prompt: 'x', images: [{ image_url: dataUrl }], ...fields });
        const response = await gateway.fetch('/v1/images/edits', { method: 'POST', body });
        assert.equal((await assertErrorAnswer(response, 400, 'invalid_request_error')).param, param);
      });
    }
  });

  it('POST /v1/images/variations returns 400 naming an invalid field, and 415 for JSON', async () => {
    const vary = (values: FormValues) => post('/v1/images/variations', [['model', model], ...values]);
    const cases: [FormValues, string][] = [
      [[], 'image'],
      [
        [
          ['image', pngFile('a.png')],
          ['image', pngFile('b.png')],
        ],
        'image',
      ],
      [
        [
          ['image', pngFile('a.png')],
          ['stream', 'true'],
        ],
        'stream',
      ],
      [
        [
          ['image', pngFile('a.png')],
          ['mask', pngFile('b.png')],
        ],
        'mask',
      ],
      [
        [
          ['image', pngFile('a.png')],
          ['n', '0'],
        ],
        'n',
      ],
      [
        [
          ['image', pngFile('a.png')],
          ['size', '1x1'],
        ],
        'size',
      ],
    ];
    for (const [values, param] of cases) {
      assert.equal((await assertErrorAnswer(await vary(values), 400, 'invalid_request_error')).param, param);
    }
    const body = JSON.stringify({ model });
    const json = await gateway.fetch('/v1/images/variations', { method: 'POST', body });
    await assertErrorAnswer(json, 415, 'unsupported_media_type');
    await noUploads();
  });

  it('POST /v1/images/edits streams 20 MB images through, so that neither api nor worker grows by their size', async () => {
    const [api, worker] = [gateway.apis[0], gateway.workers[0]];
    assert.ok(api && worker);
    const peak = async (pid: number): Promise<number> => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    };
    const image = largePngFile('large.png', 20 * 1024 * 1024);
    const send = async (): Promise<void> => {
      const response = await edit([['image', image]]);
      assert.equal(response.status, 200, await response.text());
    };
    // Once so that code is compiled and buffers have their usual size; the peaks are measured from there.
    await send();
    const before = await Promise.all([peak(api.pid), peak(worker.pid)]);
    for (let times = 0; times < 4; times++) await send();
    await Promise.all([send(), send(), send(), send()]);
    const after = await Promise.all([peak(api.pid), peak(worker.pid)]);
    for (const [index, name] of ['api', 'worker'].entries()) {
      const grown = (after[index] as number) - (before[index] as number);
      assert.ok(
        grown < 60 * 1024 * 1024,
        `the ${name} grew by ${Math.round(grown / 1024 ** 2)} MiB over eight uploads`,
      );
    }
    await noUploads();
  });
});
