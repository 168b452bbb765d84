import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

const readyDeadlineMs = 60_000;
const debianFolder = '/usr/lib/postgresql';
/** Only part of the socket's name: every server has a folder of its own. */
const port = 5432;

/** Nothing that a test writes outlives it, so nothing need reach the disk. */
const serverSettings = {
  listen_addresses: '',
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  shared_buffers: '32MB',
  max_connections: '200',
};

export interface TestPostgresOptions {
  /** Further settings of the server, such as `{ shared_buffers: '1GB' }`. */
  settings?: Readonly<Record<string, string>>;
}

/** A Postgres server of a test's own, on a Unix socket in a folder of its own. It ends with the process at the latest. */
export interface TestPostgres {
  /** Makes a database and answers its URL. */
  createDatabase(): Promise<string>;
  /** Stops all its processes (SIGSTOP) until `resume`: connections stay open, and nobody answers. */
  pause(): void;
  resume(): void;
  /** Ends the server as its administrator would, its connections cut. */
  shutDown(): Promise<void>;
  /** Brings back a server that was shut down, with all it had; another one stays as it is. */
  start(): Promise<void>;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
}

/** The server refuses to run as root: Debian's own user stands in. */
function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

/** The folder of the newest version's programs. @throws Error when Debian's package is not installed. */
function programs(): string {
  const [newest] = readdirSync(debianFolder).sort((one, other) => Number(other) - Number(one));
  if (newest === undefined) throw new Error(`no Postgres in ${debianFolder}`);
  return join(debianFolder, newest, 'bin');
}

class PostgresServer implements TestPostgres {
  readonly #folder: string;
  readonly #bin = programs();
  readonly #user = serverUser();
  readonly #settings: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #databases = 0;

  private constructor(folder: string, settings: Readonly<Record<string, string>>) {
    this.#folder = folder;
    this.#settings = { ...serverSettings, unix_socket_directories: folder, ...settings };
    process.on('exit', this.#endNow);
  }

  static async open({ settings = {} }: TestPostgresOptions): Promise<PostgresServer> {
    const server = new PostgresServer(await mkdtemp(join(tmpdir(), 'sluice-test-postgres-')), settings);
    if (server.#user !== undefined) await chown(server.#folder, server.#user.uid, server.#user.gid);
    const cluster = ['--pgdata', server.#data, '--username', 'sluice', '--auth', 'trust', '--encoding', 'UTF8'];
    server.#run('initdb', [...cluster, '--no-locale', '--no-sync', '--wal-segsize', '1']);
    await server.start();
    return server;
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  #url(database: string): string {
    return `postgres://sluice@localhost:${port}/${database}?host=${encodeURIComponent(this.#folder)}`;
  }

  #run(program: string, args: readonly string[]): void {
    execFileSync(join(this.#bin, program), args, { ...this.#user, cwd: this.#folder, stdio: 'pipe' });
  }

  async createDatabase(): Promise<string> {
    const name = `database_${++this.#databases}`;
    await this.#ask(`create database ${name}`);
    return this.#url(name);
  }

  async #ask(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url('postgres'), connectionTimeoutMillis: 5000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query(sql);
    } finally {
      await client.end();
    }
  }

  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const settings = Object.entries(this.#settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const log = openSync(join(this.#folder, 'log'), 'a');
    const user = this.#user;
    const as = user === undefined ? [] : [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
    const server = [join(this.#bin, 'postgres'), '-D', this.#data, '-p', String(port), ...settings];
    // A test process that is killed takes its server along.
    const child = spawn('setpriv', [...as, '--pdeathsig', 'SIGQUIT', ...server], {
      cwd: this.#folder,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    // A suite ends without having to end the server that it shares with others of its process.
    child.unref();
    this.#child = child;
    const deadline = Date.now() + readyDeadlineMs;
    for (let isReady = false; !isReady; ) {
      isReady = await this.#ask('select 1').then(
        () => true,
        () => false,
      );
      if (isReady) break;
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`Postgres did not start: ${readFileSync(join(this.#folder, 'log'), 'utf8').slice(-2000)}`);
      }
      await delay(20);
    }
  }

  /** The first process, which takes connections, and those it has for each of them and for itself. */
  #signal(name: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
    for (const each of [pid, ...children.map(Number)]) {
      try {
        process.kill(each, name);
      } catch (error) {
        // One of a connection may have ended just now.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  }

  pause(): void {
    this.#signal('SIGSTOP');
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  async shutDown(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    child.ref();
    const exit = once(child, 'exit');
    this.resume();
    // Its fast shutdown: open transactions are rolled back, connections closed.
    child.kill('SIGINT');
    await exit;
    this.#child = undefined;
  }

  async stop(): Promise<void> {
    await this.shutDown();
    process.off('exit', this.#endNow);
    await rm(this.#folder, { recursive: true, force: true });
  }

  readonly #endNow = (): void => {
    if (this.#child !== undefined && this.#child.exitCode === null) {
      this.resume();
      this.#run('pg_ctl', ['stop', '--pgdata', this.#data, '--mode', 'immediate', '--wait']);
    }
    rmSync(this.#folder, { recursive: true, force: true });
  };
}

/** Starts a server of Debian's package with a new cluster. @throws Error when it does not answer within a minute. */
export async function startPostgres(options: TestPostgresOptions = {}): Promise<TestPostgres> {
  return await PostgresServer.open(options);
}

let shared: Promise<TestPostgres> | undefined;

/** The server that all suites of this process share; started by the first that asks. */
export function sharedPostgres(): Promise<TestPostgres> {
  shared ??= startPostgres();
  return shared;
}
