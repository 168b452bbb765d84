import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import type { z } from 'zod';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import type { configurationFile } from '../../shared/config/file/configuration-file.ts';
import type { DatabaseSettings } from '../../shared/database/database.ts';
import { databaseSettings } from './database-settings.ts';
import { freePort } from './free-port.ts';
import { type ApiProcess, type GatewayProcess, startProcess } from './gateway-process.ts';
import { startRedis, type TestRedis } from './redis.ts';
import type { TestRedisCluster } from './redis-cluster.ts';

export { type ApiProcess, type GatewayProcess, linesOf } from './gateway-process.ts';

/** The built product; `SLUICE_TEST_DIST` points at another build of it, in single modules as `tsc` makes them. */
export const builtProduct = process.env.SLUICE_TEST_DIST ?? fileURLToPath(new URL('../../dist/', import.meta.url));

/** The sources, which run as they are: for suites about files, which a bundle has no more. */
export const sourceProduct = fileURLToPath(new URL('../../', import.meta.url));

/** Loads a module of the product, such as `shared/jobs/begin`: its source, or that other build's. */
export function loadProduct<Module>(path: string): Promise<Module> {
  const build = process.env.SLUICE_TEST_DIST;
  return import(build === undefined ? new URL(`../../${path}.ts`, import.meta.url).href : join(build, `${path}.js`));
}

/** The suites start processes by the thousand. To collect garbage while they start, nearly all of which stays, is an eighth of that. */
const forQuickStart = ['--min-semi-space-size=8'];

/** The operator's file, as plain data. */
export type Configuration = z.input<typeof configurationFile>;

/** For suites about what one call of a vendor comes to: a failed one is not followed by another. */
export const oneAttempt: Configuration = { routing: { attempts: 1 } };

export interface GatewayOptions {
  /** Settings for every process, over the defaults. */
  settings?: Record<string, string>;
  apis?: number;
  workers?: number;
  /** Redis to use instead of one of the gateway's own; it is not stopped with it. */
  redisUrl?: string;
  /** What the operator's file (`SLUICE_CONFIG`) says; left out: there is none. */
  configuration?: Configuration;
  /** Its database on Postgres, instead of the one that the suites use. */
  databaseUrl?: string;
  /** Keep Redis's data on disk, so that it survives a kill. */
  aof?: boolean;
  /** Folder of the build to run, instead of the usual one; or `sourceProduct`. */
  product?: string;
  /** Node's flags for its processes, instead of `forQuickStart`. */
  nodeFlags?: readonly string[];
}

/** Writes the operator's file into a gateway's data folder, and answers the setting that names it. */
async function configurationSetting(
  dataDir: string,
  configuration: Configuration | undefined,
): Promise<Record<string, string>> {
  if (configuration === undefined) return {};
  const file = join(dataDir, 'sluice.yaml');
  // All JSON is YAML.
  await writeFile(file, JSON.stringify(configuration));
  return { SLUICE_CONFIG: file };
}

/** The gateway of this process whose first api listens on `SLUICE_TEST_PORT`. */
let onTestPort: TestGateway | undefined;

/** Which Redis a gateway of the suites gets for itself: `SLUICE_TEST_REDIS` names it, and one server is the default. */
const isOnCluster = process.env.SLUICE_TEST_REDIS === 'cluster';

async function startOwnRedis({
  redisUrl,
  aof = false,
}: GatewayOptions): Promise<TestRedis | TestRedisCluster | undefined> {
  if (redisUrl !== undefined) return undefined;
  if (!isOnCluster) return await startRedis({ aof });
  // What hundreds of suites would load for nothing.
  const { startRedisCluster } = await import('./redis-cluster.ts');
  return await startRedisCluster();
}

/** A whole gateway for one suite: Redis, the sandbox vendor with its journal, api and worker processes, a data folder. */
export class TestGateway {
  readonly apiKey = `sk-sluice-${randomBytes(32).toString('base64url')}`;
  readonly apis: ApiProcess[] = [];
  readonly workers: GatewayProcess[] = [];
  /** Its own Redis, with what only a single server has. */
  readonly redis: TestRedis | undefined;
  readonly redisUrl: string;
  readonly sandbox: RunningSandbox;
  readonly dataDir: string;
  /** Its database on Postgres; undefined: SQLite, in the data folder. */
  readonly databaseUrl: string | undefined;
  /** Folder of the build that processes run which are started from now on. */
  product: string;
  readonly #ownRedis: TestRedis | TestRedisCluster | undefined;
  readonly #settings: Record<string, string>;
  readonly #nodeFlags: readonly string[];

  private constructor(parts: {
    ownRedis: TestRedis | TestRedisCluster | undefined;
    redisUrl: string;
    sandbox: RunningSandbox;
    database: DatabaseSettings;
    settings: Record<string, string>;
    product: string;
    nodeFlags: readonly string[];
  }) {
    this.#ownRedis = parts.ownRedis;
    this.redis = isOnCluster ? undefined : (parts.ownRedis as TestRedis | undefined);
    this.redisUrl = parts.redisUrl;
    this.sandbox = parts.sandbox;
    this.dataDir = parts.database.dataDir;
    this.databaseUrl = parts.database.databaseUrl;
    this.#settings = parts.settings;
    this.product = parts.product;
    this.#nodeFlags = parts.nodeFlags;
  }

  static async start(options: GatewayOptions = {}): Promise<TestGateway> {
    const ownRedis = await startOwnRedis(options);
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-data-'));
    const gateway = new TestGateway({
      ownRedis,
      redisUrl: options.redisUrl ?? (ownRedis as TestRedis).url,
      sandbox: await startSandbox({ port: 0, journal: true }),
      database:
        options.databaseUrl === undefined
          ? await databaseSettings(dataDir)
          : { dataDir, databaseUrl: options.databaseUrl },
      settings: { ...(await configurationSetting(dataDir, options.configuration)), ...options.settings },
      product: options.product ?? builtProduct,
      nodeFlags: options.nodeFlags ?? forQuickStart,
    });
    const started = await Promise.allSettled([
      ...Array.from({ length: options.apis ?? 1 }, () => gateway.startApi()),
      ...Array.from({ length: options.workers ?? 1 }, () => gateway.startWorker()),
    ]);
    const failed = started.find((result) => result.status === 'rejected');
    if (failed === undefined) return gateway;
    await gateway.stop();
    throw failed.reason;
  }

  /**
   * Base URL of the first api, without `/v1`; or of what stands before it, a proxy that checks its answers, say: when
   * `SLUICE_TEST_BASE_URL` is set, that proxy's upstream is the port of 127.0.0.1 that `SLUICE_TEST_PORT` names.
   */
  get url(): string {
    const before = onTestPort === this ? process.env.SLUICE_TEST_BASE_URL : undefined;
    return before ?? (this.apis[0] as ApiProcess).url;
  }

  /** The official client against an api of this gateway (the first by default); retries are off. */
  client(options: { url?: string; apiKey?: string; maxRetries?: number; timeout?: number } = {}): OpenAI {
    return new OpenAI({
      baseURL: `${options.url ?? this.url}/v1`,
      apiKey: options.apiKey ?? this.apiKey,
      maxRetries: options.maxRetries ?? 0,
      ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
    });
  }

  /** `fetch` with the key, on a path such as `/v1/models`. */
  fetch(path: string, init: RequestInit & { url?: string } = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${this.apiKey}`);
    if (init.body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
    return fetch(`${init.url ?? this.url}${path}`, { ...init, headers });
  }

  /** Settings that a process of this gateway gets. */
  settings(more: Record<string, string> = {}): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      HOST: '127.0.0.1',
      REDIS_URL: this.redisUrl,
      SLUICE_DATA_DIR: this.dataDir,
      // An empty one counts as unset.
      DATABASE_URL: this.databaseUrl ?? '',
      SLUICE_BOOTSTRAP_KEY: this.apiKey,
      // Its name in older builds.
      SLUICE_API_KEY: this.apiKey,
      // Suites that want it turn it on.
      SLUICE_CHECK_KEYS: 'off',
      SLUICE_SANDBOX: 'priced',
      SANDBOX_BASE_URL: `${this.sandbox.url}/v1`,
      // No suite but those about it waits for a load balancer.
      SLUICE_LAME_DUCK_SECONDS: '0',
      SLUICE_SHUTDOWN_SECONDS: '5',
      ...this.#settings,
      ...more,
    };
  }

  async startApi(settings: Record<string, string> = {}): Promise<ApiProcess> {
    const port = this.#takeTestPort() ?? (await freePort());
    const started = await this.#launch('api/main.js', { PORT: String(port), ...settings });
    const api = Object.assign(started, { url: `http://127.0.0.1:${port}` });
    this.apis.push(api);
    return api;
  }

  /** A process that does the ledger's work alone, for apis with `SLUICE_LEDGER=off`. */
  async startLedger(settings: Record<string, string> = {}): Promise<GatewayProcess> {
    const ledger = await this.#launch('api/ledger/main.js', settings);
    this.workers.push(ledger);
    return ledger;
  }

  /** @param capabilities what it works at; all, where none is named */
  async startWorker(
    settings: Record<string, string> = {},
    ...capabilities: readonly Capability[]
  ): Promise<GatewayProcess> {
    const worker = await this.#launch('workers/main.js', settings, capabilities);
    this.workers.push(worker);
    return worker;
  }

  /** The port that is known to what stands before the gateway, if no other gateway has it now. */
  #takeTestPort(): number | undefined {
    const port = process.env.SLUICE_TEST_PORT;
    if (port === undefined || onTestPort !== undefined) return undefined;
    onTestPort = this;
    return Number(port);
  }

  async stop(): Promise<void> {
    if (onTestPort === this) onTestPort = undefined;
    await Promise.all([...this.apis, ...this.workers].map((process) => process.kill()));
    await this.sandbox.close();
    await this.#ownRedis?.stop();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  #launch(file: string, settings: Record<string, string>, words: readonly string[] = []): Promise<GatewayProcess> {
    const program = this.product === sourceProduct ? file.replace(/\.js$/, '.ts') : file;
    return startProcess({
      program: join(this.product, program),
      words,
      settings: this.settings(settings),
      nodeFlags: this.#nodeFlags,
      keepsAnswers: file.startsWith('api/') && this.product === builtProduct,
    });
  }
}
