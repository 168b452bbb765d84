import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

/** The file that stands in the compose set-up: what is tested is what is shipped. */
export const caddyfile = fileURLToPath(new URL('../../deploy/compose/Caddyfile', import.meta.url));

/** Settings of a Caddy that keeps what it writes in a folder of the test. */
export function caddyEnvironment(folder: string, settings: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, ...settings };
}

/** Caddy, as Debian packages it, with TLS for `localhost` by a certificate that it made itself. */
export class Caddy {
  /** `https://localhost:port` and `http://localhost:port`. */
  readonly url: string;
  readonly plainUrl: string;
  /** What its certificate is signed by. */
  ca = '';
  readonly #folder: string;
  #child: ChildProcess | undefined;
  #output = '';

  private constructor(folder: string, ports: { readonly https: number; readonly http: number }) {
    this.#folder = folder;
    this.url = `https://localhost:${ports.https}`;
    this.plainUrl = `http://localhost:${ports.http}`;
  }

  /** Takes its ports; it listens after `start`, since the gateway has to know its address before. */
  static async prepare(): Promise<Caddy> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-caddy-'));
    return new Caddy(folder, { https: await freePort(), http: await freePort() });
  }

  /** @param upstream the api, `http://127.0.0.1:port` */
  async start(upstream: string): Promise<void> {
    const settings = {
      SLUICE_DOMAIN: 'localhost',
      SLUICE_UPSTREAM: new URL(upstream).host,
      SLUICE_HTTPS_PORT: new URL(this.url).port,
      SLUICE_HTTP_PORT: new URL(this.plainUrl).port,
    };
    const child = spawn('caddy', ['run', '--config', caddyfile, '--adapter', 'caddyfile'], {
      env: caddyEnvironment(this.#folder, settings),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-20_000);
      });
    }
    await once(child, 'spawn');
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`caddy ended: ${this.#output}`);
      this.ca = await readFile(join(this.#folder, 'caddy/pki/authorities/local/root.crt'), 'utf8');
      const socket = connect({ port: Number(new URL(this.url).port), servername: 'localhost', ca: this.ca });
      try {
        await once(socket, 'secureConnect');
      } finally {
        socket.destroy();
      }
    });
  }

  async stop(): Promise<void> {
    if (this.#child !== undefined && this.#child.exitCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await exited;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}
