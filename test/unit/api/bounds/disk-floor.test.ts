import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DiskFloor } from '../../../../api/bounds/disk-floor.ts';

test('the first large body after a pause is judged by the disk as it is, not as it was before the pause', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-disk-'));
  t.after(() => rm(folder, { recursive: true }));
  let now = performance.now();
  t.mock.method(performance, 'now', () => now);
  const data = join(folder, 'data');
  // The one file system that is always full: whoever asks it for its free space gets 0.
  const full = '/proc';
  await symlink(folder, data);
  const disk = new DiskFloor(data, 1);
  await disk.assertRoomToBegin();
  for (const turn of [full, folder, full]) {
    await unlink(data);
    await symlink(turn, data);
    now += 3_600_000;
    if (turn === full) await assert.rejects(disk.assertRoomToBegin(), { code: 'service_unavailable' });
    else await disk.assertRoomToBegin();
    assert.equal((await disk.free()) === 0, turn === full);
  }
});
