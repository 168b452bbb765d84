import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { typescriptFlags } from '../../../support/typescript-flags.ts';

/** A process that closes on a signal, and sends a message for each of its steps. */
const closing = fileURLToPath(new URL('./closing-process.ts', import.meta.url));

/** What a process sends until it ends, and its exit code. */
async function stepsOf(act: (child: ChildProcess, step: string) => void, ...words: string[]): Promise<unknown[]> {
  const child = fork(closing, words, { execArgv: [...typescriptFlags] });
  const steps: unknown[] = [];
  child.on('message', (step: string) => {
    steps.push(step);
    act(child, step);
  });
  const [code] = await once(child, 'exit');
  return [...steps, code];
}

describe('closeOnSignal', { concurrency: true }, () => {
  test('SIGTERM lets the process leave before it closes, and a defect meanwhile ends that at once', async () => {
    const steps = await stepsOf((child, step) => {
      if (step === 'ready') child.kill('SIGTERM');
      if (step === 'leaving') child.send('fail');
    });
    assert.deepEqual(steps, ['ready', 'leaving', 'left', 'closing', 1]);
  });

  test('SIGINT and a defect close the process without leaving first', async () => {
    const byHand = await stepsOf((child, step) => step === 'ready' && child.kill('SIGINT'));
    assert.deepEqual(byHand, ['ready', 'closing', 0]);
    const byDefect = await stepsOf((child, step) => step === 'ready' && child.send('fail'));
    assert.deepEqual(byDefect, ['ready', 'closing', 1]);
  });

  test('a process whose time is over may still take as long as a worker counts an interrupted answer', async () => {
    const steps = await stepsOf((child, step) => step === 'ready' && child.kill('SIGINT'), '6000');
    assert.deepEqual(steps, ['ready', 'closing', 'closed', 0]);
  });
});
