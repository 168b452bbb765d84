import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { readSse, textOf, type WireEvent } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

describe('SIGHUP', () => {
  let gateway: TestGateway;
  let folder = '';
  let file = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-reload-'));
    file = join(folder, 'sluice.yaml');
    const text = `vendors: { leaving: { base_url: "\${SANDBOX_BASE_URL}" } }
models: { first: { capability: chat, routes: [{ vendor: leaving, model: sandbox-chat }] } }
`;
    await writeFile(file, text);
    gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: file } });
  });
  after(async () => {
    await gateway.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const listed = async () => (await gateway.client().models.list()).data.map(({ id }) => id);
  const processes = () => [...gateway.apis, ...gateway.workers];

  /** Has every process read the file again, and waits until each has said so `times` times. */
  async function reload(text: string, said: RegExp, times: number): Promise<void> {
    await writeFile(file, text);
    for (const { child } of processes()) child.kill('SIGHUP');
    await eventually(() => {
      for (const process of processes()) {
        assert.equal(process.output().match(said)?.length, times, `not said ${times} times`);
      }
    });
  }

  it('SIGHUP reloads models and vendors, while a running stream of a removed vendor completes', async () => {
    assert.ok((await listed()).includes('first'));
    for (const path of ['/', '/docs', '/openapi.json', '/llms.txt']) await (await gateway.fetch(path)).text();
    const body = JSON.stringify(streamed('WORDS:150@10', { model: 'first', user: 'goes-on' }));
    const stream = await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
    const events: WireEvent[] = [];
    let reloaded: Promise<void> | undefined;
    let answered: Promise<unknown> | undefined;
    for await (const event of readSse(stream)) {
      events.push(event);
      if (events.length !== 10) continue;
      const text = `vendors: { my-own: { base_url: "\${SANDBOX_BASE_URL}" } }
models:
  sandbox-chat: { hide: true }
  second: { capability: chat, routes: [{ vendor: my-own, model: sandbox-chat }] }
`;
      reloaded = reload(text, /configuration reloaded/g, 1);
      answered = reloaded.then(async () => {
        const isRunning = events.length < 150;
        const { choices } = await gateway
          .client()
          .chat.completions.create(held('Reply with exactly: new', { model: 'second' }));
        return [isRunning, choices[0]?.message.content];
      });
    }
    assert.deepEqual(await answered, [true, 'new']);
    assert.equal(textOf(events), words(150));
    assert.equal(events.at(-1)?.data, '[DONE]');
    assert.equal((await vendorCalls(gateway, 'goes-on')).length, 1);
    const now = await listed();
    assert.ok(now.includes('second') && !now.includes('first') && !now.includes('sandbox-chat'), now.join());
    const gone = await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
    await assertErrorAnswer(gone, 404, 'model_not_found');
  });

  it('the start page and the reference name models of the configuration file as it was read last', async () => {
    for (const path of ['/', '/docs', '/openapi.json', '/llms.txt']) {
      const text = (await (await gateway.fetch(path)).text()).replaceAll('&quot;', '"');
      assert.match(text, /model[^a-z]{1,16}second\b/, path);
      assert.doesNotMatch(text, /model[^a-z]{1,16}first\b/, path);
    }
  });

  it('SIGHUP keeps the settings when the configuration file is invalid, and logs the position of the mistake', async () => {
    const before = await listed();
    await reload(
      'models:\n  third: { alias_of: sandbox-chat }\n  fourth: { alias_of: nothing }\n',
      /settings stay as they were/g,
      1,
    );
    for (const process of processes()) {
      assert.ok(
        process.output().includes(`${file}:3:23: models.fourth.alias_of: expected the id of a model`),
        process.output(),
      );
    }
    assert.deepEqual(await listed(), before);
    const { choices } = await gateway
      .client()
      .chat.completions.create(held('Reply with exactly: old', { model: 'second' }));
    assert.equal(choices[0]?.message.content, 'old');
  });

  it('SIGHUP keeps the settings when the configuration file is empty, as one is that is just being written', async () => {
    const before = await listed();
    await reload('\n', /settings stay as they were\. The configuration file \S+ is empty/g, 1);
    assert.deepEqual(await listed(), before);
  });

  it('SIGHUP reloads the configuration file after its correction', async () => {
    await reload('models: { fifth: { alias_of: sandbox-chat } }\n', /configuration reloaded/g, 2);
    const { choices } = await gateway
      .client()
      .chat.completions.create(held('Reply with exactly: right', { model: 'fifth' }));
    assert.equal(choices[0]?.message.content, 'right');
  });

  it('requests are answered while a process reads the configuration file, however long that takes', {
    timeout: 120_000,
  }, async () => {
    await rm(file);
    execFileSync('mkfifo', [file]);
    for (const { child, output } of processes()) {
      child.kill('SIGHUP');
      // Resolves once the process reads, which then waits for what is written here.
      const pipe = await open(file, 'w');
      try {
        const { choices } = await gateway
          .client()
          .chat.completions.create(held('Reply with exactly: free', { model: 'fifth' }));
        assert.equal(choices[0]?.message.content, 'free');
        await pipe.write('models: { fifth: { alias_of: sandbox-chat }, sixth: { alias_of: sandbox-chat } }\n');
      } finally {
        await pipe.close();
      }
      await eventually(() => assert.equal(output().match(/configuration reloaded/g)?.length, 3));
    }
    assert.ok((await listed()).includes('sixth'));
  });
});
