import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { loadEnvironmentFile } from '../../launcher/command-settings.ts';
import { gatewayPrograms } from '../../launcher/gateway-programs.ts';
import { ConfigError, readConfig } from '../../shared/config/config.ts';
import { listen } from '../../shared/runtime/listen.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { databaseSettings } from '../support/database-settings.ts';
import { builtProduct } from '../support/gateway.ts';
import { bareEnvironment, startLauncher } from './launcher-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Code and stderr of a command that ends by itself, with nothing of our own settings. */
async function run(command: string, args: string[], settings: Record<string, string>) {
  try {
    const env = { ...bareEnvironment(), ...settings };
    const said = await promisify(execFile)(command, args, { cwd: root, env });
    return { code: 0, ...said };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

describe('a start that cannot be', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-unusable-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test('a password of the first operator that is too short is told by the rule that it must meet, whatever its length', async () => {
    for (const password of ['short', 'nine char']) {
      const settings = { SLUICE_ADMIN_EMAIL: 'root@example.com', SLUICE_ADMIN_PASSWORD: password };
      const launcher = await startLauncher({ dataDir: join(folder, password), settings });
      assert.equal(await launcher.exit, 1);
      const sentence = 'SLUICE_ADMIN_PASSWORD cannot be used: The password must have at least 10 characters.';
      assert.ok(launcher.errors.includes(`${sentence}\n`), launcher.errors);
    }
  });

  test('a data folder with something in the place of a file ends npm start with a sentence that names it, and no stack', async () => {
    const cases: [name: string, kind: 'folder' | 'text'][] = [
      ['launcher.lock', 'folder'],
      ['launcher.lock', 'text'],
      ['redis', 'text'],
      ['redis.json', 'folder'],
      ['api-key', 'folder'],
      ['operator-password', 'folder'],
      ['sessions.secret', 'folder'],
      ['sessions.secret', 'text'],
    ];
    for (const [index, [name, kind]] of cases.entries()) {
      const dataDir = join(folder, `data-${index}`);
      await mkdir(kind === 'folder' ? join(dataDir, name) : dataDir, { recursive: true, mode: 0o700 });
      if (kind === 'text') await writeFile(join(dataDir, name), 'not what belongs here\n');
      // The last ones are read by the api itself, from the data folder where the database is there, too.
      const launcher = await startLauncher({ dataDir, settings: { DATABASE_URL: '' } });
      assert.equal(await launcher.exit, 1, name);
      assert.ok(launcher.errors.includes(join(dataDir, name)), `${name}: ${launcher.errors}`);
      assert.doesNotMatch(launcher.errors, /^ +at |Error:/m, name);
    }
  });

  test('a first operator whose password file is lost keeps the password, and npm start prints no other one', async () => {
    const dataDir = join(folder, 'lost');
    const file = join(dataDir, 'operator-password');
    const first = await startLauncher({ dataDir });
    await first.welcome();
    const password = (await readFile(file, 'utf8')).trim();
    first.signal('SIGTERM');
    assert.equal(await first.exit, 0);
    await rm(file);

    const second = await startLauncher({ dataDir });
    const { baseUrl } = await second.welcome();
    assert.match(
      second.output,
      /Sign in +operator@sluice\.localhost; .* npm run users -- reset-link operator@sluice\.localhost\n/,
    );
    assert.doesNotMatch(second.output, /, password /);
    await assert.rejects(readFile(file), 'no file with a password that is none');
    const client = new ConsoleClient(new URL(baseUrl).origin);
    assert.equal((await client.signIn('operator@sluice.localhost', password)).status, 200);
    second.signal('SIGTERM');
    assert.equal(await second.exit, 0);
  });

  test('a .env that is a folder, as Docker makes one for a missing file, ends npm start and the commands with a sentence', async () => {
    const project = join(folder, 'project');
    const file = join(project, '.env');
    await mkdir(file, { recursive: true });
    await mkdir(join(project, 'node_modules'));
    for (const name of ['start.mjs', 'package.json']) await copyFile(join(root, name), join(project, name));
    const { code, stderr } = await run(process.execPath, [join(project, 'start.mjs')], {});
    assert.deepEqual([code, stderr], [1, `${file} cannot be read: it is a folder.\n`]);
    assert.throws(() => loadEnvironmentFile(file), new ConfigError(`${file} cannot be used: it is a folder.`));
    loadEnvironmentFile(join(project, 'missing'));
  });

  test('a data folder that cannot be looked into is told by migrate --status, keys and users, which take no database for a missing one', async () => {
    const dataDir = join(folder, 'file');
    await writeFile(dataDir, '');
    for (const command of [
      ['migrate', '--status'],
      ['keys', 'list'],
      ['users', 'list'],
    ]) {
      const [name = '', ...args] = command;
      const line = [join(builtProduct, `launcher/${name}.js`), ...args];
      const { code, stdout, stderr } = await run(process.execPath, line, { SLUICE_DATA_DIR: dataDir });
      assert.equal(stderr, `${join(dataDir, 'sluice.db')} cannot be used: it, or a part of its path, is a file.\n`);
      assert.deepEqual([code, stdout], [1, ''], name);
    }
  });

  test('a port of the workers or of metrics that is taken ends npm start, which would start their processes for ever', async () => {
    const taken = createServer();
    await listen(taken, 0, { host: '127.0.0.1' });
    const { port } = taken.address() as AddressInfo;
    try {
      for (const [name, settings] of [
        ['WORKER_PORT', { WORKER_PORT: String(port) }],
        ['METRICS_PORT', { METRICS_PORT: String(port - 1), SLUICE_API_PROCESSES: '2' }],
      ] as const) {
        const launcher = await startLauncher({ dataDir: join(folder, name), settings });
        assert.equal(await launcher.exit, 1, name);
        // The one before it may be another suite's.
        const refused = [port, port - 1].map(
          (one) => `Port ${one} on 127.0.0.1 is in use: stop what uses it, or set ${name} to another one.`,
        );
        assert.ok(
          refused.some((sentence) => launcher.errors.includes(sentence)),
          launcher.errors,
        );
      }
    } finally {
      taken.close();
    }
  });

  test('processes that would have the same port are refused before any of them starts', () => {
    const programs = { buildLock: '', api: '', worker: '', sandbox: '' };
    const refusal = (environment: Record<string, string>): string | undefined => {
      const config = readConfig({
        PORT: '8080',
        SLUICE_API_PROCESSES: '2',
        SLUICE_WORKER_PROCESSES: '2',
        ...environment,
      });
      try {
        gatewayPrograms(config, programs, { PORT: '8080' }, {});
        return undefined;
      } catch (error) {
        return (error as Error).message;
      }
    };
    assert.equal(refusal({ METRICS_PORT: '9000', WORKER_PORT: '9002' }), undefined);
    assert.equal(refusal({ METRICS_PORT: '0', WORKER_PORT: '0' }), undefined);
    assert.match(
      refusal({ WORKER_PORT: '8079' }) ?? '',
      /^WORKER_PORT 8079 is the first of .* set it so that PORT is not/,
    );
    assert.match(refusal({ METRICS_PORT: '9000', WORKER_PORT: '9001' }) ?? '', /^WORKER_PORT 9001 .* METRICS_PORT\.$/);
    assert.match(refusal({ WORKER_PORT: '65535' }) ?? '', /^WORKER_PORT 65535 .*: set it to 65534 or less\.$/);
    assert.match(refusal({ METRICS_PORT: '65535' }) ?? '', /^METRICS_PORT 65535 .*: set it to 65534 or less\.$/);
  });
});

describe('a command line without the dashes before its options', () => {
  let dataDir = '';
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-dashes-'));
  });
  after(() => rm(dataDir, { recursive: true, force: true }));

  test('npm run migrate, keys and users do nothing, and say where the dashes belong, if npm keeps an option for itself', async () => {
    const { databaseUrl } = await databaseSettings(dataDir);
    const settings = {
      ...{ SLUICE_DATA_DIR: dataDir, npm_config_loglevel: 'error', npm_config_update_notifier: 'false' },
      ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    };
    const lines: [lost: string, line: string[]][] = [
      ['status', ['migrate', '--status']],
      ['operator', ['keys', 'create', '--operator']],
      ['budget', ['keys', 'create', '--budget=5']],
      ['on-disconnect', ['keys', 'create', '--on-disconnect', 'continue']],
      ['operator', ['users', 'invite', 'someone@example.com', '--operator']],
      ['account', ['users', 'invite', 'someone@example.com', '--account=acct_1']],
    ];
    for (const [lost, [command = '', ...args]] of lines) {
      const { code, stdout, stderr } = await run('npm', ['run', '--silent', command, ...args], settings);
      assert.equal(code, 2, `${args}: ${stdout}${stderr}`);
      assert.equal(stdout, '');
      const [line] = stderr.split('\n').filter((text) => text.startsWith(`${command}: `));
      assert.equal(
        line,
        `${command}: npm has kept --${lost} for itself, and nothing was done: write npm run ${command} -- …, with -- before all options`,
      );
    }
    const status = await run('npm', ['run', '--silent', 'migrate', '--', '--status'], settings);
    assert.equal(status.code, 3, 'the database was not touched');
  });

  test('an api and a ledger process take no arguments, which would silently do nothing', async () => {
    for (const [name, file] of [
      ['api', 'api/main.js'],
      ['ledger', 'api/ledger/main.js'],
    ] as const) {
      const { code, stderr } = await run(process.execPath, [join(builtProduct, file), '--port', '9000'], {});
      assert.equal(code, 1);
      assert.equal(stderr, `npm run ${name} takes no argument "--port": settings are environment variables.\n`);
    }
  });

  test('an address that is none of this machine is a mistake in HOST, and a port that is taken one in the setting of the port', async () => {
    const refusal = async (host: string, port: number): Promise<string> => {
      const server = createServer();
      const thrown = await listen(server, port, { host }, 'METRICS_PORT').catch((error) => error);
      assert.ok(thrown instanceof ConfigError, String(thrown));
      return thrown.message;
    };
    assert.match(
      await refusal('192.0.2.1', 0),
      /^HOST 192\.0\.2\.1 is no address of this machine \(EADDRNOTAVAIL\): set HOST/,
    );
    assert.match(await refusal('no such host', 0), /^HOST no such host is no address of this machine/);
    const taken = createServer();
    await listen(taken, 0, { host: '127.0.0.1' });
    const { port } = taken.address() as AddressInfo;
    const sentence = `The port ${port} on 127.0.0.1 is in use: set METRICS_PORT to another one.`;
    assert.equal(await refusal('127.0.0.1', port), sentence);
    taken.close();
  });
});
