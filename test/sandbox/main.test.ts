import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startSandbox } from '../../sandbox/server.ts';
import { typescriptFlags } from '../support/typescript-flags.ts';

const main = fileURLToPath(new URL('../../sandbox/main.ts', import.meta.url));
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill('SIGKILL');
});

function start(...parameters: string[]): ChildProcess {
  const child = fork(main, parameters, { execArgv: [...typescriptFlags], silent: true });
  children.push(child);
  return child;
}

async function listening(child: ChildProcess): Promise<string> {
  const [[message], [line]] = await Promise.all([
    once(child, 'message'),
    once(child.stdout as NodeJS.ReadableStream, 'data'),
  ]);
  assert.equal(message.type, 'listening');
  assert.equal(String(line), `sandbox listening on http://127.0.0.1:${message.port}\n`);
  return `http://127.0.0.1:${message.port}`;
}

async function openStream(url: string): Promise<Response> {
  const body = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'WORDS:1000@1' }], stream: true };
  return await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(body) });
}

describe('sandbox/main', () => {
  it('sandbox/main prints where it listens, and exits on SIGTERM even with an open stream', async () => {
    const child = start('--journal');
    const stream = await openStream(await listening(child));
    child.kill('SIGTERM');
    await assert.rejects(stream.text());
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });

  it('sandbox/main exits when its parent is gone', async () => {
    const child = start();
    await listening(child);
    child.disconnect();
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });

  it('sandbox/main reports wrong arguments and an occupied port in one sentence', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    for (const [parameters, expected] of [
      [['--port', 'x'], /--port must be a number/],
      [['--colour'], /--colour/],
      [['--port', String(port)], /EADDRINUSE/],
    ] as const) {
      const child = start(...parameters);
      let error = '';
      child.stderr?.on('data', (text) => {
        error += text;
      });
      assert.deepEqual(await once(child, 'close'), [1, null]);
      assert.match(error, expected);
      assert.equal(error.trim().split('\n').length, 1);
    }
    taken.close();
  });
});

describe('startSandbox', () => {
  it('startSandbox interrupts open streams on close, and accepts no more requests', async () => {
    const sandbox = await startSandbox({ port: 0, host: '127.0.0.1' });
    const stream = await openStream(sandbox.url);
    await sandbox.close();
    await assert.rejects(stream.text());
    await assert.rejects(fetch(sandbox.url));
  });
});
