import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, readlink, rm, truncate } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { ResultLinks } from '../../../api/results/result-links.ts';
import { Blobs } from '../../../shared/blobs/blobs.ts';
import { readBucketSettings } from '../../../shared/blobs/bucket-settings.ts';
import { openDatabase } from '../../../shared/database/database.ts';
import { readSecret } from '../../../shared/database/secrets.ts';
import { blobStorageKey } from '../../../shared/redis/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { type ApiProcess, builtProduct, TestGateway } from '../../support/gateway.ts';
import { startRedis } from '../../support/redis.ts';
import { startBucket, type TestBucket } from '../../support/s3.ts';

const hourMs = 3_600_000;

/** The links of a gateway, made with its own key. */
/** Whose the files are. */
const account = 'account';

async function keyOf(gateway: TestGateway): Promise<Buffer> {
  const db = await openDatabase(gateway);
  try {
    return await readSecret(db, { ...gateway, secret: undefined }, 'result-links');
  } finally {
    await db.destroy();
  }
}

async function linksOf(gateway: TestGateway): Promise<ResultLinks> {
  const key = await keyOf(gateway);
  return new ResultLinks(() => key);
}

async function errorOf(response: Response): Promise<[status: number, code: string, type: string]> {
  const { error } = (await response.json()) as { error: { code: string; type: string; message: string; param: null } };
  assert.ok(error.message.length > 0);
  assert.equal(error.param, null);
  return [response.status, error.code, error.type];
}

const text = '0123456789abcdef';

/** A connection that has asked for the file and takes nothing of it. */
async function ask(link: string): Promise<Socket> {
  const { hostname, port, pathname, search } = new URL(link);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`);
  return socket;
}

async function openBlobsOf({ pid }: ApiProcess, folder: string): Promise<string[]> {
  const names = await readdir(`/proc/${pid}/fd`);
  const paths = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
  return paths.filter((path) => path.startsWith(folder));
}

async function residentBytes({ pid }: ApiProcess): Promise<number> {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

/** What holds wherever the files lie. */
function itServesFiles(of: () => { gateway: TestGateway; blobs: Blobs; links: ResultLinks }): void {
  const put = async (content = text, extension = 'png'): Promise<string> => {
    const { id } = await of()
      .blobs.of(account)
      .putStream(Readable.from([Buffer.from(content)]), { extension });
    return id;
  };
  const linkTo = (file: string, lifeMs = hourMs): string =>
    of().links.link(of().gateway.url, { account, file }, Date.now() + lifeMs);

  it('GET /results returns a file with its type and lifetime, and with headers that keep it from running', async () => {
    const file = await put();
    const response = await fetch(linkTo(file));
    assert.equal(response.status, 200);
    assert.equal(await response.text(), text);
    const { headers } = response;
    assert.equal(headers.get('content-type'), 'image/png');
    assert.equal(headers.get('content-length'), '16');
    assert.equal(headers.get('accept-ranges'), 'bytes');
    assert.equal(headers.get('content-disposition'), 'inline');
    assert.equal(headers.get('content-security-policy'), 'sandbox');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    const age = Number(/^private, max-age=(\d+)$/.exec(headers.get('cache-control') ?? '')?.[1]);
    assert.ok(age > 3000 && age <= 3600, `max-age=${age}`);
    for (const [extension, type] of [
      ['mp3', 'audio/mpeg'],
      ['wav', 'audio/wav'],
      ['xyz', 'application/octet-stream'],
    ] as const) {
      const other = await fetch(linkTo(await put('a', extension)));
      assert.equal(other.headers.get('content-type'), type);
      await other.arrayBuffer();
    }
  });

  it('HEAD /results returns the same headers without a body', async () => {
    const link = linkTo(await put());
    const got = await fetch(link);
    await got.arrayBuffer();
    const head = await fetch(link, { method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.equal(await head.text(), '');
    for (const name of ['content-type', 'content-length', 'accept-ranges', 'etag', 'content-security-policy']) {
      assert.equal(head.headers.get(name), got.headers.get(name), name);
    }
  });

  it('GET /results returns 206 for a valid Range and 416 for an unsatisfiable one', async () => {
    const link = linkTo(await put());
    for (const [range, part, where] of [
      ['bytes=0-3', '0123', '0-3'],
      ['bytes=5-5', '5', '5-5'],
      ['bytes=10-', 'abcdef', '10-15'],
      ['bytes=-4', 'cdef', '12-15'],
      ['bytes=-400', text, '0-15'],
      ['bytes=14-100', 'ef', '14-15'],
    ] as const) {
      const response = await fetch(link, { headers: { range } });
      assert.equal(response.status, 206, range);
      assert.equal(response.headers.get('content-range'), `bytes ${where}/16`);
      assert.equal(response.headers.get('content-length'), String(part.length));
      assert.equal(await response.text(), part);
    }
    for (const range of ['bytes=16-', 'bytes=100-200', 'bytes=-0']) {
      const response = await fetch(link, { headers: { range } });
      assert.equal(response.headers.get('content-range'), 'bytes */16');
      assert.deepEqual(await errorOf(response), [416, 'range_not_satisfiable', 'invalid_request_error'], range);
    }
    for (const range of ['bytes=5-3', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=-', 'bytes=a-b', 'nothing']) {
      const response = await fetch(link, { headers: { range } });
      assert.equal(response.status, 200, range);
      assert.equal(await response.text(), text);
    }
  });

  it('GET /results honours Range only if If-Range matches the file', async () => {
    const link = linkTo(await put());
    const first = await fetch(link);
    await first.arrayBuffer();
    const etag = first.headers.get('etag') as string;
    assert.match(etag, /^"[\w.-]+"$/);
    const same = await fetch(link, { headers: { range: 'bytes=14-', 'if-range': etag } });
    assert.deepEqual([same.status, await same.text()], [206, 'ef']);
    const other = await fetch(link, { headers: { range: 'bytes=14-', 'if-range': '"other"' } });
    assert.deepEqual([other.status, await other.text()], [200, text]);
  });

  it('GET /results returns an empty file', async () => {
    const link = linkTo(await put(''));
    const response = await fetch(link);
    assert.deepEqual([response.status, await response.text()], [200, '']);
    assert.equal(response.headers.get('content-length'), '0');
    const part = await fetch(link, { headers: { range: 'bytes=0-' } });
    assert.deepEqual((await errorOf(part))[0], 416);
  });

  it('GET /results returns 410 for a missing file and for an expired link, and says which of the two it is', async () => {
    const file = await put();
    const outlived = await fetch(linkTo(file, -2000));
    assert.match(await outlived.clone().text(), /has expired/);
    assert.deepEqual(await errorOf(outlived), [410, 'resume_expired', 'invalid_request_error']);
    await of().blobs.of(account).delete(file);
    for (const init of [{}, { headers: { range: 'bytes=0-1' } }]) {
      const gone = await fetch(linkTo(file), init);
      assert.match(await gone.clone().text(), /no longer stored/);
      assert.deepEqual(await errorOf(gone), [410, 'resume_expired', 'invalid_request_error']);
    }
  });
}

describe('result files in the data folder', () => {
  let gateway: TestGateway;
  let blobs: Blobs;
  let links: ResultLinks;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
    blobs = await Blobs.open(gateway.dataDir);
    links = await linksOf(gateway);
  });
  after(() => gateway?.stop());

  itServesFiles(() => ({ gateway, blobs, links }));

  it('GET /results returns 403 for a link changed in any part', async () => {
    const { id: file } = await blobs.of(account).putStream(Readable.from([Buffer.from(text)]), { extension: 'png' });
    const { id: other } = await blobs
      .of(account)
      .putStream(Readable.from([Buffer.from('other')]), { extension: 'png' });
    const right = new URL(links.link(gateway.url, { account, file }, Date.now() + hourMs));
    const changed = (change: (url: URL) => void): string => {
      const url = new URL(right);
      change(url);
      return url.href;
    };
    const expires = right.searchParams.get('expires') as string;
    const signature = right.searchParams.get('signature') as string;
    const forged = [
      changed((url) => url.searchParams.set('expires', String(Number(expires) + 1))),
      changed((url) => url.searchParams.set('expires', `0${expires}`)),
      changed((url) => url.searchParams.set('expires', `${expires}.0`)),
      changed((url) => url.searchParams.delete('expires')),
      changed((url) => url.searchParams.delete('signature')),
      changed((url) => url.searchParams.append('signature', signature)),
      changed((url) => url.searchParams.set('signature', signature.slice(0, -1))),
      changed((url) => url.searchParams.set('signature', '')),
      ...[0, 21, signature.length - 1].map((at) => {
        const other = signature[at] === 'A' ? 'B' : 'A';
        return changed((url) =>
          url.searchParams.set('signature', signature.slice(0, at) + other + signature.slice(at + 1)),
        );
      }),
      changed((url) => url.searchParams.set('signature', 'ü'.repeat(43))),
      changed((url) => {
        url.pathname = `/results/${other}`;
      }),
      changed((url) => {
        url.pathname = '/results/2020010101/..%2f..%2fapi-key';
      }),
    ];
    for (const link of forged) {
      assert.deepEqual(await errorOf(await fetch(link)), [403, 'permission_denied', 'invalid_request_error'], link);
    }
    assert.equal((await fetch(right)).status, 200);
  });

  it('GET /results never reads anything but blobs, even with a valid signature', async () => {
    const key = await keyOf(gateway);
    for (const file of ['../sluice.db', '2020010101/../../sluice.db', 'x/identity', '2020010101/identity']) {
      const [hour, ...rest] = file.split('/');
      assert.throws(() => links.link(gateway.url, { account, file }, Date.now() + hourMs), /not its own/);
      const expires = Math.floor(Date.now() / 1000) + 3600;
      const signature = createHmac('sha256', key).update(`${file} ${expires}`).digest('base64url');
      assert.equal(links.verify(file, String(expires), signature), 'valid');
      const search = `?expires=${expires}&signature=${signature}`;
      const path = `/results/${encodeURIComponent(hour as string).replaceAll('.', '%2e')}/${encodeURIComponent(rest.join('/'))}`;
      const response = await fetch(`${gateway.url}${path}${search}`);
      assert.ok(response.status === 410 || response.status === 404, `${file}: ${response.status}`);
      assert.doesNotMatch(await response.text(), /SQLite/);
    }
  });

  it('other methods and paths under /results return errors in the error shape', async () => {
    const link = links.link(gateway.url, { account, file: await blobs.of(account).put(text) }, Date.now() + hourMs);
    assert.deepEqual((await errorOf(await fetch(link, { method: 'POST' }))).slice(0, 2), [405, 'method_not_allowed']);
    assert.deepEqual((await errorOf(await fetch(`${gateway.url}/results/x`))).slice(0, 2), [404, 'not_found']);
    assert.ok((await fetch(`${gateway.url}/results/%zz/%zz?expires=1&signature=a`)).status < 500);
  });

  it('GET /results does not buffer a large file for a client that reads nothing, and closes it on disconnect', async () => {
    const api = gateway.apis[0] as ApiProcess;
    const { id } = await blobs.of(account).putStream(Readable.from([Buffer.from('head')]), { extension: 'png' });
    const folder = join(gateway.dataDir, 'blobs');
    await truncate(join(folder, id), 300_000_000);
    const link = links.link(gateway.url, { account, file: id }, Date.now() + hourMs);
    const readPart = async () => (await fetch(link, { headers: { range: 'bytes=0-50000000' } })).arrayBuffer();
    // Once before, so that what the api's allocators keep of such traffic is not counted.
    assert.equal((await readPart()).byteLength, 50_000_001);
    const before = await residentBytes(api);
    const sockets = await Promise.all(Array.from({ length: 5 }, () => ask(link)));
    await eventually(async () => assert.equal((await openBlobsOf(api, folder)).length, 5));
    // Another request's whole answer comes in between, so the five have sent what they can.
    assert.equal((await readPart()).byteLength, 50_000_001);
    const grown = (await residentBytes(api)) - before;
    assert.ok(grown < 100_000_000, `the api grew by ${grown} bytes`);
    for (const socket of sockets) socket.destroy();
    await eventually(async () => assert.deepEqual(await openBlobsOf(api, folder), []));
    // They count as clients that left, and nothing was an error of ours.
    await eventually(() => assert.equal(api.output().match(/"status":200.*"error":"cancelled"/g)?.length, 5));
    assert.doesNotMatch(api.output(), /"level":50/);
  });
});

describe('result files in a bucket', () => {
  let bucket: TestBucket;
  let gateway: TestGateway;
  let blobs: Blobs;
  let links: ResultLinks;
  before(async () => {
    bucket = await startBucket();
    gateway = await TestGateway.start({ settings: { BLOBS_URL: bucket.url('files') } });
    blobs = await Blobs.open(gateway.dataDir, readBucketSettings(bucket.url('files'), {}));
    links = await linksOf(gateway);
  });
  after(async () => {
    blobs?.close();
    await gateway?.stop();
    await bucket?.stop();
  });

  itServesFiles(() => ({ gateway, blobs, links }));

  it('POST /v1/chat/completions stores a large body and a large answer in the bucket, across two data folders', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'sluice-test-elsewhere-'));
    try {
      await gateway.workers[0]?.stop();
      const worker = await gateway.startWorker({ SLUICE_DATA_DIR: elsewhere });
      const filler = 'lorem ipsum '.repeat(10_000);
      const answer = await gateway.client().chat.completions.create({
        model: 'sandbox-chat',
        messages: [
          { role: 'system', content: filler },
          { role: 'user', content: 'WORDS:20000' },
        ],
      });
      assert.equal(answer.choices[0]?.message.content?.split(' ').length, 20_000);
      assert.deepEqual(await readdir(join(elsewhere, 'spool')), []);
      await worker.stop();
    } finally {
      await rm(elsewhere, { recursive: true });
    }
  });
});

describe('processes on one Redis', () => {
  it('a process with another data folder on one Redis exits and names the settings', { timeout: 60_000 }, async () => {
    const redis = await startRedis();
    const gateway = await TestGateway.start({ apis: 0, redisUrl: redis.url });
    const elsewhere = await mkdtemp(join(tmpdir(), 'sluice-test-elsewhere-'));
    const client = new Redis(redis.url);
    const startElsewhere = async (file: string): Promise<{ code: number | null; output: string }> => {
      const env = gateway.settings({ SLUICE_DATA_DIR: elsewhere, PORT: '0' });
      const child = fork(join(builtProduct, file), [], { env, silent: true, execArgv: [] });
      let output = '';
      child.stderr?.on('data', (chunk: Buffer) => {
        output += chunk;
      });
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, output };
    };
    try {
      for (const file of ['workers/main.js', 'api/main.js']) {
        const { code, output } = await startElsewhere(file);
        assert.equal(code, 1, file);
        assert.match(output, /^The other processes on this Redis keep their files elsewhere than \S+: [^\n]+\n$/);
        assert.match(output, /SLUICE_DATA_DIR.*BLOBS_URL/);
      }
      const ttl = await client.pttl(blobStorageKey);
      assert.ok(ttl > 0 && ttl <= 60_000, 'the claim lasts a minute');
      // A second process of the same folder is welcome.
      await (await gateway.startWorker()).stop();
      // Redis comes back empty: the process that runs claims the place again.
      await client.flushall();
      await eventually(async () => assert.match((await client.get(blobStorageKey)) ?? '', /^folder /), 20_000);
      assert.equal((await startElsewhere('workers/main.js')).code, 1);
      // Everything moves: the claim has expired, and the other folder is the place from now on.
      await Promise.all(gateway.workers.map((worker) => worker.stop()));
      await client.del(blobStorageKey);
      const moved = await gateway.startWorker({ SLUICE_DATA_DIR: elsewhere });
      await assert.rejects(gateway.startWorker(), /keep their files elsewhere/);
      await moved.stop();
    } finally {
      client.disconnect();
      await gateway.stop();
      await redis.stop();
      await rm(elsewhere, { recursive: true });
    }
  });
});
