import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError } from '../../../../shared/config/config-error.ts';
import { startFailure, unusableFile } from '../../../../shared/config/start-failure.ts';

const thrownBy = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  assert.fail('nothing was thrown');
};

test('a failed start is told in a sentence where the disk, a file or the database is the cause, and by its stack elsewhere', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-failure-'));
  try {
    assert.equal(startFailure(new ConfigError('PORT must be a number.')), 'PORT must be a number.');
    const made = startFailure(thrownBy(() => mkdirSync(folder)));
    assert.equal(made, `${folder} cannot be used: a file is in its place.`);
    const read = unusableFile(
      folder,
      thrownBy(() => readFileSync(folder)),
    );
    assert.equal(startFailure(read), `${folder} cannot be used: it is a folder.`);
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      path: '/data/x',
      syscall: 'open',
    });
    assert.equal(startFailure(full), '/data/x cannot be used: the disk is full.');
    const sqlite = Object.assign(new Error('database or disk is full'), { name: 'SqliteError', code: 'SQLITE_FULL' });
    assert.equal(startFailure(sqlite), 'The database cannot be used: the disk is full.');
    const postgres = Object.assign(new Error('remaining connection slots are reserved'), { name: 'PostgresError' });
    const sentence = 'The database of DATABASE_URL cannot be used: remaining connection slots are reserved.';
    assert.equal(startFailure(postgres), sentence);
    const defect = new TypeError('x is not a function');
    assert.equal(startFailure(defect), defect.stack);
    const socket = Object.assign(new Error('connect EACCES /run/redis.sock'), {
      code: 'EACCES',
      path: '/run/redis.sock',
      syscall: 'connect',
    });
    assert.equal(startFailure(socket), socket.stack, 'a connection is no file');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
