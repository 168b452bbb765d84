import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { appendFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.ts';
import { bareEnvironment, isAlive, type LauncherProcess, startLauncher } from './launcher-process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const parts = ['api', 'workers', 'shared', 'sandbox', 'launcher', 'console', 'dist'];
const files = ['start.mjs', 'build.mjs', 'build-state.mjs', 'package.json', 'package-lock.json', 'tsconfig.json'];

/** What a program has said, and how it ended. */
interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a program that ends by itself said, without any of our own settings. */
async function run(file: string, args: string[], nodeFlags: string[] = []): Promise<Ended> {
  try {
    const command = [...nodeFlags, file, ...args];
    return { code: 0, ...(await promisify(execFile)(process.execPath, command, { env: { ...bareEnvironment() } })) };
  } catch (error) {
    return error as Ended;
  }
}

describe('npm start', () => {
  /** A checkout of its own that is built: the sources, and what was built of them. */
  let checkout = '';
  let data = 0;
  const started: LauncherProcess[] = [];
  const newDataDir = () => join(checkout, `data-${++data}`);
  const file = (path: string) => join(checkout, path);

  const start = async (): Promise<LauncherProcess> => {
    const launcher = await startLauncher({ dataDir: newDataDir(), program: file('start.mjs') });
    started.push(launcher);
    return launcher;
  };
  const stop = async (launcher: LauncherProcess) => {
    launcher.signal('SIGINT');
    assert.equal(await launcher.exit, 0, launcher.errors);
  };

  before(() => {
    checkout = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-test-start-')));
    const filter = (path: string) => !path.endsWith('/node_modules');
    for (const part of [...parts, ...files]) cpSync(join(root, part), file(part), { recursive: true, filter });
    symlinkSync(join(root, 'node_modules'), file('node_modules'));
    // A build leaves it; the copy has none yet.
    cpSync(join(root, 'dist.lock'), file('dist.lock'));
  });
  after(async () => {
    for (const launcher of started) launcher.signal('SIGTERM');
    await Promise.all(started.map(({ exit }) => exit));
    await rm(checkout, { recursive: true, force: true });
  });

  it('builds nothing where the sources are as they were, and never under a gateway that runs', async () => {
    const built = await stat(file('dist/launcher/main.js'));
    const launcher = await start();
    await launcher.welcome();
    assert.match(launcher.errors, /^Starting Sluice …\n$/);
    assert.equal((await stat(file('dist/launcher/main.js'))).ino, built.ino);

    await appendFile(file('shared/ids.ts'), '// Changed.\n');
    const second = await start();
    assert.equal(await Promise.race([second.exit, second.welcome()]), 1);
    assert.match(second.errors, /\nA Sluice runs from this folder, .*: stop that one first, then start again\.\n$/);
    const build = await run(file('build.mjs'), []);
    assert.deepEqual([build.code, build.stdout], [1, '']);
    assert.match(build.stderr, /^A Sluice runs from this folder, .*\n$/);
    assert.equal((await stat(file('dist/launcher/main.js'))).ino, built.ino);

    // Its children come back from the build that they were started from.
    const killed = launcher.children().api as number;
    process.kill(killed, 'SIGKILL');
    await eventually(() => {
      const { api } = launcher.children();
      assert.ok(api !== undefined && api !== killed && isAlive(api), 'the api is not back');
    });
    await stop(launcher);
  });

  it('builds what has changed, says so, and does it once', async () => {
    await appendFile(file('shared/ids.ts'), '// Changed once more.\n');
    const before = readFileSync(file('dist/sources.sha256'), 'utf8');
    mkdirSync(file('dist.next/left-by-a-build-that-was-killed'), { recursive: true });
    const launcher = await start();
    await launcher.welcome();
    assert.match(launcher.errors, /^Building Sluice, .*\nStarting Sluice …\n$/);
    assert.notEqual(readFileSync(file('dist/sources.sha256'), 'utf8'), before);
    assert.deepEqual([existsSync(file('dist.next')), existsSync(file('dist.last'))], [false, false]);
    await stop(launcher);
    const again = await start();
    await again.welcome();
    assert.match(again.errors, /^Starting Sluice …\n$/);
    await stop(again);
  });

  it('npm start explains itself, and takes no arguments that it does not know', async () => {
    const { code, stdout, stderr } = await run(file('start.mjs'), ['--help']);
    assert.deepEqual([code, stderr], [0, '']);
    for (const name of ['PORT', 'OPENAI_API_KEY', 'PUBLIC_URL']) assert.ok(stdout.includes(name), name);
    const unknown = await run(file('start.mjs'), ['--prot', '8081']);
    assert.deepEqual([unknown.code, unknown.stdout], [2, '']);
    assert.match(unknown.stderr, /^npm start takes no argument "--prot": .*\n\nusage:/);
  });

  it('npm start refuses an option that npm keeps for itself, instead of listening on the usual port', async () => {
    const env = { ...bareEnvironment(), npm_config_loglevel: 'error', npm_config_update_notifier: 'false' };
    for (const option of ['--port=9000', '--sluice-data-dir=/tmp/x']) {
      const ended = promisify(execFile)('npm', ['start', '--silent', option], { cwd: checkout, env, timeout: 30_000 });
      const { code, stdout, stderr } = (await ended.catch((error) => error)) as Ended;
      assert.deepEqual([code, stdout], [2, '']);
      const [name] = option.split('=');
      assert.match(
        stderr,
        new RegExp(`^npm start takes no argument "${name}": settings are environment variables`, 'm'),
      );
    }
  });

  it('npm start says in one sentence that a Node is too old, and takes each that is not', async () => {
    const asIf = async (version: string) => {
      const stub = file('as-if.mjs');
      const versions = JSON.stringify({ ...process.versions, node: version });
      await writeFile(stub, `Object.defineProperty(process, 'versions', { value: ${versions} });\n`);
      return await run(file('start.mjs'), ['--help'], ['--import', stub]);
    };
    for (const old of ['18.20.4', '20.9.0', '20.18.0']) {
      const { code, stdout, stderr } = await asIf(old);
      assert.deepEqual([code, stdout], [1, ''], old);
      assert.match(stderr, new RegExp(`^Sluice needs Node 20\\.18\\.1 or newer, and \\S+ is Node ${old}: .*\\n$`));
    }
    for (const fine of ['20.18.1', '20.20.2', '22.0.0', '24.11.0', '26.0.0-nightly']) {
      assert.equal((await asIf(fine)).code, 0, fine);
    }
  });

  it('npm start takes settings from .env, and those of the shell before them', async () => {
    await writeFile(file('.env'), 'SLUICE_BOOTSTRAP_KEY=a-key-of-the-file-0123456789\nPORT=1\n# HOST=0.0.0.0\n');
    try {
      const launcher = await start();
      const { baseUrl } = await launcher.welcome();
      const authorization = 'Bearer a-key-of-the-file-0123456789';
      assert.equal((await fetch(`${baseUrl}/models`, { headers: { authorization } })).status, 200);
      await stop(launcher);
    } finally {
      await rm(file('.env'));
    }
  });

  it('npm start and the commands read a .env with the mark that editors of Windows put first, and refuse one of UTF-16', async () => {
    // Without its first name the file is refused for its second.
    const text = '\ufeffPORT=none\nSLUICE_SIGN_UP=perhaps\n';
    const programs = ['start.mjs', 'dist/launcher/keys.js'];
    try {
      await writeFile(file('.env'), text);
      for (const program of programs) {
        const { code, stderr } = await run(file(program), program === 'start.mjs' ? [] : ['list']);
        assert.equal(code, 1);
        assert.match(stderr, /^PORT must be a whole number from 0 to 65535, not "none"\.$/m);
      }
      await writeFile(file('.env'), Buffer.from(text, 'utf16le'));
      for (const program of programs) {
        const { code, stderr } = await run(file(program), program === 'start.mjs' ? [] : ['list']);
        assert.equal(code, 1);
        assert.match(stderr, /\.env cannot be (read|used): it is not written in UTF-8\.$/m);
      }
    } finally {
      await rm(file('.env'));
    }
  });

  it('lines of .env without a "=" are told by npm start and the commands, by number and without what is in them', async () => {
    const text = `# what follows is wrong
OPENAI_API_KEY sk-secret
SLUICE_DATA_DIR=${newDataDir()}
export A="a value
of two lines" # and a remark
  SLUICE_SIGN_UP: open
B='it has no' # "end
C=\`another
of two\`
`;
    const commands = [
      ['keys', 'list'],
      ['users', 'list'],
      ['migrate', '--status'],
    ] as const;
    try {
      await writeFile(file('.env'), text);
      const told: string[] = await Promise.all(
        commands.map(async ([name, ...args]) => (await run(file(`dist/launcher/${name}.js`), args)).stderr),
      );
      await writeFile(file('.env'), `${text}PORT=none\n`);
      told.push((await run(file('start.mjs'), [])).stderr);
      const expected = [2, 6].map(
        (line) => `${file('.env')}: line ${line} has no "=", so it sets nothing. A setting is NAME=value.`,
      );
      for (const stderr of told) {
        assert.deepEqual(
          stderr.split('\n').filter((line) => line.startsWith(file('.env'))),
          expected,
        );
        assert.doesNotMatch(stderr, /sk-secret/);
      }
    } finally {
      await rm(file('.env'));
    }
  });

  it('npm run keys, users and migrate take the settings of .env, and say so if they make a new database', async () => {
    const [known, other] = [newDataDir(), newDataDir()];
    const command = (name: string, ...args: string[]) => run(file(`dist/launcher/${name}.js`), args);
    await writeFile(file('.env'), `SLUICE_DATA_DIR=${known}\nPORT=8317\n`);
    try {
      const created = await command('keys', 'create', '--name', 'mine');
      assert.deepEqual([created.code, existsSync(join(known, 'sluice.db'))], [0, true]);
      assert.match(created.stderr, new RegExp(`^There is no database in ${known} yet, so a new one is made: .*\\n$`));
      const listed = await command('keys', 'list');
      assert.match(listed.stdout, / mine /);
      assert.equal(listed.stderr, '');
      const invited = await command('users', 'invite', 'ada@example.com');
      assert.match(invited.stdout, /^http:\/\/127\.0\.0\.1:8317\//);
      assert.deepEqual([(await command('migrate', '--status')).code, existsSync(other)], [0, false]);
      // The shell's own value stays.
      const elsewhere = await promisify(execFile)(process.execPath, [file('dist/launcher/keys.js'), 'list'], {
        env: { ...bareEnvironment(), SLUICE_DATA_DIR: other },
      });
      assert.doesNotMatch(elsewhere.stdout, / mine /);
    } finally {
      await rm(file('.env'));
    }
  });

  it('npm start names the command that is missing where nothing is installed', async () => {
    const bare = file('bare');
    mkdirSync(bare);
    for (const name of files) cpSync(join(root, name), join(bare, name));
    const { code, stderr } = await run(join(bare, 'start.mjs'), []);
    assert.deepEqual([code, stderr], [1, 'The packages of Sluice are not installed: run npm ci first.\n']);
  });
});
