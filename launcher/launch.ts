import { once } from 'node:events';
import { createServer } from 'node:net';
import { ensureApiKey } from '../shared/accounts/api-keys.ts';
import { exampleModels } from '../shared/catalogue/example-models.ts';
import { type Config, ConfigError, childEnvironment, readSettingNotices } from '../shared/config/config.ts';
import { everyAddressNotice, listeningUrls, ownBaseUrls } from '../shared/config/own-addresses.ts';
import { refuseOwnVendors } from '../shared/config/vendor-settings.ts';
import { type Database, ensureDataDir, openDatabase } from '../shared/database/database.ts';
import { connectRedis } from '../shared/redis/redis.ts';
import { checkRedisMemory } from '../shared/redis/redis-memory.ts';
import { codeOf } from '../shared/runtime/error-code.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { tightenDataDir } from '../shared/runtime/private-files.ts';
import { graceMs } from '../shared/runtime/shutdown.ts';
import { withTimeout } from '../shared/runtime/with-timeout.ts';
import { lockDataDir } from './data-lock.ts';
import { type EmbeddedRedis, startEmbeddedRedis } from './embedded-redis.ts';
import { firstKey } from './first-key.ts';
import { firstOperator, isFirstOperator } from './first-operator.ts';
import { countedPorts, gatewayPrograms, type Programs } from './gateway-programs.ts';
import { holdBuild } from './hold-build.ts';
import { type Program, StartError, SupervisedChild } from './supervised-child.ts';
import type { Welcome } from './welcome.ts';

/** A busy machine with a cold disk has taken 38 s. A child that ends meanwhile is noticed at once. */
const startDeadlineMs = 90_000;
const sandboxCloseMs = 3000;
const redisCloseMs = 15_000;
/** Extra time for a child, beyond its own shutdown time, to react and exit: it has `graceMs` of it for itself. */
const closeGraceMs = graceMs + 2000;

export interface LaunchOptions {
  readonly config: Config;
  readonly programs: Programs;
  /** Receives operator warnings, one sentence at a time. */
  readonly warn: (sentence: string) => void;
}

/** Ends one part, within the given time. */
type Closer = (limitMs: number) => Promise<void> | void;

/** Everything a start has launched so far; closed in reverse order. */
export class Launch {
  readonly #options: LaunchOptions;
  readonly #closers: Closer[] = [];
  /** By role: `api`, `worker`, `sandbox`. */
  readonly #children = new Map<string, SupervisedChild[]>();
  /** Children that reload the settings on request. */
  readonly #reloading: SupervisedChild[] = [];
  readonly #stopped = new AbortController();
  /** Where the apis listen. */
  #ownUrls: readonly string[] = [];
  #closed: Promise<void> | undefined;

  constructor(options: LaunchOptions) {
    this.#options = options;
  }

  /**
   * Starts Redis (unless one is configured), the sandbox (if enabled), the worker and the api processes, and resolves when these
   * accept connections. On an error the caller calls `close`.
   * @throws ConfigError or StartError.
   */
  async start(onRedisLost: () => void): Promise<Welcome> {
    const { config, programs, warn } = this.#options;
    holdBuild(programs.buildLock);
    await ensureDataDir(config.dataDir);
    // The api warns of permissions that cannot be fixed.
    await tightenDataDir(config.dataDir);
    this.#closers.push(lockDataDir(config.dataDir));
    const notices = readSettingNotices();
    for (const { sentence } of notices) warn(sentence);
    const port = await checkPort(config);
    // One of an interface is in no URL.
    this.#ownUrls = config.host.includes('%') ? [] : listeningUrls(config.host, port);
    refuseOwnVendors(config.vendors, this.#ownUrls);
    for (const [setting, other] of countedPorts(config)) await checkPort({ ...config, port: other }, setting);
    const notice = everyAddressNotice({ ...config, port });
    if (notice !== undefined) warn(notice);
    const redis = await this.#startRedis(onRedisLost);
    const { key, keyFile, operator } = await this.#withDatabase(async (db) => ({
      ...(await this.#ensureKey(db)),
      operator: config.admin === undefined ? await firstOperator(db, config.dataDir) : ('environment' as const),
    }));
    const settings = {
      // Reported above: an empty value counts as unset, so the children do not report it again.
      ...Object.fromEntries(notices.map(({ name }) => [name, ''])),
      REDIS_URL: redis.url,
      SLUICE_DATA_DIR: config.dataDir,
      PORT: String(port),
      // Keeps the welcome readable: request logs only if LOG_LEVEL is set.
      LOG_LEVEL: childEnvironment({}).LOG_LEVEL || 'warn',
      SLUICE_LAME_DUCK_SECONDS: String(config.lameDuckMs / 1000),
      SLUICE_SHUTDOWN_SECONDS: String(config.shutdownMs / 1000),
      ...(await this.#startSandbox()),
    };
    const baseUrl = await this.#startGateway(settings, adminSettings(operator));
    const vendors = Object.keys(config.vendors);
    const sandbox = config.sandbox && config.vendors.sandbox === undefined;
    return {
      baseUrl,
      key,
      keyFile,
      operator: operator === 'environment' || (await this.#withDatabase(isFirstOperator)) ? operator : 'removed',
      model: exampleModels(config).chat,
      sandbox,
      vendors: sandbox ? [...vendors, 'sandbox'] : vendors,
      redis: redis.description,
      dataDir: config.dataDir,
      apiProcesses: config.apiProcesses,
      workerProcesses: config.workerProcesses,
    };
  }

  /** Ends the processes of a role (`api`, `worker`, `sandbox`) and restarts them at once. One that is not running stays stopped. */
  async restart(role: string): Promise<void> {
    const children = this.#children.get(role) ?? [];
    await Promise.all(children.map((child) => child.restart(this.#options.config.shutdownMs)));
  }

  /**
   * Makes api and worker reload their settings.
   * @param vendors those that they will have
   * @throws ConfigError if one of these is the gateway itself
   */
  reload({ vendors }: Pick<Config, 'vendors'>): void {
    refuseOwnVendors(vendors, this.#ownUrls);
    for (const child of this.#reloading) child.reload();
  }

  /**
   * Stops everything: the api first, which still needs the others to finish its requests. Each part has its own deadline,
   * limited to `limitMs`.
   */
  close(limitMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#stopped.abort(new StartError('Stopped while starting.'));
    this.#closed ??= (async () => {
      for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) await closer(limitMs);
    })();
    return this.#closed;
  }

  async #startRedis(onLost: () => void): Promise<{ url: string; description: string }> {
    const { config, warn } = this.#options;
    if (config.redisUrl !== undefined) {
      const redis = await connectRedis(config.redisUrl, createLogger('silent', 'launcher').log, config.redisTls);
      try {
        const checked = checkRedisMemory(redis.client, config.allowsEviction);
        for (const warning of (await withTimeout(checked, startDeadlineMs)) ?? []) warn(warning);
      } finally {
        await redis.close();
      }
      return { url: config.redisUrl, description: 'yours, by REDIS_URL' };
    }
    const redis = await startEmbeddedRedis(config.dataDir, config.redisMaxMemory);
    this.#add((limitMs) => redis.stop(Math.min(redisCloseMs, limitMs)));
    void redis.ended.then(() => {
      if (!this.#stopped.signal.aborted) onLost();
    });
    if (!redis.durable) warn(inMemoryWarning);
    return { url: redis.url, description: describeRedis(redis) };
  }

  /** Works on the database, which the launcher keeps open no longer than that. */
  async #withDatabase<Result>(work: (db: Database) => Promise<Result>): Promise<Result> {
    const db = await openDatabase(this.#options.config);
    try {
      return await work(db);
    } finally {
      await db.destroy();
    }
  }

  async #ensureKey(db: Database): Promise<Pick<Welcome, 'key' | 'keyFile'>> {
    const { config, warn } = this.#options;
    if (config.apiKey !== undefined) {
      const outcome = await ensureApiKey(db, config.apiKey);
      if (outcome === 'revoked')
        warn('SLUICE_BOOTSTRAP_KEY is a key that was revoked, so requests with it are refused.');
      return { key: 'environment', keyFile: '' };
    }
    const { text, file, revoked } = await firstKey(db, config.dataDir);
    return { key: revoked ? 'revoked' : { text }, keyFile: file };
  }

  async #startSandbox(): Promise<Record<string, string>> {
    const { config, programs } = this.#options;
    if (!config.sandbox || config.vendors.sandbox !== undefined) return {};
    const args = (port: number) => ['--port', String(port)];
    const child = this.#startChild(
      'sandbox',
      { name: 'sandbox', file: programs.sandbox, args: args(0), quiet: true, settings: {} },
      sandboxCloseMs,
    );
    const { port } = await child.listening(startDeadlineMs);
    if (port === undefined) throw new StartError('The sandbox did not say where it listens.');
    child.supervise({ args: args(port) });
    return { SANDBOX_BASE_URL: `http://127.0.0.1:${port}/v1` };
  }

  /**
   * Starts the worker and the api processes.
   * @param apiSettings settings for the apis only
   */
  async #startGateway(settings: Record<string, string>, apiSettings: Record<string, string>): Promise<string> {
    const { config, programs } = this.#options;
    const closeMs = config.lameDuckMs + config.shutdownMs + closeGraceMs;
    const { workerPrograms, apiPrograms } = gatewayPrograms(config, programs, settings, apiSettings);
    const workers = workerPrograms.map((program) => this.#startChild('worker', program, closeMs));
    this.#reloading.push(...workers);
    for (const worker of workers) worker.supervise();
    const startApis = async (some: readonly Program[]): Promise<string | undefined> => {
      const started = some.map((program) => this.#startChild('api', program, closeMs));
      this.#reloading.push(...started);
      const messages = await Promise.all(started.map((api) => api.listening(startDeadlineMs)));
      for (const api of started) api.supervise();
      return messages[0]?.url;
    };
    // One of them makes the tables and the first operator: the others find both.
    const url = await startApis(apiPrograms.slice(0, 1));
    await startApis(apiPrograms.slice(1));
    return url ?? ownBaseUrls({ ...config, port: Number(settings.PORT) })[0];
  }

  /** Starts a process of a role. All those of a role are stopped together. */
  #startChild(role: string, program: Program, closeMs: number): SupervisedChild {
    const nodeFlags = [...(this.#options.programs.nodeFlags ?? []), ...(program.nodeFlags ?? [])];
    const child = new SupervisedChild({ ...program, nodeFlags }, this.#options.warn);
    const children = this.#children.get(role) ?? [];
    children.push(child);
    if (children.length > 1) {
      this.#stopped.signal.throwIfAborted();
      return child;
    }
    this.#children.set(role, children);
    this.#add(async (limitMs) => {
      await Promise.all(children.map((started) => started.stop(Math.min(closeMs, limitMs))));
    });
    return child;
  }

  /** `close` may have finished during the start: then the start is aborted here, and the part ends with the process. */
  #add(closer: Closer): void {
    this.#closers.push(closer);
    this.#stopped.signal.throwIfAborted();
  }
}

/** The settings from which the api creates the first operator. */
function adminSettings(operator: Welcome['operator']): Record<string, string> {
  if (typeof operator === 'string') return {};
  return { SLUICE_ADMIN_EMAIL: operator.email, SLUICE_ADMIN_PASSWORD: operator.password };
}

const inMemoryWarning =
  'No redis-server or valkey-server is on the PATH: requests are queued in memory, which is for trying out only and forgets everything when it stops.';

function describeRedis(redis: EmbeddedRedis): string {
  return `${redis.program}${redis.durable ? ', embedded, its data kept' : ''}`;
}

/**
 * Checks that the port is free and returns it. A process that found it taken would start again and again.
 * @param setting the one that names it
 * @throws ConfigError if it is not.
 */
async function checkPort({ host, port }: Pick<Config, 'host' | 'port'>, setting = 'PORT'): Promise<number> {
  const server = createServer();
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EADDRINUSE') {
      throw new ConfigError(`Port ${port} on ${host} is in use: stop what uses it, or set ${setting} to another one.`);
    }
    if (code === 'EACCES') throw new ConfigError(`Port ${port} may not be used: set ${setting} to one above 1023.`);
    throw new ConfigError(`HOST ${host} cannot be listened on: ${(error as Error).message}.`);
  }
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address === null || typeof address === 'string' ? port : address.port;
}
