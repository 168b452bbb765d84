import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import Koa from 'koa';
import { pino } from 'pino';
import { errorShape, errors } from '../../api/http/errors.ts';
import { consoleFiles } from '../../api/pages/console-files.ts';
import type { RefusedRequests } from '../../api/refused-requests/refused-requests.ts';
import type { State } from '../../api/state.ts';

/** Serves a folder as the api does. */
async function serve(folder: string): Promise<{ url: string; server: Server }> {
  const app = new Koa<State>();
  app.use(errorShape([]));
  const refused = { note: () => undefined } as unknown as RefusedRequests;
  app.use(errors({ log: pino({ level: 'silent' }), refused }));
  app.use(consoleFiles(folder));
  app.use((ctx) => {
    ctx.body = 'behind it';
  });
  const server = createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

/** A request that is sent as it stands: `fetch` would tidy up its path, and ask for a fresh copy. */
function statusOf(url: string, path: string, headers: Record<string, string> = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, path, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on('error', reject).end();
  });
}

describe('the files of the console', () => {
  let root: string;
  let url: string;
  let server: Server;
  const page = '<!doctype html><title>Sluice</title>';

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'sluice-console-files-'));
    await mkdir(join(root, 'console', 'assets'), { recursive: true });
    await writeFile(join(root, 'secret.txt'), 'secret');
    await writeFile(join(root, 'console', 'index.html'), page);
    await writeFile(join(root, 'console', 'favicon.svg'), '<svg/>');
    await writeFile(join(root, 'console', 'assets', 'index-abc.js'), 'export const one = 1;');
    ({ url, server } = await serve(join(root, 'console')));
  });

  after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(root, { recursive: true, force: true });
  });

  test('the page answers its own paths and is asked for each time; hashed files are kept for ever', async () => {
    for (const path of ['/console/', '/console/keys', '/console/jobs/job_1', '/console/models/gpt-4.1']) {
      const answer = await fetch(url + path);
      assert.equal(answer.status, 200, path);
      assert.equal(answer.headers.get('cache-control'), 'no-cache');
      assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
      assert.equal(await answer.text(), page);
    }
    const script = await fetch(`${url}/console/assets/index-abc.js`);
    assert.equal(script.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8');
    assert.equal(script.headers.get('x-content-type-options'), 'nosniff');
    assert.equal((await fetch(`${url}/console/favicon.svg`)).headers.get('content-type'), 'image/svg+xml');
    const bare = await fetch(`${url}/console?a=1`, { redirect: 'manual' });
    assert.deepEqual([bare.status, bare.headers.get('location')], [302, '/console/?a=1']);
  });

  test('what a browser has is not sent again, and HEAD has no body', async () => {
    const first = await fetch(`${url}/console/`);
    const etag = first.headers.get('etag') as string;
    assert.equal(await statusOf(url, '/console/', { 'accept-encoding': 'gzip', 'if-none-match': etag }), 304);
    const plain = await fetch(`${url}/console/`, { headers: { 'accept-encoding': 'identity' } });
    assert.notEqual(plain.headers.get('etag'), etag, 'a compressed file is another one');
    assert.equal(plain.headers.get('content-length'), String(page.length));
    const head = await fetch(`${url}/console/`, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } });
    assert.deepEqual([head.headers.get('content-length'), await head.text()], [String(page.length), '']);
  });

  test('an unknown file is 404, and no path leads out of the folder', async () => {
    assert.equal((await fetch(`${url}/console/assets/index-old.js`)).status, 404);
    assert.equal((await fetch(`${url}/console/keys`, { method: 'POST' })).status, 405);
    for (const path of ['/console/../secret.txt', '/console/%2e%2e/secret.txt', '/console/..%2fsecret.txt']) {
      const answer = await fetch(url + path);
      assert.doesNotMatch(await answer.text(), /secret/);
    }
    assert.equal(await statusOf(url, '/console/assets/../../secret.txt'), 404);
    assert.equal(await statusOf(url, '/console/assets/../index.html'), 404);
  });

  test('the JSON and the queues are not its affair, nor are other paths', async () => {
    for (const path of ['/console/api/keys', '/console/queues', '/console/queues/x', '/consoles', '/v1/models']) {
      assert.equal(await (await fetch(url + path)).text(), 'behind it', path);
    }
  });

  test('the console says so where it was not built', async () => {
    const unbuilt = await serve(join(root, 'nothing'));
    const answer = await fetch(`${unbuilt.url}/console/`);
    assert.equal(answer.status, 404);
    assert.match(await answer.text(), /npm run build/);
    unbuilt.server.closeAllConnections();
    unbuilt.server.close();
  });
});
