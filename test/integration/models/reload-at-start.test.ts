import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';

/** Stands before Redis, and lets nothing through until it is opened: a process that starts waits for it. */
class Gate {
  /** What lets each of the waiting connections through. */
  readonly #waiting: (() => void)[] = [];
  readonly #sockets: Socket[] = [];
  readonly #server: Server;
  #isOpen = false;

  constructor(redisPort: number) {
    this.#server = createServer((client) => {
      const redis = connect({ port: redisPort, host: '127.0.0.1' });
      for (const socket of [client, redis]) socket.on('error', () => undefined);
      this.#sockets.push(client, redis);
      redis.pipe(client);
      this.#waiting.push(() => client.pipe(redis));
      if (this.#isOpen) this.open();
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async reached(): Promise<void> {
    await eventually(() => assert.ok(this.#waiting.length > 0, 'nobody waits'), 30_000);
  }

  open(): void {
    this.#isOpen = true;
    for (const letThrough of this.#waiting.splice(0)) letThrough();
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

describe('a SIGHUP to a process that is starting', { concurrency: true }, () => {
  let gateway: TestGateway;
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-reload-'));
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  for (const program of ['api/main.js', 'api/ledger/main.js', 'workers/main.js']) {
    it(`does not end ${program}, which reads the configuration file again once it has started`, async () => {
      const file = join(folder, `${program.replaceAll('/', '-')}.yaml`);
      await writeFile(file, 'models: {}\n');
      const gate = new Gate(Number(new URL(gateway.redisUrl).port));
      const port = String(await freePort());
      const settings = { REDIS_URL: await gate.listen(), SLUICE_CONFIG: file, PORT: port };
      const child = fork(join(gateway.product, program), { env: gateway.settings(settings), silent: true });
      try {
        const output = collectOutput(child);
        await gate.reached();
        await writeFile(file, 'models: { later: { alias_of: sandbox-chat } }\n');
        child.kill('SIGHUP');
        gate.open();
        await eventually(() => assert.match(output(), /"msg":"configuration reloaded"/), 30_000);
        assert.deepEqual([child.exitCode, child.signalCode], [null, null]);
        if (program !== 'api/main.js') return;
        const models = await gateway.fetch('/v1/models', { url: `http://127.0.0.1:${port}` });
        const { data } = (await models.json()) as { data: { id: string }[] };
        assert.ok(data.some(({ id }) => id === 'later'));
      } finally {
        child.kill('SIGKILL');
        gate.close();
      }
    });
  }
});

function collectOutput(child: ChildProcess): () => string {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return () => output;
}
