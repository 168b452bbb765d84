import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PNG } from 'pngjs';
import { typescriptFlags } from '../support/typescript-flags.ts';

const UPLOADS = 40;
const FILE_BYTES = 20 * 1024 * 1024;
/** What the uploads may take together; with all of their bytes it would be four times that. */
const LIMIT_MEGABYTES = 200;

let child: ChildProcess | undefined;
after(() => child?.kill('SIGKILL'));

/** Resident memory in megabytes. */
async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

const image = PNG.sync.write(new PNG({ width: 64, height: 64 }));
const filler = Buffer.alloc(65_536, 7);

/** Sends an image of 20 MB; its last bytes wait for the others. */
async function upload(port: number, allSent: Promise<unknown>, sent: () => void): Promise<number> {
  const boundary = 'limit-of-parts';
  const field = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const head = `${field('model', 'sandbox-image')}${field('prompt', 'large')}${field('size', '256x256')}--${boundary}\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n`;
  const request = httpRequest({ port, path: '/v1/images/edits', method: 'POST', agent: false });
  request.setHeader('Content-Type', `multipart/form-data; boundary=${boundary}`);
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  request.write(head);
  request.write(image);
  for (let written = image.length; written < FILE_BYTES; written += filler.length) {
    if (!request.write(filler)) await once(request, 'drain');
  }
  sent();
  await allSent;
  request.end(`\r\n--${boundary}--\r\n`);
  const [response] = await answered;
  let text = '';
  for await (const chunk of response) text += chunk;
  const answer = JSON.parse(text) as { data?: { b64_json: string }[] };
  assert.equal(response.statusCode, 200, text.slice(0, 300));
  return PNG.sync.read(Buffer.from(answer.data?.[0]?.b64_json ?? '', 'base64')).width;
}

describe('memory of the sandbox', () => {
  it(`sandbox memory grows by less than ${LIMIT_MEGABYTES} MB with ${UPLOADS} concurrent uploads of 20 MB`, {
    timeout: 120_000,
  }, async () => {
    const main = fileURLToPath(new URL('../../sandbox/main.ts', import.meta.url));
    child = fork(main, [], { execArgv: [...typescriptFlags], silent: true });
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    const pid = child.pid as number;
    // An idle process takes more or less from one version of Node to the next.
    const idle = await memoryOf(pid);
    let sent = 0;
    let letGo = () => {};
    const allSent = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const countSent = () => {
      sent += 1;
      if (sent === UPLOADS) letGo();
    };
    let isOver = false;
    let peak = 0;
    const watch = async () => {
      while (!isOver) {
        peak = Math.max(peak, await memoryOf(pid));
        await sleep(20);
      }
    };
    const watching = watch();
    const widths = await Promise.all(Array.from({ length: UPLOADS }, () => upload(port, allSent, countSent)));
    isOver = true;
    await watching;
    assert.deepEqual(widths, Array(UPLOADS).fill(256));
    assert.ok(peak - idle < LIMIT_MEGABYTES, `from ${idle} to ${peak} MB`);
  });
});
