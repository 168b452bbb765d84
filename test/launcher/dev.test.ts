import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs';
import { appendFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.ts';
import { type LauncherProcess, startLauncher } from './launcher-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const checkout = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-test-dev-')));
let launcher: LauncherProcess | undefined;

after(async () => {
  launcher?.signal('SIGTERM');
  await launcher?.exit;
  await rm(checkout, { recursive: true, force: true });
});

test('npm run dev runs every role from its sources, starts one again that has changed, and serves the console', async () => {
  const parts = ['api', 'workers', 'shared', 'sandbox', 'launcher', 'console', 'package.json', 'tsconfig.json'];
  for (const part of parts) cpSync(join(root, part), join(checkout, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'));
  launcher = await startLauncher({
    dataDir: join(checkout, 'data'),
    program: join(checkout, 'launcher/dev.ts'),
    nodeFlags: ['--import', import.meta.resolve('tsx')],
  });
  const { baseUrl, key } = await launcher.welcome();
  const models = async (): Promise<number> => {
    const response = await fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${key}` } });
    await response.text();
    return response.status;
  };
  assert.equal(await models(), 200);
  const { errors } = launcher;
  await eventually(() => assert.match(launcher?.output ?? '', /The console, as its sources are: http:\S+/), 30_000);
  const address = /as its sources are: (\S+)/.exec(launcher.output)?.[1] as string;
  assert.match(await (await fetch(address)).text(), /<script type="module" src="\/console\/src\/main\.tsx/);
  // Vite's server passes the console's calls on, as the api's own pages would make them.
  const refused = await fetch(new URL('/console/api/auth/sign-in/email', address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: new URL(address).origin },
    body: JSON.stringify({ email: 'nobody@example.com', password: 'no password of anybody' }),
  });
  assert.equal(refused.status, 401);
  assert.equal(launcher.errors, errors);
  await appendFile(join(checkout, 'api/app.ts'), '// Changed.\n');
  await eventually(() => assert.match(launcher?.errors ?? '', /so these start again: api\.\n/));
  // From its sources it starts as slowly as the machine is busy.
  await eventually(async () => assert.equal(await models(), 200), 120_000);
  assert.doesNotMatch(launcher.errors, /unexpectedly/);
});
