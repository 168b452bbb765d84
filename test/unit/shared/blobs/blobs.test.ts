import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, mkdir, mkdtemp, open, readdir, readlink, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Spool } from '../../../../api/ledger/outbox/spool.ts';
import { Blobs } from '../../../../shared/blobs/blobs.ts';
import { readBucketSettings } from '../../../../shared/blobs/bucket-settings.ts';
import { ConfigError } from '../../../../shared/config/config.ts';
import { createLogger } from '../../../../shared/runtime/log.ts';
import { startBucket } from '../../../support/s3.ts';
import { describeBlobs, type OpenedBlobs } from './blobs-contract.ts';

const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'sluice-test-blobs-'));

async function openFolder(): Promise<OpenedBlobs> {
  const folder = await newFolder();
  return {
    blobs: await Blobs.open(folder),
    folders: [folder],
    place: async (id, content) => {
      await mkdir(join(folder, 'blobs', dirname(id)), { recursive: true });
      await writeFile(join(folder, 'blobs', id), content);
    },
    close: () => rm(folder, { recursive: true }),
  };
}

async function openBucket(prefix: string): Promise<OpenedBlobs> {
  const [bucket, folder] = [await startBucket(), await newFolder()];
  const blobs = await Blobs.open(folder, readBucketSettings(bucket.url(prefix), {}));
  return {
    blobs,
    folders: [folder],
    place: (id, content) => bucket.place(prefix === '' ? id : `${prefix}/${id}`, content),
    close: async () => {
      blobs.close();
      await bucket.stop();
      await rm(folder, { recursive: true });
    },
  };
}

describeBlobs('the data folder', openFolder);
describeBlobs('a bucket', () => openBucket(''));
describeBlobs('a part of a bucket', () => openBucket('some/prefix'));

/** Writes a blob of this many bytes, says why that failed, and what is in the folder then. */
const writeBlob = `
import { readdir } from 'node:fs/promises';
const [module, folder, bytes] = process.argv.slice(1);
const { Blobs } = await import(module);
const blobs = (await Blobs.open(folder)).of('account');
const failure = await blobs.put('x'.repeat(Number(bytes))).then(() => undefined, (error) => (error.cause ?? error).code);
const files = (await readdir(folder + '/blobs', { recursive: true, withFileTypes: true })).filter((file) => file.isFile());
console.log(JSON.stringify({ failure, files: files.map(({ name }) => name) }));
`;

/** Is killed in the middle of an export. */
const dieInExport = `
const [module, folder] = process.argv.slice(1);
const { Blobs } = await import(module);
async function* content() {
  yield Buffer.from('half');
  process.kill(process.pid, 'SIGKILL');
  await new Promise((resolve) => setTimeout(resolve, 60_000));
}
await (await Blobs.open(folder)).writeExport('half.gz', content());
`;

describe('the blob folder', () => {
  test('an export is on the disk with its name before what it has may be deleted; other files cost no sync', async (t) => {
    const folder = await newFolder();
    const handle = await open(folder);
    await handle.close();
    const synced: string[] = [];
    const handles = Object.getPrototypeOf(handle) as FileHandle;
    const sync = handles.sync;
    t.mock.method(handles, 'sync', async function (this: FileHandle) {
      synced.push(await readlink(`/proc/self/fd/${this.fd}`));
      await sync.call(this);
    });
    const blobs = await Blobs.open(folder);
    await blobs.of('own').putStream(Readable.from([Buffer.alloc(10)]));
    assert.deepEqual(synced, []);
    await blobs.writeExport('jobs.csv.gz', Readable.from([Buffer.alloc(10)]));
    const exports = join(folder, 'blobs', 'exports');
    assert.deepEqual(synced, [join(exports, 'jobs.csv.gz.tmp'), exports, join(folder, 'blobs')]);
    assert.deepEqual(await readdir(exports), ['jobs.csv.gz']);
    await rm(folder, { recursive: true });
  });

  test('an export whose process is killed leaves no file with its name, and what it leaves is removed by a later one', async () => {
    const folder = await newFolder();
    const exports = join(folder, 'blobs', 'exports');
    const module = new URL('../../../../shared/blobs/blobs.ts', import.meta.url).href;
    try {
      const given = ['--import', 'tsx', '--input-type=module', '-e', dieInExport, module, folder];
      await assert.rejects(promisify(execFile)(process.execPath, given), { signal: 'SIGKILL' });
      assert.deepEqual(await readdir(exports), ['half.gz.tmp']);
      const blobs = await Blobs.open(folder);
      await blobs.writeExport('one.gz', Readable.from([Buffer.alloc(10)]));
      assert.deepEqual((await readdir(exports)).sort(), ['half.gz.tmp', 'one.gz'], 'it might still be written');
      const before = new Date(Date.now() - 2 * 3_600_000);
      await utimes(join(exports, 'half.gz.tmp'), before, before);
      await utimes(join(exports, 'one.gz'), before, before);
      await blobs.writeExport('two.gz', Readable.from([Buffer.alloc(10)]));
      assert.deepEqual((await readdir(exports)).sort(), ['one.gz', 'two.gz']);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('a blob folder keeps nothing of a blob that did not fit', async () => {
    const folder = await newFolder();
    try {
      const module = new URL('../../../../shared/blobs/blobs.ts', import.meta.url).href;
      const node = `exec ${process.execPath} --import tsx --input-type=module -e "$0" "$@"`;
      const write = async (bytes: number): Promise<{ failure?: string; files: string[] }> => {
        // Files of 8 KiB at most.
        const given = ['-c', `trap '' XFSZ; ulimit -f 8; ${node}`, writeBlob, module, folder, String(bytes)];
        const { stdout } = await promisify(execFile)('bash', given);
        return JSON.parse(stdout) as { failure?: string; files: string[] };
      };
      const tooLarge = await write(100_000);
      assert.equal(tooLarge.failure, 'EFBIG');
      assert.deepEqual(tooLarge.files, ['identity']);
      assert.equal((await write(1000)).files.length, 2);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('a blob folder has one identity for all who open it, at once or later, and another than its neighbour', async () => {
    const [folder, other] = [await newFolder(), await newFolder()];
    try {
      const opened = await Promise.all(Array.from({ length: 10 }, () => Blobs.open(folder)));
      opened.push(await Blobs.open(folder));
      assert.equal(new Set(opened.map(({ identity }) => identity)).size, 1);
      assert.match(opened[0]?.identity ?? '', /^folder [0-9a-f-]{36}$/);
      assert.notEqual((await Blobs.open(other)).identity, opened[0]?.identity);
      assert.deepEqual(await readdir(join(folder, 'blobs')), ['identity']);
    } finally {
      for (const path of [folder, other]) await rm(path, { recursive: true });
    }
  });
});

describe('the blob bucket', () => {
  test('the identity of a bucket holds no secrets', async () => {
    const { blobs, close } = await openBucket('some/prefix');
    try {
      assert.match(blobs.identity, /^bucket s3:\/\/sluice\/some\/prefix at 127\.0\.0\.1:\d+$/);
    } finally {
      await close();
    }
  });

  test('an unusable bucket stops the start with one sentence that holds no secret', async () => {
    const [bucket, folder] = [await startBucket(), await newFolder()];
    const refuses = (url: string, reason: RegExp): Promise<void> =>
      assert.rejects(Blobs.open(folder, readBucketSettings(url, {})), (error: Error) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, reason);
        assert.doesNotMatch(error.message, /S3RVER|wrong/);
        return true;
      });
    try {
      await refuses(bucket.url().replace('@sluice', '@missing'), /s3:\/\/missing\/.* answers NoSuchBucket\.$/);
      await refuses(bucket.url().replace('S3RVER:', 'wrong:'), /answers InvalidAccessKeyId\.$/);
      await refuses('s3://a:b@sluice?endpoint=http://127.0.0.1:1&path_style=1', /ECONNREFUSED\.$/);
    } finally {
      await bucket.stop();
      await rm(folder, { recursive: true });
    }
  });

  /** A store of the test's own, which answers as `handle` says. */
  async function withStore(
    handle: (request: IncomingMessage, response: ServerResponse) => void,
    work: (blobs: Blobs, folder: string) => Promise<void>,
  ): Promise<void> {
    const folder = await newFolder();
    const store = createServer(handle).listen(0, '127.0.0.1');
    await once(store, 'listening');
    const { port } = store.address() as AddressInfo;
    const settings = readBucketSettings(`s3://a:b@sluice/p?endpoint=http://127.0.0.1:${port}&path_style=1`, {});
    const blobs = await Blobs.open(folder, settings);
    try {
      await work(blobs, folder);
    } finally {
      blobs.close();
      store.closeAllConnections();
      store.close();
      await rm(folder, { recursive: true });
    }
  }

  test('a blob whose download breaks off is of a storage that is away, not a shorter blob and not an error of its own', async () => {
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      if (request.url?.includes('list-type')) response.end('<ListBucketResult></ListBucketResult>');
      else response.writeHead(200, { 'content-length': '1000' }).write('half', () => response.destroy());
    };
    await withStore(handle, async (blobs) => {
      const id = `2026010100/${randomUUID()}`;
      await assert.rejects(blobs.ofRecords('own').bytes(id), { name: 'BlobStorageError' });
    });
  });

  test('a bucket that refuses to delete one of many blobs answers 200, and is an error all the same', async () => {
    let deleted = 0;
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      request.resume();
      const refused = '<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error></DeleteResult>';
      const isDelete = request.method === 'POST' && ++deleted === 1;
      response.writeHead(200, { 'content-type': 'application/xml' });
      response.end(request.method === 'GET' ? '<ListBucketResult/>' : isDelete ? refused : '<DeleteResult/>');
    };
    await withStore(handle, async (blobs) => {
      const ids = Array.from({ length: 1001 }, () => `2026010100/${randomUUID()}`);
      await assert.rejects(blobs.deleteAll(new Map([['own', ids]])), {
        name: 'BlobStorageError',
        cause: new Error('the store answers AccessDenied'),
      });
      assert.equal(deleted, 2, 'a thousand at a time, and the rest after a refusal');
    });
  });

  test('a bucket keeps no spool file of a rejected upload, and sweeps those of killed processes', async () => {
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      request.resume();
      const isList = request.method === 'GET';
      response.writeHead(isList ? 200 : 403, { 'content-type': 'application/xml' });
      response.end(isList ? '<ListBucketResult/>' : '<Error><Code>AccessDenied</Code></Error>');
    };
    await withStore(handle, async (blobs, folder) => {
      const refused = blobs.of('own').putStream(Readable.from([Buffer.alloc(300_000)]));
      await assert.rejects(refused, (error: Error) => (error.cause as Error).name === 'AccessDenied');
      const spool = join(folder, 'spool');
      assert.deepEqual(await readdir(spool), []);
      const [abandoned, underWay] = [randomUUID(), randomUUID()];
      for (const name of [abandoned, underWay]) await writeFile(join(spool, name), name);
      const twoHoursAgo = new Date(Date.now() - 2 * 3_600_000);
      await utimes(join(spool, abandoned), twoHoursAgo, twoHoursAgo);
      await blobs.sweep(3_600_000);
      assert.deepEqual(await readdir(spool), [underWay]);
    });
  });

  test('a bucket does not touch job records that wait in the same folder for the database, however long they do', async () => {
    const bucket = await startBucket();
    const folder = await newFolder();
    const settings = readBucketSettings(bucket.url(), {});
    try {
      const spoolFolder = join(folder, 'spool');
      const options = { folder: spoolFolder, maxBytes: 1e9, minFreeBytes: 0, log: createLogger('silent', 'test').log };
      const spool = await Spool.open(options);
      await spool.add(['a record']);
      const twoHoursAgo = new Date(Date.now() - 2 * 3_600_000);
      for (const name of await readdir(spoolFolder)) await utimes(join(spoolFolder, name), twoHoursAgo, twoHoursAgo);
      // A start opens it, and the api sweeps it from time to time.
      const blobs = await Blobs.open(folder, settings);
      await blobs.sweep(3_600_000);
      blobs.close();
      assert.deepEqual((await spool.oldest())?.lines, ['a record']);
      assert.equal((await Spool.open(options)).name, spool.name);
    } finally {
      await bucket.stop();
      await rm(folder, { recursive: true });
    }
  });

  test('a bucket is swept page by page, through the hours and the objects of each hour', async () => {
    const deleted: string[] = [];
    const page = (content: string, next: string | undefined): string => {
      const more =
        next === undefined
          ? ''
          : `<IsTruncated>true</IsTruncated><NextContinuationToken>${next}</NextContinuationToken>`;
      return `<ListBucketResult>${content}${more}</ListBucketResult>`;
    };
    const list = (query: URLSearchParams): string => {
      const isSecond = query.get('continuation-token') === 'second';
      const next = isSecond ? undefined : 'second';
      if (query.get('delimiter') === '/') {
        const hour = isSecond ? '2020010102' : '2020010101';
        return page(`<CommonPrefixes><Prefix>p/${hour}/</Prefix></CommonPrefixes>`, next);
      }
      const key = `${query.get('prefix')}/${isSecond ? 'b' : 'a'}`;
      return page(`<Contents><Key>${key}</Key><Size>1</Size></Contents>`, next);
    };
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      const url = new URL(request.url ?? '', 'http://store');
      response.writeHead(200, { 'content-type': 'application/xml' });
      if (request.method === 'GET') {
        response.end(list(url.searchParams));
        return;
      }
      void text(request).then((body) => {
        assert.ok(request.method === 'POST' && url.searchParams.has('delete'), 'deleted in batches');
        for (const [, key = ''] of body.matchAll(/<Key>([^<]+)/g)) deleted.push(key);
        response.end('<DeleteResult/>');
      });
    };
    await withStore(handle, async (blobs) => {
      assert.equal(await blobs.sweep(3_600_000), 2);
      const keys = ['2020010101', '2020010102'].flatMap((hour) => [`p/${hour}/a`, `p/${hour}/b`]);
      assert.deepEqual(deleted, keys);
    });
  });
});

describe('BLOBS_URL', () => {
  test('BLOBS_URL names a bucket, a prefix, a region, an endpoint and credentials', () => {
    assert.deepEqual(readBucketSettings('s3://media', {}), {
      ...{ bucket: 'media', prefix: '', region: 'us-east-1', endpoint: undefined },
      ...{ pathStyle: false, credentials: undefined },
    });
    const url = 's3://id:se%2Fcret@media/a/b/?region=eu-west-1&endpoint=https://store.test:9000/&path_style=1';
    assert.deepEqual(readBucketSettings(url, {}), {
      ...{ bucket: 'media', prefix: 'a/b', region: 'eu-west-1', endpoint: 'https://store.test:9000' },
      ...{ pathStyle: true, credentials: { accessKeyId: 'id', secretAccessKey: 'se/cret' } },
    });
    const keys = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'eu-north-1' };
    const { credentials, region } = readBucketSettings('s3://id:other@media', { ...keys, AWS_SESSION_TOKEN: 'token' });
    assert.deepEqual(credentials, { accessKeyId: 'key', secretAccessKey: 'secret', sessionToken: 'token' });
    assert.equal(region, 'eu-north-1');
  });

  test('a malformed BLOBS_URL is rejected with a sentence that does not show it', () => {
    const wrong = [
      'media',
      'https://secret@media',
      's3://',
      's3://secret@media',
      's3://id:secret@media?acl=secret',
      's3://id:secret@media?endpoint=secret',
      's3://id:secret@media?path_style=secret',
      's3://id:secret@media#secret',
    ];
    for (const url of wrong) {
      assert.throws(
        () => readBucketSettings(url, {}),
        (error: Error) => !error.message.includes('secret') || /a key id and a secret/.test(error.message),
        url,
      );
    }
    assert.throws(() => readBucketSettings('s3://media', { AWS_ACCESS_KEY_ID: 'key' }), /set together/);
  });
});
