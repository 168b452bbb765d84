import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { databaseSettings } from '../support/database-settings.ts';
import { builtProduct } from '../support/gateway.ts';
import { bareEnvironment } from './launcher-process.ts';

describe('commands whose output goes nowhere', () => {
  let dataDir: string;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-unread-'));
    const { databaseUrl } = await databaseSettings(dataDir);
    env = {
      ...{ ...bareEnvironment(), SLUICE_DATA_DIR: dataDir },
      ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    };
    await run('migrate', []);
  });
  after(() => rm(dataDir, { recursive: true, force: true }));

  /** Code and stderr of a command whose stdout is this file, or whose reader has left before it began. */
  async function run(program: string, args: string[], stdout: number | 'pipe' = 'pipe') {
    const file = join(builtProduct, 'launcher', `${program}.js`);
    const child = spawn(process.execPath, [file, ...args], { cwd: dataDir, env, stdio: ['ignore', stdout, 'pipe'] });
    child.stdout?.destroy();
    const [stderr, [code]] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, 'close')]);
    return { code: code as number, stderr };
  }

  test('npm run keys, users and migrate end silently once nobody reads them', async () => {
    for (const [program, ...args] of [
      ['keys', 'list'],
      ['users', 'list'],
      ['migrate', '--status'],
    ] as const) {
      assert.deepEqual(await run(program, args), { code: 141, stderr: '' }, program);
    }
  });

  test('a key that was made, but whose text nobody has read, is named so that it can be revoked', async () => {
    const { code, stderr } = await run('keys', ['create']);
    assert.equal(code, 141);
    const [, id = ''] =
      /^keys: the key (key_\w+) was made, and nobody has read it: npm run keys -- revoke \1 revokes it\.\n$/.exec(
        stderr,
      ) ?? [];
    assert.ok(id, stderr);
    assert.deepEqual(await run('keys', ['revoke', id]), { code: 141, stderr: '' });
  });

  test('a file that cannot take the output of a command is told in a sentence', async () => {
    const full = await open('/dev/full', 'w');
    const { code, stderr } = await run('users', ['list'], full.fd);
    await full.close();
    assert.deepEqual({ code, stderr }, { code: 1, stderr: 'The output cannot be written: the disk is full.\n' });
  });
});
