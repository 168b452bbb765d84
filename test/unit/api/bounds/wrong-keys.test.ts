import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { WrongKeys } from '../../../../api/bounds/wrong-keys.ts';
import { defaultAccountId, ensureApiKey, newApiKeyText } from '../../../../shared/accounts/api-keys.ts';
import { openDatabase } from '../../../../shared/database/database.ts';
import { hashApiKey } from '../../../../shared/ids.ts';
import { eventually } from '../../../support/eventually.ts';

test('a few wrong keys of a network refuse no others, and no valid one, also when the clock of the host was put back by an hour', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-wrong-keys-'));
  t.after(() => rm(dataDir, { recursive: true }));
  const db = await openDatabase({ databaseUrl: undefined, dataDir });
  t.after(() => db.destroy());
  const wrongKeys = new WrongKeys(db, 4);
  const [one, other] = ['192.0.2.0', '198.51.100.0'];
  wrongKeys.note(one);
  // So many that the keys that are valid are listed.
  for (let tries = 0; tries < 40; tries++) wrongKeys.note(other);
  await assert.rejects(wrongKeys.assertMayTry(other, 'wrong'), /Too many wrong API keys/);
  const now = Date.now;
  t.mock.method(Date, 'now', () => now() - 3_600_000);
  await wrongKeys.assertMayTry(one, 'wrong');
  const text = newApiKeyText();
  await ensureApiKey(db, text, { accountId: defaultAccountId, name: 'new' });
  await eventually(() => wrongKeys.assertMayTry(other, hashApiKey(text)));
});
