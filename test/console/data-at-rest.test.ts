import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openDatabase } from '../../shared/database/database.ts';
import { readSecret } from '../../shared/database/secrets.ts';
import { tightenDataDir } from '../../shared/runtime/private-files.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { isOnPostgres } from '../support/database-settings.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** The files of a folder that somebody else than their owner may read, write or run, with their permissions. */
function openFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => (statSync(path).mode & 0o077) !== 0)
    .map((path) => `${path} ${modeOf(path)}`);
}

describe('what the gateway keeps on disk', () => {
  let gateway: TestGateway;
  before(async () => {
    // As an operator's shell has it, who has made the data folder by hand.
    process.umask(0o022);
    gateway = await TestGateway.start();
  });
  after(async () => gateway?.stop());

  const restart = async (): Promise<string> => {
    const api = await gateway.startApi();
    const output = (): string => api.output();
    await eventually(() => assert.match(output(), /listening/));
    await api.stop();
    return output();
  };

  test('what the gateway keeps on disk is readable by its owner only: the database, its journal, requests in blobs, secrets', async () => {
    const content = 'x'.repeat(200_000);
    const answer = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { prefer: 'respond-async' },
      body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content }] }),
    });
    assert.equal(answer.status, 202);
    await eventually(() =>
      assert.ok(readdirSync(join(gateway.dataDir, 'blobs'), { recursive: true }).length > 2, 'no blob is written'),
    );
    assert.deepEqual(openFiles(gateway.dataDir), []);
    if (!isOnPostgres) assert.ok(readdirSync(gateway.dataDir).includes('sessions.secret'));
  });

  test('what the gateway keeps on disk is closed to others at the next start where an earlier version had left it open, and the operator is told', async () => {
    const database = join(gateway.dataDir, isOnPostgres ? 'api-key' : 'sluice.db');
    if (isOnPostgres) writeFileSync(database, 'x');
    const others = join(gateway.dataDir, 'notes.txt');
    writeFileSync(others, 'mine');
    chmodSync(others, 0o644);
    chmodSync(database, 0o644);
    chmodSync(join(gateway.dataDir, 'blobs'), 0o755);
    chmodSync(gateway.dataDir, 0o755);
    const output = await restart();
    assert.deepEqual([modeOf(database), modeOf(join(gateway.dataDir, 'blobs'))], ['600', '700']);
    assert.equal(modeOf(others), '644', "what is not the gateway's own stays as it is");
    assert.match(output, /Other users may enter the data folder .* \(mode 0755\): run chmod 700 on it/);
    chmodSync(gateway.dataDir, 0o700);
    rmSync(others);
    assert.doesNotMatch(await restart(), /Other users/);
  });

  test('what the gateway keeps on disk does not suffice to sign in: neither tokens nor what signs cookies can be read from the database', async () => {
    const ada = new ConsoleClient(gateway.url);
    await ada.signUp('ada@example.com');
    const [, name = '', signed = ''] = /(sluice\.session_token)=([^;]+)/.exec(ada.cookie) ?? [];
    const [token = ''] = decodeURIComponent(signed).split('.');
    const db = await openDatabase(gateway);
    try {
      const sessions = await db.selectFrom('sessions').selectAll().execute();
      const secrets = await db.selectFrom('secrets').selectAll().execute();
      assert.equal(sessions.length, 1);
      assert.ok(!JSON.stringify(sessions).includes(token), 'the token is not in the row');
      // The name of the database is none: each process of it tells the others.
      const names = secrets.map(({ name: known }) => known).filter((known) => known !== 'database-id');
      if (!isOnPostgres) assert.deepEqual(names, []);
      // Whoever has the signing secret as well, from a file or another place.
      const secret = (await readSecret(db, { ...gateway, secret: undefined }, 'sessions')).toString('hex');
      const sign = (text: string): string => createHmac('sha256', secret).update(text).digest('base64');
      const status = async (text: string): Promise<number> => {
        const cookie = `${name}=${encodeURIComponent(`${text}.${sign(text)}`)}`;
        return (await new ConsoleClient(gateway.url).call('GET', '/console/api/session', undefined, { cookie })).status;
      };
      assert.equal(await status(token), 200, 'that is how a cookie is made');
      for (const column of Object.values(sessions[0] ?? {})) assert.equal(await status(String(column)), 401);
    } finally {
      await db.destroy();
    }
  });

  test('a session that was signed in by its token is ended by signing out, and its row is gone', async () => {
    const bob = new ConsoleClient(gateway.url);
    await bob.signUp('bob@example.com');
    const { cookie } = bob;
    const { body } = await bob.call('GET', '/console/api/auth/get-session');
    assert.equal(body.session.token, undefined, 'no script can read the token');
    assert.ok(!JSON.stringify((await bob.call('GET', '/console/api/auth/list-sessions')).body).includes('token'));
    await bob.call('POST', '/console/api/auth/sign-out');
    const db = await openDatabase(gateway);
    const left = await db.selectFrom('sessions').select('id').where('id', '=', body.session.id).execute();
    await db.destroy();
    assert.deepEqual(left, []);
    assert.equal(
      (await new ConsoleClient(gateway.url).call('GET', '/console/api/session', undefined, { cookie })).status,
      401,
    );
  });

  test('a session ends 30 days after its sign-in, however much it is used', async () => {
    const carol = new ConsoleClient(gateway.url);
    await carol.signUp('carol@example.com');
    const { session } = (await carol.call('GET', '/console/api/auth/get-session')).body;
    const db = await openDatabase(gateway);
    const day = 86_400_000;
    // As if 29 days had gone by: it is used, and nothing puts its end off.
    const soon = new Date(Date.parse(session.expiresAt) - 29 * day).toISOString();
    await db.updateTable('sessions').set({ expires_at: soon }).where('id', '=', session.id).execute();
    assert.equal((await carol.call('GET', '/console/api/session')).status, 200);
    const [row] = await db.selectFrom('sessions').select('expires_at').where('id', '=', session.id).execute();
    await db.destroy();
    assert.equal(row?.expires_at, soon);
    assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt) <= 30 * day + 1000, true);
  });
});

describe('the secrets of a gateway', () => {
  const folders: string[] = [];
  const newFolder = (): string => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-test-secrets-'));
    folders.push(folder);
    return folder;
  };
  after(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  test('those that an earlier version has in the database move to a file of their owner, so that links stay valid', async () => {
    const dataDir = newFolder();
    const settings = { dataDir, databaseUrl: undefined, secret: undefined };
    const db = await openDatabase(settings);
    const value = randomBytes(32);
    await db.insertInto('secrets').values({ name: 'result-links', value }).execute();
    const read = () => readSecret(db, settings, 'result-links');
    for (const secret of await Promise.all([read(), read(), read()])) assert.deepEqual(secret, value);
    assert.deepEqual(await db.selectFrom('secrets').selectAll().execute(), []);
    assert.equal(modeOf(join(dataDir, 'result-links.secret')), '600');
    assert.deepEqual(await read(), value);
    assert.notDeepEqual(await readSecret(db, settings, 'sessions'), value);
    await db.destroy();
  });

  test('with SLUICE_SECRET they are derived from it, the same on every host, and are nowhere on disk', async () => {
    const dataDir = newFolder();
    const settings = { dataDir, databaseUrl: undefined, secret: 'a secret of at least 32 characters' };
    const db = await openDatabase(settings);
    const [sessions, links] = [
      await readSecret(db, settings, 'sessions'),
      await readSecret(db, settings, 'result-links'),
    ];
    assert.notDeepEqual(sessions, links);
    assert.deepEqual(await readSecret(db, settings, 'sessions'), sessions);
    assert.deepEqual(await db.selectFrom('secrets').selectAll().execute(), []);
    assert.ok(!readdirSync(dataDir).some((name) => readFileSync(join(dataDir, name)).includes(settings.secret)));
    await db.destroy();
  });

  test('a folder of others is not looked into where it is missing', async () => {
    const folder = join(newFolder(), 'none');
    assert.equal(await tightenDataDir(folder), undefined);
    mkdirSync(folder, { mode: 0o700 });
    assert.equal(await tightenDataDir(folder), undefined);
  });
});
