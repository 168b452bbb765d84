import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { access, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { type LauncherProcess, startLauncher } from './launcher-process.ts';

describe("the launcher with an operator's file", () => {
  let folder = '';
  let file = '';
  let launcher: LauncherProcess | undefined;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-launcher-'));
    file = join(folder, 'sluice.yaml');
  });
  after(async () => {
    launcher?.signal('SIGTERM');
    await launcher?.exit;
    await rm(folder, { recursive: true, force: true });
  });

  it("the launcher with an operator's file exits with 1 and the lines of the mistakes, and starts nothing", async () => {
    await writeFile(file, 'vendors:\n  openia: { api_key: sk-secret }\nmodels:\n  gpt-5: { prices: { input: abc } }\n');
    const dataDir = join(folder, 'never');
    launcher = await startLauncher({ dataDir, settings: { SLUICE_CONFIG: file } });
    assert.equal(await launcher.exit, 1);
    assert.equal(launcher.errors, `${file}:4:29: models.gpt-5.prices.input: expected a number >= 0, got "abc"\n`);
    assert.equal(launcher.output, '');
    await assert.rejects(access(dataDir));
  });

  it("the launcher with an operator's file starts nothing where a vendor is the gateway itself, as client libraries have it in their environment", async () => {
    const port = await freePort();
    const settings = { PORT: String(port), OPENAI_API_KEY: 'a-key', OPENAI_BASE_URL: `http://localhost:${port}/v1` };
    launcher = await startLauncher({ dataDir: join(folder, 'itself'), settings });
    assert.equal(await launcher.exit, 1);
    const sentence = `The vendor openai has an address of this gateway, http://localhost:${port}/v1: each request would come back to it without end. Correct OPENAI_BASE_URL, or its base_url in the configuration file.\n`;
    assert.deepEqual([launcher.errors, launcher.output], [sentence, '']);
  });

  it("the launcher with an operator's file has api and worker read it again on SIGHUP, keeps what it had where it is wrong, and lives on", async () => {
    await writeFile(file, 'vendors: { sandbox: { open: true } }\nmodels: { first: { alias_of: sandbox-chat } }\n');
    launcher = await startLauncher({ dataDir: join(folder, 'data'), settings: { SLUICE_CONFIG: file } });
    const { baseUrl, key } = await launcher.welcome();
    const client = new OpenAI({ baseURL: baseUrl, apiKey: key, maxRetries: 0 });
    const children = launcher.children();
    const listed = async () => (await client.models.list()).data.map(({ id }) => id);
    const answer = async (model: string) => {
      const messages = [{ role: 'user', content: 'Reply with exactly: yes' }] as const;
      return (await client.chat.completions.create({ model, messages: [...messages] })).choices[0]?.message.content;
    };
    assert.equal(await answer('first'), 'yes');
    assert.equal(await answer('sandbox/sandbox-chat'), 'yes');

    await writeFile(file, 'models: { second: { alias_of: sandbox-chat } }\n');
    launcher.signal('SIGHUP');
    await launcher.saidOnStderr(/^The configuration file is read again; all other settings stay until a restart\.$/m);
    await eventually(async () => assert.ok((await listed()).includes('second'), 'not listed'));
    await eventually(async () => assert.equal(await answer('second'), 'yes'));

    await writeFile(file, 'models: { second: { alias_off: sandbox-chat } }\n');
    launcher.signal('SIGHUP');
    await launcher.saidOnStderr(
      /^The settings stay as they were\. .*sluice\.yaml:1:21: models\.second\.alias_off: there is no such key/m,
    );
    assert.equal(await answer('second'), 'yes');

    await writeFile(file, `vendors: { mine: { base_url: ${baseUrl} } }\n`);
    launcher.signal('SIGHUP');
    await launcher.saidOnStderr(/^The settings stay as they were\. The vendor mine has an address of this gateway, /m);
    assert.equal(await answer('second'), 'yes');

    await rm(file);
    execFileSync('mkfifo', [file]);
    const refusals = (): number => launcher?.errors.match(/:1:1: not YAML/g)?.length ?? 0;
    launcher.signal('SIGHUP');
    // Resolves once the launcher reads, which then waits for what is written here.
    let pipe = await open(file, 'w');
    const { pid } = launcher;
    const threads = (): number => readdirSync(`/proc/${pid}/task`).length;
    const before = threads();
    for (let count = 0; count < 20; count++) {
      launcher.signal('SIGHUP');
      await listed();
    }
    // Node may have begun a few of its own.
    assert.ok(threads() < before + 8, `${threads()} threads, and ${before} before`);
    await pipe.write('@\n');
    await pipe.close();
    await launcher.saidOnStderr(/:1:1: not YAML/);
    // All of those signals are one.
    pipe = await open(file, 'w');
    await pipe.write('@\n');
    await pipe.close();
    await eventually(() => assert.equal(refusals(), 2));
    await rm(file);
    assert.equal(launcher.errors.match(/is read again/g)?.length, 1);
    assert.deepEqual(launcher.children(), children);
    launcher.signal('SIGTERM');
    assert.equal(await launcher.exit, 0);
  });

  it("the launcher with an operator's file does not end a worker that is only starting by SIGHUP", async () => {
    await writeFile(file, 'models: {}\n');
    const running = await startLauncher({ dataDir: join(folder, 'data'), settings: { SLUICE_CONFIG: file } });
    launcher = running;
    const { baseUrl, key } = await running.welcome();
    const before = running.children().workers as number;
    process.kill(before, 'SIGKILL');
    await running.saidOnStderr(/The worker ended unexpectedly \(SIGKILL\); it starts again/);
    await eventually(() => assert.notEqual(running.children().workers ?? before, before, 'not there'));
    const next = running.children().workers;
    running.signal('SIGHUP');
    await running.saidOnStderr(/^The configuration file is read again; all other settings stay until a restart\.$/m);
    const client = new OpenAI({ baseURL: baseUrl, apiKey: key, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'Reply with exactly: yes' }];
    const { choices } = await client.chat.completions.create({ model: 'sandbox-chat', messages });
    assert.equal(choices[0]?.message.content, 'yes');
    assert.equal(running.children().workers, next);
  });
});
