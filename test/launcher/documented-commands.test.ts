import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startSandbox } from '../../sandbox/server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedis } from '../support/redis.ts';
import { bareEnvironment, type LauncherProcess, startLauncher } from './launcher-process.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
/** What the names of the agents stand for, of the packages in test/agents. */
const agents = { codex: '@openai/codex/bin/codex.js', claude: '@anthropic-ai/claude-code/cli-wrapper.cjs' };
const documentedUrl = 'http://127.0.0.1:8080';

/** An example as it stands in a page. */
interface Example {
  readonly language: string;
  readonly source: string;
}

async function examplesOf(page: string, language: string): Promise<string[]> {
  const text = await readFile(join(root, page), 'utf8');
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .map(([, named, source]): Example => ({ language: named as string, source: source as string }))
    .filter((example) => example.language === language)
    .map(({ source }) => source);
}

describe('what the documentation says to type', () => {
  let folder: string;
  let gateway: LauncherProcess;
  let baseUrl: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-documented-'));
    gateway = await startLauncher({ dataDir: join(folder, 'data') });
    baseUrl = (await gateway.welcome()).baseUrl.replace(/\/v1$/, '');
  });
  after(async () => {
    gateway?.signal('SIGTERM');
    await gateway?.exit;
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  /** Runs a script as a newcomer's shell would, beside the data folder. Returns what it printed. */
  async function inShell(script: string, variables: Record<string, string> = {}): Promise<string> {
    const programs = [join(folder, 'bin'), process.env.PATH ?? ''].join(delimiter);
    const { stdout } = await run('bash', ['-ec', script.replaceAll(documentedUrl, baseUrl)], {
      cwd: folder,
      env: { ...bareEnvironment(), PATH: programs, HOME: folder, ...variables },
      timeout: 120_000,
    });
    return stdout;
  }

  for (const page of ['README.md', 'docs/guides/get-started.md']) {
    test(`${page}: the curl line streams an answer to its end`, async () => {
      const [, request = ''] = await examplesOf(page, 'sh');
      assert.match(request, /^curl -N /);
      assert.match(await inShell(request), /^data: [\s\S]+data: \[DONE\]\n\n$/);
    });

    test(`${page}: the code for the SDKs gets answers`, async () => {
      const [code = ''] = await examplesOf(page, 'ts');
      const names = [...code.matchAll(/^const (hello|next|message) = /gm)].map(([, name]) => name);
      assert.ok(names.length >= 2);
      // Inside the project, where the SDKs are.
      const cache = join(root, 'node_modules/.cache');
      await mkdir(cache, { recursive: true });
      const program = join(await mkdtemp(join(cache, 'documented-')), 'example.mjs');
      const imports = "import OpenAI from 'openai';\nimport Anthropic from '@anthropic-ai/sdk';\n";
      const printed = names.map((name) => `console.log(${name}.id);\n`).join('');
      await writeFile(program, `${imports}const apiKey = process.env.KEY;\n${code}\n${printed}`);
      try {
        await writeFile(program, (await readFile(program, 'utf8')).replaceAll(documentedUrl, baseUrl));
        const { stdout } = await run(process.execPath, [program], {
          env: { ...bareEnvironment(), KEY: (await readFile(join(folder, 'data/api-key'), 'utf8')).trim() },
          timeout: 60_000,
        });
        assert.match(stdout, /^(resp_\w+\n)+msg_\w+\n$/);
      } finally {
        await rm(join(program, '..'), { recursive: true });
      }
    });
  }

  test('docs/guides/agents.md: Codex and Claude Code answer with these settings', async () => {
    const page = 'docs/guides/agents.md';
    const [settings = ''] = await examplesOf(page, 'toml');
    const [codex = '', claude = '', ...others] = await examplesOf(page, 'sh');
    assert.deepEqual(others, []);
    await mkdir(join(folder, 'bin'));
    for (const [name, launcher] of Object.entries(agents)) {
      const shim = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'test/agents/node_modules', launcher)}' "$@"\n`;
      await writeFile(join(folder, 'bin', name), shim, { mode: 0o700 });
    }
    await mkdir(join(folder, '.codex'));
    await writeFile(join(folder, '.codex/config.toml'), settings.replaceAll(documentedUrl, baseUrl));
    assert.match(codex, /codex exec/);
    assert.match(claude, /claude -p/);
    assert.notEqual((await inShell(codex)).trim(), '');
    assert.notEqual((await inShell(claude)).trim(), '');
  });

  test('docs/guides/api-keys.md: keys are made and listed', async () => {
    const text = await readFile(join(root, 'docs/guides/api-keys.md'), 'utf8');
    const [create = '', list = ''] = [...text.matchAll(/`(npm run keys -- [^`<]+)`/g)].map(([, command]) => command);
    assert.match(create, / create --name ci /);
    assert.match(list, / list$/);
    // The folder that holds the project is where npm runs; the data are elsewhere here.
    const settings = { SLUICE_DATA_DIR: join(folder, 'data') };
    assert.match(await inShell(`cd '${root}' && ${create}`, settings), /sk-sluice-/);
    assert.match(await inShell(`cd '${root}' && ${list}`, settings), / ci /);
  });
});

test('docs/guides/back-up-and-restore.md: a database is restored after a crash, as it was at its backup', async () => {
  const [restore = '', ...others] = await examplesOf('docs/guides/back-up-and-restore.md', 'sh');
  assert.deepEqual(others, []);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-restore-'));
  const file = join(folder, 'data/sluice.db');
  const launcher = { dataDir: join(folder, 'data'), settings: { DATABASE_URL: '' } };
  // By a process of its own: libsql keeps the locks of what it has closed until the next garbage collection.
  const ask = async (sql: string): Promise<unknown[]> => {
    const code = `import Libsql from 'libsql'; const [, file, sql] = process.argv;
      console.log(JSON.stringify(new Libsql(file).prepare(sql).all()));`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code, file, sql], { cwd: root });
    return JSON.parse(stdout) as unknown[];
  };
  let gateway = await startLauncher(launcher);
  try {
    await gateway.welcome();
    // What `.backup` of SQLite's program makes, which this machine may not have.
    await ask(`VACUUM INTO '${join(folder, 'backup.db')}'`);
    const rows = Array.from({ length: 20 }, (_, index) => `('late-${index}', '${'x'.repeat(5000)}', 1)`);
    await ask(`INSERT INTO accounts (id, name, created_at) VALUES ${rows.join(',')}`);
    const children = Object.values(gateway.children());
    gateway.signal('SIGKILL');
    for (const pid of children) process.kill(pid, 'SIGKILL');
    await gateway.exit;
    assert.ok((await stat(`${file}-wal`)).size > 0, 'the crash has left no log');
    await run('bash', ['-ec', restore], { cwd: folder });
    assert.deepEqual(await ask('PRAGMA integrity_check'), [{ integrity_check: 'ok' }]);
    assert.deepEqual(await ask("SELECT id FROM accounts WHERE id LIKE 'late-%'"), []);
    await rm(join(folder, 'data/redis'), { recursive: true, force: true });
    gateway = await startLauncher(launcher);
    const { baseUrl } = await gateway.welcome();
    const key = (await readFile(join(folder, 'data/api-key'), 'utf8')).trim();
    const models = await fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(models.status, 200);
  } finally {
    gateway.signal('SIGTERM');
    await gateway.exit;
    await rm(folder, { recursive: true, force: true });
  }
});

describe('the roles as the documentation starts them', () => {
  for (const page of ['README.md', 'docs/guides/scale.md']) {
    test(`${page}: api and workers over one Redis answer a chat`, async () => {
      const scripts = await examplesOf(page, 'sh');
      const script = scripts.find((source) => source.includes('npm run api')) ?? '';
      const [build, ...commands] = script.trim().split('\n');
      assert.equal(build, 'npm run build');
      assert.equal(commands.length, 3);
      const data = await mkdtemp(join(tmpdir(), 'sluice-test-roles-'));
      const redis = await startRedis({ aof: false });
      const sandbox = await startSandbox({ port: 0 });
      const port = await freePort();
      const key = 'sk-sluice-documented-commands';
      const settings = {
        ...{ PORT: String(port), SLUICE_DATA_DIR: data, SLUICE_BOOTSTRAP_KEY: key, SLUICE_SANDBOX: 'on' },
        ...{ SANDBOX_BASE_URL: `${sandbox.url}/v1`, LOG_LEVEL: 'error' },
        ...{ SLUICE_LAME_DUCK_SECONDS: '0', SLUICE_SHUTDOWN_SECONDS: '2' },
      };
      const started: ChildProcess[] = [];
      try {
        for (const command of commands) {
          const text = command.replace('redis://…', redis.url);
          assert.notEqual(text, command);
          const env = { ...bareEnvironment(), ...settings };
          // A group of its own: npm, the shell and the role end together.
          started.push(spawn('bash', ['-c', text], { cwd: root, env, stdio: 'ignore', detached: true }));
        }
        await eventually(async () => {
          const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }] }),
          });
          assert.equal(answer.status, 200);
        }, 60_000);
      } finally {
        await Promise.all(started.map(endGroup));
        await Promise.all([redis.stop(), sandbox.close(), rm(data, { recursive: true, force: true })]);
      }
    });
  }
});

async function endGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return;
  const exit = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await exit;
}
