import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, afterEach, before, describe, it } from 'node:test';
import OpenAI, { toFile } from 'openai';
import type { UploadRecord } from '../../../../shared/blobs/upload.ts';
import { textUntilEnd } from '../../../support/body-server.ts';
import { eventually } from '../../../support/eventually.ts';
import { type FormAnswer, FormServer, filePart, formHead, refused } from '../../../support/form-server.ts';

let server: FormServer;
before(async () => {
  server = await FormServer.start();
});
after(() => server.close());

/** Posts text, whose line ends become CRLF, under the boundary `b`. */
function postText(text: string): Promise<FormAnswer> {
  const body = Buffer.from(text.replaceAll('\n', '\r\n'));
  return server.post(body, { 'content-type': 'multipart/form-data; boundary=b' });
}

const sample = [
  '--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nein Kätzchen\r\n--x\r\n',
  '--b\r\nContent-Disposition: form-data; name="image[]"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nfirst\r\n\r\n-- file\r\n',
  '--b\r\nContent-Disposition: form-data; name="image[]"; filename="b.png"\r\nContent-Type: image/png\r\n\r\n\r\n',
  '--b--',
].join('');

describe('readForm', () => {
  afterEach(() => server.assertNothingLeft());

  it('readForm reads what fetch sends: fields in order, files with their names and types', async () => {
    const form = new FormData();
    form.append('model', 'm');
    form.append('tag', 'one');
    form.append('image[]', new Blob(['first'], { type: 'image/png' }), 'a.png');
    form.append('tag[]', 'two\r\nlines');
    form.append('image[]', new Blob(['zweites'], { type: 'image/webp' }), 'Bär 世界.webp');
    form.append('mask', new Blob([]), 'empty');
    form.append('empty', '');
    const { status, fields, files } = await server.post(form);
    assert.equal(status, 200);
    assert.deepEqual(fields, { model: ['m'], tag: ['one', 'two\r\nlines'], empty: [''] });
    assert.deepEqual(
      files.map(({ field, name, type, bytes }) => [field, name, type, bytes]),
      [
        ['image', 'a.png', 'image/png', 5],
        ['image', 'Bär 世界.webp', 'image/webp', 7],
        ['mask', 'empty', 'application/octet-stream', 0],
      ],
    );
    assert.deepEqual(await Promise.all(files.map((file) => server.take(file))), ['first', 'zweites', '']);
  });

  it('readForm reads lists whose items are numbered, as clients send them that name each field once', async () => {
    const form = new FormData();
    form.append('tag[0]', 'one');
    form.append('tag[1]', 'two');
    form.append('image[0]', new Blob(['first']), 'a.png');
    form.append('image[10]', new Blob(['second']), 'b.png');
    form.append('strategy[type]', 'of an object');
    const { fields, files } = await server.post(form);
    assert.deepEqual(fields, { tag: ['one', 'two'], 'strategy[type]': ['of an object'] });
    assert.deepEqual(
      files.map(({ field, name }) => [field, name]),
      [
        ['image', 'a.png'],
        ['image', 'b.png'],
      ],
    );
    assert.deepEqual(await Promise.all(files.map((file) => server.take(file))), ['first', 'second']);
  });

  it('readForm reads what the official client sends', async () => {
    const client = new OpenAI({ apiKey: 'none', baseURL: server.url, maxRetries: 0 });
    const image = await Promise.all(['one', 'two'].map((text) => toFile(Buffer.from(text), `${text}.png`)));
    const answer = await client.images.edit({ model: 'm', prompt: 'p', image, n: 2 });
    const { fields, files } = answer as unknown as FormAnswer;
    assert.deepEqual(fields, { model: ['m'], prompt: ['p'], n: ['2'] });
    assert.deepEqual(
      files.map(({ field, name }) => [field, name]),
      [
        ['image', 'one.png'],
        ['image', 'two.png'],
      ],
    );
    assert.deepEqual(await Promise.all(files.map((file) => server.take(file))), ['one', 'two']);
  });

  it('readForm reads every way to name a file', async () => {
    const ways: [disposition: string, name: string][] = [
      ['form-data; name="f"; filename="plain.png"', 'plain.png'],
      ['form-data; name=f; filename=token.png', 'token.png'],
      ['Form-Data ; NAME="f" ; FileName="spaced; out.png" ;', 'spaced; out.png'],
      ['form-data; name="f"; filename="a \\"quoted\\" \\\\ name"', 'a "quoted" \\ name'.replace(/^.*\\/, '')],
      ['form-data; name="f"; filename="Bär.png"', 'Bär.png'],
      ['form-data; name="f"; filename*=UTF-8\'\'B%C3%A4r%20%E4%B8%96.png', 'Bär 世.png'],
      ['form-data; name="f"; filename="fallback.png"; filename*=utf-8\'en\'%e2%82%ac.png', '€.png'],
      ['form-data; name="f"; filename*=iso-8859-1\'\'B%E4r.png', 'Bär.png'],
      ['form-data; name="f"; filename="../../etc/passwd"', 'passwd'],
      ['form-data; name="f"; filename="C:\\dir\\file.png"', 'file.png'],
      ['form-data; name="f"; filename=""', ''],
    ];
    for (const [disposition, name] of ways) {
      const answer = await postText(`--b\nContent-Disposition: ${disposition}\n\nbytes\n--b--\n`);
      assert.equal(answer.status, 200, disposition);
      assert.deepEqual([answer.files[0]?.field, answer.files[0]?.name], ['f', name], disposition);
      await server.take(answer.files[0] as UploadRecord);
    }
  });

  it('readForm takes a nameless part of unknown bytes as a file, and ignores a preamble and an epilogue', async () => {
    const answer = await postText(
      'before\n--b\nContent-Type: application/octet-stream\nContent-Disposition: form-data; name="f"\n\nx\n--b--\nafter',
    );
    assert.equal(answer.status, 200);
    assert.equal(answer.files[0]?.name, '');
    assert.equal(await server.take(answer.files[0] as UploadRecord), 'x');
    const quoted = await server.post('--a b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n--a b--', {
      'content-type': 'multipart/form-data; charset=utf-8; boundary="a b"',
    });
    assert.deepEqual(quoted.fields, { x: ['y'] });
  });

  it('readForm hashes the same content alike with any boundary, and differently by content, name, type or order', async () => {
    const hashOf = async (text: string, boundary = 'b'): Promise<string> => {
      const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
      const answer = await server.post(text.replaceAll('\n', '\r\n').replaceAll('--b', `--${boundary}`), headers);
      assert.equal(answer.status, 200);
      await Promise.all(answer.files.map((file) => server.take(file)));
      return answer.hash;
    };
    const field = (name: string, value: string): string =>
      `--b\nContent-Disposition: form-data; name="${name}"\n\n${value}\n`;
    const file = (name: string, type: string, text: string): string =>
      `--b\nContent-Disposition: form-data; name="f"; filename="${name}"\nContent-Type: ${type}\n\n${text}\n`;
    const whole = `${field('a', 'one')}${file('a.png', 'image/png', 'bytes')}--b--\n`;
    const hash = await hashOf(whole);
    assert.match(hash, /^[0-9a-f]{64}$/);
    assert.equal(await hashOf(whole, 'another-boundary'), hash);
    assert.equal(await hashOf(`preamble\n${whole}epilogue`), hash);
    const others = [
      `${field('a', 'two')}${file('a.png', 'image/png', 'bytes')}--b--\n`,
      `${field('b', 'one')}${file('a.png', 'image/png', 'bytes')}--b--\n`,
      `${field('a', 'one')}${file('b.png', 'image/png', 'bytes')}--b--\n`,
      `${field('a', 'one')}${file('a.png', 'image/webp', 'bytes')}--b--\n`,
      `${field('a', 'one')}${file('a.png', 'image/png', 'bytez')}--b--\n`,
      `${field('a', 'one')}${field('a', 'one')}${file('a.png', 'image/png', 'bytes')}--b--\n`,
      `${field('a', 'one')}--b--\n`,
    ];
    const hashes = await Promise.all(others.map((other) => hashOf(other)));
    assert.equal(new Set([hash, ...hashes]).size, others.length + 1);
  });

  it('readForm reads the same form however the bytes are split', async () => {
    const bytes = Buffer.from(sample);
    let expected: string | undefined;
    for (let at = 1; at < bytes.length; at++) {
      const socket = await server.open(`${formHead}connection: close\r\ncontent-length: ${bytes.length}\r\n\r\n`);
      socket.setNoDelay(true);
      socket.write(bytes.subarray(0, at));
      setImmediate(() => socket.write(bytes.subarray(at)));
      const text = await textUntilEnd(socket);
      const answer = JSON.parse(text.slice(text.indexOf('\r\n\r\n'))) as FormAnswer;
      assert.deepEqual(answer.fields, { prompt: ['ein Kätzchen\r\n--x'] });
      assert.deepEqual(await Promise.all(answer.files.map((file) => server.take(file))), ['first\r\n\r\n-- file', '']);
      expected ??= answer.hash;
      assert.equal(answer.hash, expected, `split at ${at}`);
    }
  });

  it('readForm returns 400 to a form truncated at any byte, and keeps none of its files', async () => {
    const bytes = Buffer.from(sample);
    for (let end = 0; end < bytes.length; end++) {
      const answer = await server.post(bytes.subarray(0, end), { 'content-type': 'multipart/form-data; boundary=b' });
      assert.deepEqual(refused(answer), [400, 'invalid_request_error'], `cut at ${end}`);
    }
    assert.deepEqual(await server.storedFiles(), []);
  });

  it('readForm returns 400 to malformed parts', async () => {
    const good = '--b\nContent-Disposition: form-data; name="f"; filename="a"\n\nbytes\n';
    const parts = [
      '--b\n\nno headers at all\n',
      '--b\nContent-Type: text/plain\n\nno disposition\n',
      '--b\nContent-Disposition: form-data\n\nno name\n',
      '--b\nContent-Disposition: form-data; name=""\n\nempty name\n',
      '--b\nContent-Disposition: form-data; filename="a"\n\nno name\n',
      '--b\nContent-Disposition: attachment; name="x"\n\nof another kind\n',
      '--b\nContent-Disposition: form-data; name="x\n\nno end of quotes\n',
      '--b\nContent-Disposition: form-data; name="x" filename="a"\n\nno semicolon\n',
      '--b\nno colon\nContent-Disposition: form-data; name="x"\n\nno header\n',
      '--b\nContent-Disposition: form-data; name="x"\nno end of the headers\n',
    ];
    for (const part of parts) {
      for (const text of [`${part}--b--\n`, `${good}${part}--b--\n`, `${part}${good}--b--\n`]) {
        assert.deepEqual(refused(await postText(text)), [400, 'invalid_request_error'], text);
      }
    }
  });

  it('readForm returns 400 to names and types that are too long to go with the job', async () => {
    const long = 'x'.repeat(1025);
    const heads = [
      `form-data; name="${long}"`,
      `form-data; name="image"; filename="${long}"`,
      `form-data; name="image"; filename="a.png"\nContent-Type: image/${long}`,
    ];
    for (const each of heads) {
      const answer = await postText(`--b\nContent-Disposition: ${each}\n\nbytes\n--b--\n`);
      assert.deepEqual(refused(answer), [400, 'invalid_request_error'], each.slice(0, 60));
      assert.match(answer.error?.message ?? '', /more than 1024 characters/);
    }
    const most = await postText(
      `--b\nContent-Disposition: form-data; name="image"; filename="${'x'.repeat(1024)}"\n\nbytes\n--b--\n`,
    );
    assert.equal(most.files[0]?.name.length, 1024);
    await server.take(most.files[0] as UploadRecord);
  });

  it('readForm says why a form is refused even if its stored files cannot be deleted', async () => {
    const kept: string[] = [];
    const putStream = async (content: AsyncIterable<Uint8Array>) => {
      const stored = await server.blobs.putStream(content);
      kept.push(stored.id);
      return stored;
    };
    server.storage = { putStream, delete: () => Promise.reject(new Error('the storage is away')) } as never;
    const socket = await server.open(`${formHead}connection: close\r\ntransfer-encoding: chunked\r\n\r\n`);
    const send = (text: string) => socket.write(`${text.length.toString(16)}\r\n${text}\r\n`);
    send(`${filePart}bytes\r\n--b\r\n`);
    await eventually(() => assert.equal(kept.length, 1));
    send('content-disposition: form-data\r\n\r\nnameless\r\n--b--\r\n');
    socket.write('0\r\n\r\n');
    assert.match(await textUntilEnd(socket), /^HTTP\/1\.1 400 .*nvalid_request_error/s);
    for (const id of kept) await server.blobs.delete(id);
  });

  it('readForm returns 400 without a boundary or with an unused one, and 415 to a compressed form', async () => {
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', 'multipart/form-data; boundary="']) {
      assert.deepEqual(
        refused(await server.post(sample, { 'content-type': type })),
        [400, 'invalid_request_error'],
        type,
      );
    }
    const headers = { 'content-type': 'multipart/form-data; boundary=b' };
    const compressed = await server.post(sample, { ...headers, 'content-encoding': 'gzip' });
    assert.deepEqual(refused(compressed), [415, 'unsupported_media_type']);
    const other = await server.post(sample, { 'content-type': 'multipart/form-data; boundary=other' });
    assert.deepEqual(refused(other), [400, 'invalid_request_error']);
    assert.deepEqual(refused(await server.post('', headers)), [400, 'invalid_request_error']);
  });

  it('readForm returns 413 to too many files, too many fields and too much text', async () => {
    const many = (count: number, part: (index: number) => string): string =>
      `${Array.from({ length: count }, (_, index) => part(index)).join('')}--b--\n`;
    const file = (index: number): string => `--b\nContent-Disposition: form-data; name="f"; filename="${index}"\n\nx\n`;
    const field = (index: number): string => `--b\nContent-Disposition: form-data; name="f${index}"\n\nx\n`;
    const text = (length: number) => (): string =>
      `--b\nContent-Disposition: form-data; name="f"\n\n${'x'.repeat(length)}\n`;
    const files = await postText(many(17, file));
    assert.equal(files.files.length, 17);
    await Promise.all(files.files.map((file) => server.take(file)));
    assert.equal(Object.keys((await postText(many(200, field))).fields).length, 200);
    // Four samples of speakers in base64: ten seconds of 44,100 stereo samples each.
    const sample = Math.ceil((10 * 44_100 * 4 * 4) / 3);
    assert.equal((await postText(many(4, text(sample)))).status, 200);
    for (const body of [many(18, file), many(201, field), many(5, text(sample))]) {
      assert.deepEqual(refused(await postText(body)), [413, 'request_too_large']);
    }
  });

  it('readForm keeps the connection usable after bytes behind the end of a form', async () => {
    const form = '--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n--b--\r\n';
    const socket = await server.open(`${formHead}content-length: ${form.length + 3_000_000}\r\n\r\n${form}`);
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 200 /);
    socket.write(Buffer.alloc(3_000_000));
    socket.write(`${formHead}connection: close\r\ncontent-length: ${form.length}\r\n\r\n${form}`);
    assert.match(await textUntilEnd(socket), /HTTP\/1\.1 200 OK/);
  });

  it('readForm keeps nothing of a form whose client disconnects in the middle of a file', async () => {
    for (const size of [1, 3_000_000]) {
      const ended = once(server.requests, 'end');
      const socket = await server.open(`${formHead}content-length: 9000000\r\n\r\n`);
      socket.write(filePart);
      if (!socket.write(Buffer.alloc(size))) await once(socket, 'drain');
      await eventually(async () => assert.equal((await server.openFiles()).length, 1));
      socket.destroy();
      assert.deepEqual(await ended, ['cancelled']);
      assert.deepEqual([await server.storedFiles(), await server.openFiles()], [[], []]);
    }
  });

  it('readForm returns 504 to a form that stalls, and closes the connection', async () => {
    const { silenceMs } = server.bounds;
    server.bounds.silenceMs = 500;
    try {
      const socket = await server.open(`${formHead}content-length: 9000000\r\n\r\n${filePart}some bytes`);
      const text = await textUntilEnd(socket);
      assert.match(text, /^HTTP\/1\.1 504 .*connection: close/is);
    } finally {
      server.bounds.silenceMs = silenceMs;
    }
  });

  it('readForm waits until the last file is stored, even after the whole request has arrived', async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    server.storage = {
      putStream: async (content: AsyncIterable<Uint8Array>) => {
        await released;
        return await server.blobs.putStream(content);
      },
    } as never;
    const closed = new Promise<void>((resolve) => {
      server.http.once('request', (request) => request.once('close', resolve));
    });
    const form = new FormData();
    form.append('image', new Blob(['bytes']), 'a.png');
    const answering = server.post(form);
    await closed;
    release();
    const answer = await answering;
    assert.equal(answer.status, 200);
    assert.equal(await server.take(answer.files[0] as UploadRecord), 'bytes');
  });

  it('readForm returns a readable 503 when the disk fails, and removes the files stored before', async () => {
    let count = 0;
    server.storage = {
      putStream: async (content: AsyncIterable<Uint8Array>) => {
        if (++count === 2) throw new Error('ENOSPC');
        return await server.blobs.putStream(content);
      },
      delete: (id: string) => server.blobs.delete(id),
    } as never;
    const form = new FormData();
    for (let index = 0; index < 3; index++) form.append('image', new Blob([new Uint8Array(5_000_000)]), 'a.png');
    assert.deepEqual(refused(await server.post(form)), [503, 'service_unavailable']);
    assert.equal(count, 2);
  });
});
