import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import OpenAI from 'openai';
import { openDatabase } from '../../shared/database/database.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import {
  isAlive,
  type LauncherOptions,
  type LauncherProcess,
  runKeys,
  runUsers,
  startLauncher,
} from './launcher-process.ts';

async function stopped(launcher: LauncherProcess): Promise<number | null> {
  launcher.signal('SIGINT');
  return await launcher.exit;
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = Date.now() + 60_000;
  while (!(await isSo())) {
    assert.ok(Date.now() < giveUpAt, `not within a minute: ${what}`);
    await delay(50);
  }
}

const clientOf = ({ baseUrl, key }: { baseUrl: string; key: string }) =>
  new OpenAI({ baseURL: baseUrl, apiKey: key, maxRetries: 0, timeout: 30_000 });

/** The text of a streamed answer; `onFirst` is called with its first piece. */
async function streamed(client: OpenAI, prompt: string, onFirst: () => void = () => {}): Promise<string> {
  const stream = await client.chat.completions.create({
    model: 'sandbox-chat',
    messages: [{ role: 'user', content: prompt }],
    stream: true,
  });
  let text = '';
  for await (const chunk of stream) {
    if (text === '') onFirst();
    text += chunk.choices[0]?.delta.content ?? '';
  }
  return text;
}

describe('the launcher', () => {
  let folder = '';
  let made = 0;
  const newDataDir = (): string => join(folder, `data-${++made}`);
  const started = new Set<LauncherProcess>();
  const start = async (options: LauncherOptions): Promise<LauncherProcess> => {
    const launcher = await startLauncher(options);
    started.add(launcher);
    void launcher.exit.then(() => started.delete(launcher));
    return launcher;
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-launcher-'));
  });
  after(async () => {
    for (const launcher of started) {
      launcher.signal('SIGTERM');
      await launcher.exit;
    }
    await rm(folder, { recursive: true, force: true });
  });

  test('one command streams a chat completion, Ctrl-C stops every child, and a second start finds its data', async () => {
    const dataDir = newDataDir();
    const first = await start({ dataDir });
    const welcome = await first.welcome();
    assert.match(welcome.key, /^sk-sluice-[\w-]{43}$/);
    assert.match(first.output, /^Sluice is running\.\n/);
    assert.match(first.output, /The sandbox is a built-in stand-in/);
    assert.match(first.output, new RegExp(`curl -N ${welcome.baseUrl}/chat/completions`));
    assert.equal(await streamed(clientOf(welcome), 'Reply with exactly: water'), 'water');
    for (const file of ['api-key', 'redis.json']) {
      assert.equal((await stat(join(dataDir, file))).mode & 0o777, 0o600, file);
    }
    const children = first.children();
    assert.deepEqual(Object.keys(children).sort(), ['api', 'redis-server', 'sandbox', 'workers']);
    assert.equal(await stopped(first), 0);
    assert.deepEqual(Object.values(children).filter(isAlive), []);
    await assert.rejects(stat(join(dataDir, 'redis.json')));

    const second = await start({ dataDir });
    const again = await second.welcome();
    assert.equal(again.key, welcome.key);
    assert.equal(await streamed(clientOf(again), 'Reply with exactly: again'), 'again');
    assert.equal(await stopped(second), 0);
  });

  test('the command lines of the start page work as they stand there', async () => {
    const launcher = await start({ dataDir: newDataDir() });
    const { baseUrl, key } = await launcher.welcome();
    assert.match(launcher.output, new RegExp(`${new URL(baseUrl).origin}/ has examples`));
    const page = await (await fetch(new URL('/', baseUrl))).text();
    const examples = [...page.matchAll(/<code>curl [^<]*?(http:\S+)[^<]*? -d '([^']*)'<\/code>/g)];
    const types: (string | null)[] = [];
    for (const [, url = '', body = ''] of examples) {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const answer = await fetch(url, { method: 'POST', headers, body });
      assert.equal(answer.status, 200, url);
      assert.ok((await answer.arrayBuffer()).byteLength > 100, url);
      types.push(answer.headers.get('content-type'));
    }
    const [events, json] = ['text/event-stream; charset=utf-8', 'application/json; charset=utf-8'];
    assert.deepEqual(types, [events, events, events, json, 'audio/mpeg', json]);
    assert.equal(await stopped(launcher), 0);
  });

  test('SIGTERM lets a running stream finish', async () => {
    const launcher = await start({ dataDir: newDataDir() });
    const client = clientOf(await launcher.welcome());
    const text = await streamed(client, 'WORDS:40@20', () => launcher.signal('SIGTERM'));
    assert.equal(text.split(' ').length, 40);
    assert.match(text, /word40$/);
    assert.equal(await launcher.exit, 0);
  });

  test('a second Ctrl-C stops at once', async () => {
    const launcher = await start({ dataDir: newDataDir() });
    const client = clientOf(await launcher.welcome());
    const children = Object.values(launcher.children());
    const cut = streamed(client, 'WORDS:2000@10', () => launcher.signal('SIGINT'));
    // Whether the cut is seen as an error or as an end is the stream's matter.
    const settled = cut.then(
      () => {},
      () => {},
    );
    await launcher.saidOnStderr(/Stopping/);
    // Signals that come together are one wish: some versions of npm pass Ctrl-C on a second time.
    launcher.signal('SIGINT');
    await delay(1100);
    assert.ok(isAlive(launcher.pid));
    launcher.signal('SIGINT');
    assert.equal(await launcher.exit, 1);
    await settled;
    await until('the children are gone', () => !children.some(isAlive));
  });

  test('a worker, an api process and a sandbox that are killed come back under their addresses', async () => {
    const launcher = await start({ dataDir: newDataDir() });
    const client = clientOf(await launcher.welcome());
    for (const [name, child] of Object.entries({ worker: 'workers', sandbox: 'sandbox', api: 'api' })) {
      process.kill(launcher.children()[child] as number, 'SIGKILL');
      await launcher.saidOnStderr(
        new RegExp(`The ${name} ended unexpectedly \\(SIGKILL\\); it starts again in 1 s\\.`),
      );
      await until(`${name} runs again`, () => child in launcher.children());
      await until('a request succeeds', () =>
        streamed(client, 'Reply with exactly: back').then(
          (text) => text === 'back',
          () => false,
        ),
      );
    }
    assert.equal(await stopped(launcher), 0);
  });

  test('when Redis dies everything stops, with one sentence and exit code 1', async () => {
    const launcher = await start({ dataDir: newDataDir() });
    await launcher.welcome();
    const children = launcher.children();
    process.kill(children['redis-server'] as number, 'SIGKILL');
    assert.equal(await launcher.exit, 1);
    assert.match(launcher.errors, /^Redis ended unexpectedly, so everything stops\.$/m);
    assert.deepEqual(Object.values(children).filter(isAlive), []);
  });

  test('a launcher that is killed takes its children along, and the next start takes over its Redis and data', async () => {
    const dataDir = newDataDir();
    const killed = await start({ dataDir });
    const welcome = await killed.welcome();
    const { 'redis-server': redis, ...others } = killed.children();
    killed.signal('SIGKILL');
    await killed.exit;
    await until('the children are gone', () => !Object.values(others).some(isAlive));
    const next = await start({ dataDir });
    assert.equal((await next.welcome()).key, welcome.key);
    assert.equal(isAlive(redis as number), false);
    assert.equal(await stopped(next), 0);
  });

  test("SLUICE_BOOTSTRAP_KEY is a key, and is not printed; beside it SLUICE_API_KEY is a client's own", async () => {
    const secret = 'chosen-by-an-operator-01';
    const settings = { SLUICE_BOOTSTRAP_KEY: secret, SLUICE_API_KEY: 'short' };
    const launcher = await start({ dataDir: newDataDir(), settings });
    const { baseUrl } = await launcher.welcome();
    assert.equal((launcher.output + launcher.errors).includes(secret), false);
    assert.match(launcher.output, /Authorization: Bearer \$SLUICE_BOOTSTRAP_KEY"/);
    assert.equal(launcher.errors, '');
    const models = await clientOf({ baseUrl, key: secret }).models.list();
    assert.ok(models.data.length > 0);
    assert.equal(await stopped(launcher), 0);
  });

  test('names that are no settings are told once, with the nearest right one, and so is the old name of the first key', async () => {
    const secret = 'chosen-by-an-operator-02';
    const settings = { SLUICE_SIGNUP: 'closed', OPENAI_APIKEY: 'sk-secret', SLUICE_API_KEY: secret };
    const launcher = await start({ dataDir: newDataDir(), settings });
    const { baseUrl } = await launcher.welcome();
    assert.match(
      launcher.errors,
      /^SLUICE_SIGNUP is not a setting, so it has no effect\. Did you mean SLUICE_SIGN_UP\?\nOPENAI_APIKEY is not a setting, so it has no effect\. Did you mean OPENAI_API_KEY\?\nSLUICE_API_KEY, which clients use .* set SLUICE_BOOTSTRAP_KEY instead\. The old name still works\.\n$/,
    );
    assert.ok((await clientOf({ baseUrl, key: secret }).models.list()).data.length > 0);
    assert.equal(await stopped(launcher), 0);
    // A line of the log would be there by now.
    assert.equal((launcher.output + launcher.errors).match(/SLUICE_SIGNUP/g)?.length, 1);
    assert.equal((launcher.output + launcher.errors).includes('secret'), false);
  });

  test('HOST=0.0.0.0 says what to open and what to set, and no link says 0.0.0.0', async () => {
    const launcher = await start({ dataDir: newDataDir(), settings: { HOST: '0.0.0.0' } });
    const { baseUrl, key } = await launcher.welcome();
    const { port } = new URL(baseUrl);
    assert.match(
      launcher.errors,
      /^HOST=0\.0\.0\.0 listens on every address .* open http:\/\/.*\. Set PUBLIC_URL to .*\n$/,
    );
    assert.ok(launcher.errors.includes(`http://127.0.0.1:${port} on it`));
    assert.doesNotMatch(launcher.output, /0\.0\.0\.0/);
    // Whichever of its addresses was asked is the one that its links begin with.
    for (const name of ['127.0.0.1', 'localhost', new URL(baseUrl).hostname]) {
      const url = `http://${name}:${port}`;
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const body = JSON.stringify({
        model: 'sandbox-image',
        prompt: 'A boat',
        size: '256x256',
        response_format: 'url',
      });
      const answer = await fetch(`${url}/v1/images/generations`, { method: 'POST', headers, body });
      const { data } = (await answer.json()) as { data: { url: string }[] };
      assert.ok(data[0]?.url.startsWith(`${url}/`), `${data[0]?.url} for ${url}`);
      const page = await (await fetch(`${url}/`)).text();
      assert.ok(page.includes(`${url}/v1/`) && !page.includes('0.0.0.0'), url);
    }
    assert.equal(await stopped(launcher), 0);
  });

  describe('keys from the command line', () => {
    test('a key made while the gateway runs works at once, and is refused as soon as it is revoked', async () => {
      const dataDir = newDataDir();
      const launcher = await start({ dataDir });
      const { baseUrl } = await launcher.welcome();
      const created = await runKeys(dataDir, [
        'create',
        '--name',
        'mine',
        '--concurrency',
        '5',
        '--unsupported-parameters',
        'drop',
        '--json',
      ]);
      const { id, key } = JSON.parse(created.stdout) as { id: string; key: string };
      const client = clientOf({ baseUrl, key });
      assert.equal(await streamed(client, 'Reply with exactly: mine'), 'mine');
      const listed = await runKeys(dataDir, ['list']);
      const settings = 'concurrency 5, unsupported-parameters drop';
      assert.match(
        listed.stdout,
        new RegExp(`${id} +${key.slice(0, 16)}… +mine +active +\\S+ \\S+ +(-|\\S+ \\S+) +- +${settings}`),
      );
      assert.equal(listed.stdout.includes(key), false);
      const revoked = await runKeys(dataDir, ['revoke', id]);
      assert.deepEqual([revoked.code, revoked.stdout], [0, `Revoked ${id}: it is refused from now on.\n`]);
      await assert.rejects(streamed(client, 'Hello'), OpenAI.AuthenticationError);
      assert.equal(await stopped(launcher), 0);
    });

    test('a key is made with all its limits, and one for operators', async () => {
      const dataDir = newDataDir();
      const limits = ['--models', 'gpt-4o, openai/*', '--capabilities', 'chat', '--rpm', '60', '--tpm', '9000'];
      const money = ['--budget', '12.5', '--expires-in-days', '2', '--vendor-ids', 'file-1, vs_*'];
      const before = Date.now();
      const { id } = JSON.parse((await runKeys(dataDir, ['create', ...limits, ...money, '--json'])).stdout);
      await runKeys(dataDir, ['create', '--name', 'mine', '--operator']);
      const listed = JSON.parse((await runKeys(dataDir, ['list', '--json'])).stdout) as Record<string, unknown>[];
      const key = listed.find((entry) => entry.id === id);
      assert.ok(key);
      assert.deepEqual(
        [key.models, key.capabilities, key.rpm, key.tpm, key.budget, key.vendorIds, key.kind, key.status],
        [
          ['gpt-4o', 'openai/*'],
          ['chat'],
          60,
          9000,
          { amount: 12.5, period: 'month' },
          ['file-1', 'vs_*'],
          'standard',
          'active',
        ],
      );
      const lifetime = (key.expiresAt as number) - before;
      assert.ok(lifetime >= 2 * 86_400_000 && lifetime < 2 * 86_400_000 + 60_000);
      assert.equal(Object.hasOwn(key, 'hash'), false);
      const table = (await runKeys(dataDir, ['list'])).stdout;
      assert.match(
        table,
        /capabilities chat, models gpt-4o openai\/\*, rpm 60, tpm 9000, budget \$12\.5 month, vendor-ids file-1 vs_\*/,
      );
      assert.match(table, /mine +active .* kind operator/);
    });

    test('a key is made with how long its answers are cached, and for another account', async () => {
      const dataDir = newDataDir();
      const invite = await runUsers(dataDir, ['invite', 'ada@example.com']);
      assert.equal(invite.code, 0, invite.stderr);
      const account = /acct_\w+/.exec((await runUsers(dataDir, ['list'])).stdout)?.[0] ?? '';
      const made = await runKeys(dataDir, ['create', '--account', account, '--cache-seconds', '600', '--json']);
      const { id } = JSON.parse(made.stdout);
      const listed = JSON.parse((await runKeys(dataDir, ['list', '--json'])).stdout) as Record<string, unknown>[];
      const key = listed.find((entry) => entry.id === id);
      assert.deepEqual([key?.accountId, key?.cacheSeconds], [account, 600]);
      const table = (await runKeys(dataDir, ['list'])).stdout;
      assert.match(table, new RegExp(`account ${account}, cache-seconds 600`));
      for (const seconds of ['0', '604801', '1.5', '-1', 'an hour']) {
        const refused = await runKeys(dataDir, ['create', `--cache-seconds=${seconds}`]);
        assert.equal(refused.code, 2, seconds);
        assert.match(refused.stderr, /^keys: --cache-seconds takes a whole number from 1 to 604800\n/);
      }
      const unknown = await runKeys(dataDir, ['create', '--account', 'acct_nobody']);
      assert.deepEqual([unknown.code, unknown.stderr], [1, 'There is no account acct_nobody.\n']);
      assert.equal((await runKeys(dataDir, ['list', '--account', account])).code, 2);
    });

    test('a key revoked while nothing runs is refused after the next start', async () => {
      const dataDir = newDataDir();
      const first = await start({ dataDir });
      const { key, baseUrl } = await first.welcome();
      // Now Redis has the key as active, and its file keeps that.
      assert.equal(await streamed(clientOf({ baseUrl, key }), 'Reply with exactly: before'), 'before');
      assert.equal(await stopped(first), 0);
      const revoked = await runKeys(dataDir, ['revoke', key.slice(0, 16)]);
      assert.match(revoked.stdout, /^Revoked key_\w+\. No gateway of npm start runs here/);
      const second = await start({ dataDir });
      const again = await second.welcome();
      assert.match(second.output, /API key +the one in \S+ is revoked/);
      const refused = clientOf({ baseUrl: again.baseUrl, key });
      await assert.rejects(streamed(refused, 'Hello'), OpenAI.AuthenticationError);
      assert.equal(await stopped(second), 0);
    });

    test('of two keys pasted in one neither is revoked, and a key pasted twice is', async () => {
      const dataDir = newDataDir();
      const make = async (): Promise<string> => JSON.parse((await runKeys(dataDir, ['create', '--json'])).stdout).key;
      const [one, other] = [await make(), await make()];
      const refused = await runKeys(dataDir, ['revoke', `${one}\n${other}`]);
      assert.equal(refused.code, 2);
      assert.match(refused.stderr, /^keys: revoke takes one key at a time\n/);
      const listed = JSON.parse((await runKeys(dataDir, ['list', '--json'])).stdout) as { status: string }[];
      assert.deepEqual([...new Set(listed.map(({ status }) => status))], ['active']);
      assert.equal((await runKeys(dataDir, ['revoke', `${one} ${one}`])).code, 0);
    });

    test('a revocation that does not reach Redis is not called complete', async () => {
      const dataDir = newDataDir();
      const { id } = JSON.parse((await runKeys(dataDir, ['create', '--json'])).stdout) as { id: string };
      const revoked = await runKeys(dataDir, ['revoke', id], { REDIS_URL: 'redis://127.0.0.1:1' });
      assert.equal(revoked.code, 1);
      assert.match(revoked.stderr, /^Revoking key_\w+ is not complete \(.*\): .* run this again\.\n$/);
    });

    test('a key is revoked where the configuration file is broken, missing, or names a variable that only the gateway has', async () => {
      const dataDir = newDataDir();
      const broken = join(dataDir, 'broken.yaml');
      for (const SLUICE_CONFIG of [broken, join(dataDir, 'none.yaml')]) {
        const { id } = JSON.parse((await runKeys(dataDir, ['create', '--json'])).stdout) as { id: string };
        await writeFile(
          broken,
          `vendors: { openai: { api_key: "\${OPENAI_API_KEY}" } }\nmodels: { gpt-4o: { hidden: true } }\n`,
        );
        const revoked = await runKeys(dataDir, ['revoke', id], { SLUICE_CONFIG });
        assert.deepEqual([revoked.code, revoked.stderr], [0, '']);
      }
    });

    test('an option of create is refused with another command, which does nothing', async () => {
      const dataDir = newDataDir();
      const { id } = JSON.parse((await runKeys(dataDir, ['create', '--json'])).stdout) as { id: string };
      for (const option of ['--expires-in-days=7', '--operator', '--name=mine']) {
        for (const command of [['revoke', id], ['list']]) {
          const { code, stderr } = await runKeys(dataDir, [...command, option]);
          assert.equal(code, 2);
          assert.ok(stderr.startsWith(`keys: ${option.split('=')[0]} belongs to create\n`), stderr);
        }
      }
      const listed = JSON.parse((await runKeys(dataDir, ['list', '--json'])).stdout) as Record<string, unknown>[];
      assert.equal(listed.find((key) => key.id === id)?.status, 'active');
    });

    test('a command line that cannot be understood is answered with the usage and exit code 2, and makes no database', async () => {
      const dataDir = newDataDir();
      for (const args of [
        [],
        ['destroy'],
        ['revoke'],
        ['list', 'all'],
        ['create', '--concurrency', '0'],
        ['create', '--unsupported-parameters', 'ignore'],
        ['create', '--expires-in-days', '0'],
        ['create', '--capabilities', 'chat,dance'],
        ['create', '--models', 'gpt-*-mini'],
        ['create', '--rpm', 'many'],
        ['create', '--budget', '1e3'],
        ['create', '--budget', '1000000.01'],
        ['create', '--budget', '5', '--budget-period', 'year'],
        ['create', '--budget-period', 'week'],
        ['create', '--name', 'n'.repeat(101)],
        ['create', '--vendor-ids', 'file-*-1'],
        ['create', '--x'],
      ]) {
        const { code, stderr } = await runKeys(dataDir, args);
        assert.equal(code, 2, args.join(' '));
        assert.match(stderr, /usage:/);
      }
      assert.equal(existsSync(join(dataDir, 'sluice.db')), false);
      await runKeys(dataDir, ['list']);
      const unknown = await runKeys(dataDir, ['revoke', 'key_none']);
      assert.deepEqual([unknown.code, unknown.stderr.split('\n').length], [1, 2]);
    });
  });

  describe('what stands in the way is one sentence on stderr and exit code 1', () => {
    const refuses = async (options: LauncherOptions, sentence: RegExp): Promise<void> => {
      const launcher = await start(options);
      assert.equal(await launcher.exit, 1, launcher.errors);
      assert.match(launcher.errors, sentence);
      assert.equal(launcher.errors.split('\n').length, 2, launcher.errors);
      assert.equal(launcher.output, '');
    };

    test('a port in use ends the launcher with one sentence on stderr and exit code 1', async () => {
      const occupant = createServer();
      await new Promise<void>((resolve) => occupant.listen(0, '127.0.0.1', resolve));
      const { port } = occupant.address() as { port: number };
      await refuses(
        { dataDir: newDataDir(), settings: { PORT: String(port) } },
        new RegExp(`^Port ${port} on 127.0.0.1 is in use: stop what uses it, or set PORT to another one\\.\n$`),
      );
      await new Promise((resolve) => occupant.close(resolve));
    });

    test('a data folder that cannot be written to ends the launcher with one sentence on stderr and exit code 1', async () => {
      const locked = newDataDir();
      await mkdir(locked);
      await chmod(locked, 0o500);
      // Root may write everywhere; for it the kernel's own folder stands in.
      const dataDir = process.getuid?.() === 0 ? '/proc/sluice' : locked;
      await refuses({ dataDir }, /^The data folder \S+ cannot be used: it .*\n$/);
    });

    test('a data folder that is a file ends the launcher with one sentence on stderr and exit code 1', async () => {
      const dataDir = newDataDir();
      await writeFile(dataDir, 'something');
      await refuses({ dataDir }, /^The data folder \S+ cannot be used: it, or a part of its path, is a file .*\n$/);
      assert.equal(await readFile(dataDir, 'utf8'), 'something');
    });

    test('a data folder that another launcher uses ends the launcher with one sentence on stderr and exit code 1', async () => {
      const dataDir = newDataDir();
      const first = await start({ dataDir });
      await first.welcome();
      await refuses({ dataDir }, /^The data folder \S+ is used by another Sluice that runs: .*\n$/);
      assert.equal(await stopped(first), 0);
    });

    test('a REDIS_URL that nobody answers ends the launcher with one sentence on stderr and exit code 1', async () => {
      const settings = { REDIS_URL: 'redis://:secret-password@127.0.0.1:1' };
      await refuses(
        { dataDir: newDataDir(), settings },
        /^Redis at 127\.0\.0\.1:1 cannot be reached (?!.*secret).*\n$/,
      );
    });

    test('a REDIS_URL that is the path of a socket nobody listens on ends the launcher with one sentence on stderr and exit code 1', async () => {
      const settings = { REDIS_URL: '/nowhere/redis.sock?password=secret-password' };
      await refuses(
        { dataDir: newDataDir(), settings },
        /^Redis at \/nowhere\/redis\.sock cannot be reached (?!.*secret).*\n$/,
      );
    });

    test('a DATABASE_URL that nobody answers ends the launcher with one sentence on stderr and exit code 1', async () => {
      const settings = { DATABASE_URL: 'postgres://sluice:secret-password@127.0.0.1:1/sluice' };
      await refuses(
        { dataDir: newDataDir(), settings },
        /^The database of DATABASE_URL cannot be used: no server listens there\.\n$/,
      );
    });

    test('a setting that makes no sense ends the launcher with one sentence on stderr and exit code 1', async () => {
      await refuses(
        { dataDir: newDataDir(), settings: { PORT: 'eighty' } },
        /^PORT must be a whole number from 0 to 65535, not "eighty"\.\n$/,
      );
    });
  });

  test('with a DATABASE_URL keys, jobs and secrets are in that Postgres, and in no file', async () => {
    const server = await startPostgres();
    try {
      const [dataDir, settings] = [newDataDir(), { DATABASE_URL: await server.createDatabase() }];
      const launcher = await start({ dataDir, settings });
      const { baseUrl } = await launcher.welcome();
      const { key } = JSON.parse((await runKeys(dataDir, ['create', '--json'], settings)).stdout) as { key: string };
      assert.equal(await streamed(clientOf({ baseUrl, key }), 'Reply with exactly: hello'), 'hello');
      const db = await openDatabase({ dataDir, databaseUrl: settings.DATABASE_URL });
      // The record follows the answer: it goes through the outbox.
      await until('the job is recorded as completed', async () => {
        const row = await db.selectFrom('jobs').select('outcome').executeTakeFirst();
        return row?.outcome === 'completed';
      });
      await db.destroy();
      assert.equal(await stopped(launcher), 0, launcher.errors);
      await assert.rejects(stat(join(dataDir, 'sluice.db')), { code: 'ENOENT' });
    } finally {
      await server.stop();
    }
  });

  test('a Redis of the operator is used, left running, and warned about when it is allowed to evict', async () => {
    const redis = await startRedis({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] });
    const launcher = await start({
      dataDir: newDataDir(),
      settings: { REDIS_URL: redis.url, SLUICE_REDIS_EVICTION: 'allowed' },
    });
    const welcome = await launcher.welcome();
    assert.match(launcher.errors, /^Redis has maxmemory-policy allkeys-lru .*: set it to noeviction\.$/m);
    assert.deepEqual(Object.keys(launcher.children()).sort(), ['api', 'sandbox', 'workers']);
    assert.equal(await streamed(clientOf(welcome), 'Reply with exactly: yours'), 'yours');
    assert.equal(await stopped(launcher), 0);
    assert.ok(isAlive(redis.pid));
    await redis.stop();
  });
});
