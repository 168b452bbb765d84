import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { type FileHandle, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, TestGateway } from '../../support/gateway.ts';

/** Has what waits for a minute wait for ten seconds, as an option of Node: a busy machine takes some for any reload. */
const shortMinute = `--import=data:text/javascript,${encodeURIComponent(`const wait = globalThis.setTimeout;
  globalThis.setTimeout = Object.assign((run, ms, ...more) => wait(run, ms === 60_000 ? 10_000 : ms, ...more), wait);`)}`;

describe('a configuration file whose file system hangs', () => {
  let gateway: TestGateway;
  let folder = '';
  let file = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-reload-'));
    file = join(folder, 'sluice.yaml');
    gateway = await TestGateway.start({ apis: 0, workers: 0 });
  });
  after(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** A worker whose reload reads a pipe into which nobody writes: it hangs as with a file of a server that is gone. */
  async function startHanging(
    t: TestContext,
    settings: Record<string, string>,
  ): Promise<GatewayProcess & { readonly writer: FileHandle }> {
    await rm(file, { force: true });
    await writeFile(file, 'models: {}\n');
    const worker = await gateway.startWorker({ SLUICE_CONFIG: file, ...settings });
    t.after(() => worker.child.kill('SIGKILL'));
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    await rename(pipe, file);
    worker.child.kill('SIGHUP');
    // Refused until somebody reads.
    const writer = await eventually(() => open(file, constants.O_WRONLY | constants.O_NONBLOCK), 60_000);
    t.after(() => writer.close().catch(() => undefined));
    return { ...worker, writer };
  }

  async function end({ child, output }: GatewayProcess, meanwhile?: () => Promise<void>): Promise<void> {
    child.kill('SIGTERM');
    await eventually(() => assert.match(output(), /"msg":"shutdown complete"/), 60_000);
    await meanwhile?.();
    await eventually(() => assert.notDeepEqual([child.exitCode, child.signalCode], [null, null]), 60_000);
  }

  test('a reload of a file that hangs is given up and told, and the next SIGHUP reads the file again', async (t) => {
    const worker = await startHanging(t, { NODE_OPTIONS: shortMinute });
    const told =
      /The settings stay as they were\. The configuration file could not be read within 60 s: its file system hangs\./;
    await eventually(() => assert.match(worker.output(), told), 60_000);
    await rm(file);
    await writeFile(file, 'models: {}\n');
    worker.child.kill('SIGHUP');
    await eventually(() => assert.match(worker.output(), /"msg":"configuration reloaded"/), 60_000);
    await end(worker);
  });

  test('a process whose reload hangs ends at SIGTERM once its work is done', async (t) => {
    const worker = await startHanging(t, {});
    await end(worker);
    assert.equal(worker.child.signalCode, 'SIGKILL');
  });

  test('a process that ends while it still reads its settings ends as usual, not as one that was killed', async (t) => {
    const { writer, ...worker } = await startHanging(t, {});
    await end(worker, async () => {
      await writer.write('models: {}\n');
      await writer.close();
    });
    assert.deepEqual([worker.child.exitCode, worker.child.signalCode], [0, null]);
  });
});
