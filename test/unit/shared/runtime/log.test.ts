import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { typescriptFlags } from '../../../support/typescript-flags.ts';

const logging = fileURLToPath(new URL('./logging-process.ts', import.meta.url));
/** Far more than may wait. */
const manyLines = 40_000;

/** Starts a process that logs as many lines as it is told, with this as its stdout. */
async function startLogging(stdout: number | 'pipe'): Promise<ChildProcess> {
  const stdio = ['ignore', stdout, 'inherit', 'ipc'] as const;
  const child = fork(logging, { execArgv: [...typescriptFlags], stdio: [...stdio] });
  await once(child, 'message');
  return child;
}

async function logLines(
  child: ChildProcess,
  lines: number | { readonly failures: number } | { readonly event: object },
): Promise<void> {
  child.send(lines);
  await once(child, 'message');
}

describe('the log of a process', () => {
  test('whose stdout is not read for a while says how many lines it has dropped', async () => {
    const child = await startLogging('pipe');
    await logLines(child, manyLines);
    const messages: { msg: string; lines?: number }[] = [];
    const reader = createInterface({ input: child.stdout as Readable });
    reader.on('line', (line) => messages.push(JSON.parse(line)));
    const isTold = new Promise<void>((resolve) => {
      reader.on('line', (line) => line.includes('were dropped') && resolve());
    });
    await isTold;
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    const written = messages.filter(({ msg }) => msg === 'a line').length;
    const dropped = messages.find(({ msg }) => msg.includes('were dropped'))?.lines ?? 0;
    assert.ok(dropped > 0, 'some are dropped');
    assert.equal(written + dropped, manyLines);
  });

  test('has an event as the logger itself writes it, and not below its level', async () => {
    const child = await startLogging('pipe');
    const lines: string[] = [];
    createInterface({ input: child.stdout as Readable }).on('line', (line) => lines.push(line));
    await logLines(child, {
      event: { job: 'a "b"\n\ud800\u0007é', ms: 1.5, none: null, status: 200, list: ['x', { y: 1 }] },
    });
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'close'), [0, null]);
    const events = lines.filter((line) => line.includes('"msg":"request"'));
    const [own, event] = events.map((line) => line.replace(/"time":"[^"]*"/, '"time":""'));
    assert.equal(events.length, 2);
    assert.equal(event, own);
    assert.ok(own?.includes('"job":"a \\"b\\"'), own);
  });

  test('has the first lines of a failure that comes a thousand times a second, and the number of the others', async () => {
    const child = await startLogging('pipe');
    const lines: { msg: string; level: number; like?: string; lines?: number }[] = [];
    createInterface({ input: child.stdout as Readable }).on('line', (line) => lines.push(JSON.parse(line)));
    await logLines(child, { failures: 1000 });
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'close'), [0, null]);
    const count = (message: string) => lines.filter(({ msg }) => msg === message).length;
    // All of them in one second, or at a second's border.
    assert.ok(
      count('a "vendor" call failed') >= 20 && count('a "vendor" call failed') <= 40,
      `${count('a "vendor" call failed')}`,
    );
    const leftOut = lines.filter(({ like }) => like === 'a "vendor" call failed').map((line) => line.lines ?? 0);
    assert.equal(leftOut.reduce((sum, some) => sum + some, 0) + count('a "vendor" call failed'), 1000);
    assert.equal(count('a rare failure'), 10, 'what is rare has all of its lines');
    assert.equal(count('job'), 1000, 'lines of requests and jobs are not failures');
  });

  test('whose stdout nobody reads does not keep the process from ending', async () => {
    const child = await startLogging('pipe');
    await logLines(child, manyLines);
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL']);
  });

  test('that is a file on a full disk costs neither the process nor its exit code', async () => {
    const full = await open('/dev/full', 'w');
    try {
      const child = await startLogging(full.fd);
      await logLines(child, 200);
      await logLines(child, 200);
      child.kill('SIGTERM');
      assert.deepEqual(await once(child, 'exit'), [0, null]);
    } finally {
      await full.close();
    }
  });

  test('whose reader has left does not end the process', async () => {
    const child = await startLogging('pipe');
    child.stdout?.destroy();
    await logLines(child, 200);
    await logLines(child, 200);
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });
});
