import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ConsoleClient } from '../support/console-client.ts';
import { builtProduct } from '../support/gateway.ts';
import { startLauncher } from './launcher-process.ts';

describe('the first operator of npm start', () => {
  let dataDir: string;
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-operator-'));
  });
  after(() => rm(dataDir, { recursive: true, force: true }));

  test('the first operator of npm start can sign in with the password that the first start prints, and is kept by the next one', async () => {
    const file = join(dataDir, 'operator-password');
    let password = '';
    for (const start of ['first', 'second']) {
      const launcher = await startLauncher({ dataDir });
      const { baseUrl } = await launcher.welcome();
      const url = new URL(baseUrl).origin;
      assert.match(launcher.output, new RegExp(`Console +${url}/console\n`));
      const kept = (await readFile(file, 'utf8')).trim();
      if (start === 'first') password = kept;
      assert.equal(kept, password);
      assert.equal((await stat(file)).mode & 0o777, 0o600);
      assert.ok(launcher.output.includes(`operator@sluice.localhost`));
      assert.equal(launcher.output.includes(password), start === 'first');
      const client = new ConsoleClient(url);
      assert.equal((await client.signIn('operator@sluice.localhost', password)).status, 200);
      assert.equal((await client.call('GET', '/console/api/session')).body.user.role, 'operator');
      assert.ok(!launcher.errors.includes(password));
      launcher.signal('SIGTERM');
      assert.equal(await launcher.exit, 0);
    }
  });

  test('the first operator of npm start is not made or named again once another operator has removed it', async () => {
    const folder = join(dataDir, 'removed');
    const launcher = await startLauncher({ dataDir: folder });
    const url = new URL((await launcher.welcome()).baseUrl).origin;
    const file = join(folder, 'operator-password');
    const password = (await readFile(file, 'utf8')).trim();
    const [first, second] = [new ConsoleClient(url), new ConsoleClient(url)];
    assert.equal((await first.signIn('operator@sluice.localhost', password)).status, 200);
    const email = 'second@example.com';
    const { body: invited } = await first.call('POST', '/admin/v1/users', { email, role: 'operator' });
    const token = new URL(invited.invitation_url).searchParams.get('token');
    const newPassword = 'a password of their own';
    await second.call('POST', '/console/api/auth/reset-password', { token, newPassword });
    assert.equal((await second.signIn(email, newPassword)).status, 200);
    const { data } = (await second.call('GET', '/admin/v1/users?search=operator@sluice')).body;
    assert.equal((await second.call('DELETE', `/admin/v1/users/${data[0].id}`)).status, 200);
    launcher.signal('SIGTERM');
    assert.equal(await launcher.exit, 0);

    const again = await startLauncher({ dataDir: folder });
    const { baseUrl } = await again.welcome();
    assert.match(again.output, /Sign in +as an operator; the first one was removed\n/);
    assert.ok(!again.output.includes(file));
    const refused = await new ConsoleClient(new URL(baseUrl).origin).signIn('operator@sluice.localhost', password);
    assert.equal(refused.status, 401);
    again.signal('SIGTERM');
    assert.equal(await again.exit, 0);
  });

  test("npm start prints neither a key nor a password into systemd's journal, but where they are", async () => {
    const kept = join(dataDir, 'journal');
    // What systemd sets for a service: device and inode of what takes its output.
    const program = join(dataDir, 'as-a-service.mjs');
    const main = JSON.stringify(pathToFileURL(join(builtProduct, 'launcher/main.js')).href);
    const named = "import { fstatSync } from 'node:fs';\nconst { dev, ino } = fstatSync(1);\n";
    await writeFile(program, `${named}process.env.JOURNAL_STREAM = \`\${dev}:\${ino}\`;\nawait import(${main});\n`);
    const launcher = await startLauncher({ dataDir: kept, program });
    try {
      await launcher.welcome();
      for (const name of ['api-key', 'operator-password']) {
        const secret = (await readFile(join(kept, name), 'utf8')).trim();
        assert.ok(launcher.output.includes(join(kept, name)), name);
        assert.ok(!`${launcher.output}${launcher.errors}`.includes(secret), name);
      }
      assert.ok(launcher.output.includes(`Bearer $(cat ${join(kept, 'api-key')})`));
    } finally {
      launcher.signal('SIGTERM');
      assert.equal(await launcher.exit, 0);
    }
  });
});
