import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ensureAccount } from '../../shared/accounts/accounts.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { LoadBalancer } from '../support/faults/load-balancer.ts';
import { freePort } from '../support/free-port.ts';
import { type ApiProcess, type GatewayProcess, TestGateway } from '../support/gateway.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { drawPlan, planText } from './answer-plan.ts';
import { exchange } from './exchange.ts';
import { FaultProxy } from './fault-proxy.ts';
import { CampaignVendor } from './vendor.ts';

const preload = new URL('./host-faults.mjs', import.meta.url).href;

/** What every process of a campaign runs with. */
const settings = {
  SLUICE_DEADLINE_SECONDS: '90',
  SLUICE_BACKGROUND_DEADLINE_SECONDS: '90',
  SLUICE_QUEUE_WAIT_SECONDS: '60',
  SLUICE_SHUTDOWN_SECONDS: '2',
  NODE_OPTIONS: `--import ${preload}`,
};

/** Nano-dollars: more than a campaign can spend. */
const credit = 1e15;

/** Of requests that are no client's. */
export const warmUpMarker = 'warm-up';

/** A caller: an account and one of its keys. */
export interface Caller {
  readonly account: string;
  readonly key: string;
}

/** One process of the deployment, with its own way to Redis, which is started again by whoever kills it. */
export class Role {
  readonly name: string;
  readonly redisLink: FaultProxy;
  /** The way of clients to an api; undefined: a worker. */
  readonly clientLink: FaultProxy | undefined;
  /** What stands before all apis. */
  readonly balancer: LoadBalancer | undefined;
  readonly #start: () => Promise<GatewayProcess | ApiProcess>;
  #process: GatewayProcess | ApiProcess | undefined;
  /** Whether the harness has ended the process that ran last. */
  #isEnded = false;
  /** What ended by itself, with the last it wrote. */
  readonly deaths: string[] = [];
  readonly #outputs: string[] = [];

  constructor(
    name: string,
    links: { redisLink: FaultProxy; clientLink: FaultProxy | undefined; balancer?: LoadBalancer | undefined },
    start: () => Promise<GatewayProcess | ApiProcess>,
  ) {
    this.name = name;
    this.redisLink = links.redisLink;
    this.clientLink = links.clientLink;
    this.balancer = links.balancer;
    this.#start = start;
  }

  /** Starts the process, and again until it is there: it may not start while Redis or the database is away. */
  async start(): Promise<void> {
    for (let round = 0; ; round++) {
      try {
        this.#process = await this.#start();
        break;
      } catch (error) {
        if (round === 40) throw error;
        // As what runs processes does: the fault that kept it from starting may last some seconds.
        await delay(250);
      }
    }
    this.#isEnded = false;
    const { child } = this.#process;
    child.once('exit', (code, signal) => {
      if (this.#isEnded) return;
      const output = this.#process?.output() ?? '';
      this.#outputs.push(output);
      this.deaths.push(`${this.name} ended by itself (${code ?? signal}): ${lastWords(output)}`);
      void this.start().catch(() => undefined);
    });
    if (this.clientLink !== undefined && 'url' in this.#process) {
      this.clientLink.targetPort = Number(new URL(this.#process.url).port);
      this.balancer?.add(this.#process.url);
    }
  }

  async kill(): Promise<void> {
    this.#isEnded = true;
    this.#outputs.push(this.#process?.output() ?? '');
    await this.#process?.kill();
  }

  /** Ends the process as a deploy does, and starts its successor once it is gone. @throws Error if it did not end in order */
  async replace(): Promise<void> {
    this.#isEnded = true;
    const code = await this.#process?.stop();
    const output = this.#process?.output() ?? '';
    this.#outputs.push(output);
    if (code !== 0) throw new Error(`${this.name} ended with ${code}: ${lastWords(output)}`);
    if (this.#process !== undefined && 'url' in this.#process) this.balancer?.remove(this.#process.url);
    await this.start();
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.child.kill(signal);
  }

  /** Changes the host that the process believes to be on; see host-faults.mjs. */
  tell(message: { clockShiftMs: number } | { isDiskFull: boolean }): void {
    if (this.#process?.child.connected) this.#process.child.send(message);
  }

  /** All it has written, by all its processes. */
  output(): string {
    return [...this.#outputs, this.#process?.output() ?? ''].join('\n');
  }
}

/** The errors that a process has logged, and the last it has said. */
function lastWords(output: string): string {
  const errors = output.split('\n').filter((line) => /"level":[56]0/.test(line));
  return [...errors.slice(-5).map((line) => line.slice(0, 2000)), output.slice(-1000)].join('\n');
}

export interface DeploymentOptions {
  readonly apis: number;
  readonly workers: number;
  /** Folder of the build to run; left out: the usual one. */
  readonly product?: string | undefined;
  /** Its database on Postgres, instead of the one that the suites use. */
  readonly databaseUrl?: string | undefined;
  /** Settings of every process, over those of a campaign. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** Puts a load balancer before the apis, which looks at each so often, in ms; left out: clients choose an api. */
  readonly balancerCheckMs?: number | undefined;
}

/** A whole gateway whose every part can be made to fail. */
export class Deployment {
  readonly vendor: CampaignVendor;
  readonly redisServer: TestRedis;
  /** For faults and for looking at what is left; past all proxies. */
  readonly redis: Redis;
  readonly gateway: TestGateway;
  readonly apis: Role[] = [];
  readonly workers: Role[] = [];
  readonly callers: Caller[] = [];
  #balancer: LoadBalancer | undefined;

  private constructor(vendor: CampaignVendor, redisServer: TestRedis, gateway: TestGateway) {
    this.vendor = vendor;
    this.redisServer = redisServer;
    this.gateway = gateway;
    this.redis = new Redis(redisServer.url);
    this.redis.on('error', () => undefined);
  }

  static async start(options: DeploymentOptions): Promise<Deployment> {
    const vendor = await CampaignVendor.start();
    const redis = await startRedis({ aof: true });
    const { product, databaseUrl, balancerCheckMs } = options;
    const gateway = await TestGateway.start({
      ...{ apis: 0, workers: 0, redisUrl: redis.url },
      settings: { ...settings, SANDBOX_BASE_URL: vendor.baseUrl, ...options.settings },
      ...(product !== undefined && { product }),
      ...(databaseUrl !== undefined && { databaseUrl }),
    });
    const deployment = new Deployment(vendor, redis, gateway);
    if (balancerCheckMs !== undefined) deployment.#balancer = await LoadBalancer.start(balancerCheckMs);
    await mkdir(join(gateway.dataDir, 'blobs-there'));
    await writeFile(join(gateway.dataDir, 'blobs-broken'), '');
    await deployment.restoreBlobs();
    const { apis, workers } = deployment;
    for (let index = 0; index < options.apis; index++) apis.push(await deployment.#makeApi(index));
    for (let index = 0; index < options.workers; index++) workers.push(await deployment.#makeWorker(index));
    await Promise.all(deployment.roles.map((role) => role.start()));
    await deployment.#makeCallers();
    await deployment.#warmUp();
    return deployment;
  }

  /** Health checks of apis that were not answered with 200: those of replaced processes, and others. */
  get failedChecks(): readonly string[] {
    return this.#balancer?.failedChecks ?? [];
  }

  get roles(): Role[] {
    return [...this.apis, ...this.workers];
  }

  /** Where clients find the api of this number, or any if a load balancer chooses. */
  apiUrl(index: number): string {
    if (this.#balancer !== undefined) return this.#balancer.url;
    return `http://127.0.0.1:${this.apis[index % this.apis.length]?.clientLink?.port}`;
  }

  get blobFolder(): string {
    return join(this.gateway.dataDir, 'blobs');
  }

  /** Makes everything fail that is done in the folder of the blobs, for root, too: it is a link, and leads to a file then. */
  async breakBlobs(): Promise<void> {
    await this.#linkBlobs('blobs-broken');
  }

  async restoreBlobs(): Promise<void> {
    await this.#linkBlobs('blobs-there');
  }

  /** In one step: a process that starts must never find nothing there, and make a folder of its own. */
  async #linkBlobs(target: string): Promise<void> {
    const link = join(this.gateway.dataDir, 'blobs-link');
    await symlink(target, link);
    await rename(link, this.blobFolder);
  }

  async stop(): Promise<void> {
    await this.#balancer?.close();
    await Promise.all(this.roles.map((role) => role.kill()));
    await this.gateway.stop();
    this.redis.disconnect();
    for (const { redisLink, clientLink } of this.roles) {
      await redisLink.close();
      await clientLink?.close();
    }
    await this.vendor.close();
    await this.redisServer.stop();
  }

  async #makeCallers(): Promise<void> {
    const db = await openDatabase(this.gateway);
    try {
      for (const account of ['first', 'second', 'third']) {
        await ensureAccount(db, { id: account, name: account }, { amount: credit, note: 'a test', createdBy: 'test' });
        for (const name of ['one', 'two']) {
          const key = await makeApiKey(this.gateway, { accountId: account, name });
          this.callers.push({ account, key });
        }
      }
    } finally {
      await db.destroy();
    }
  }

  /** Lets each api see each key once: from then on it knows them, though the database is away. */
  async #warmUp(): Promise<void> {
    const plan = { ...drawPlan(new SeededRandom(1), warmUpMarker), tokens: 1, firstMs: 0, ending: 'whole' } as const;
    const body = { model: 'sandbox-chat', messages: [{ role: 'user', content: planText(plan) }] };
    const asked = this.callers.flatMap(({ key }) =>
      this.apis.map((_, index) =>
        exchange(this.apiUrl(index), '/v1/chat/completions', key, { body, patienceMs: 30_000 }),
      ),
    );
    const failed = (await Promise.all(asked)).find(({ status }) => status !== 200);
    if (failed !== undefined) throw new Error(`the deployment does not work: ${failed.status} ${failed.bytes}`);
  }

  async #makeApi(index: number): Promise<Role> {
    const redisLink = await FaultProxy.start(this.redisServer.port);
    // The port is not known before the start.
    const clientLink = await FaultProxy.start(await freePort());
    const balancer = this.#balancer;
    const publicUrl = balancer?.url ?? `http://127.0.0.1:${clientLink.port}`;
    const own = { REDIS_URL: `redis://127.0.0.1:${redisLink.port}`, PUBLIC_URL: publicUrl };
    return new Role(`api ${index}`, { redisLink, clientLink, balancer }, () => this.gateway.startApi(own));
  }

  async #makeWorker(index: number): Promise<Role> {
    const redisLink = await FaultProxy.start(this.redisServer.port);
    const own = { REDIS_URL: `redis://127.0.0.1:${redisLink.port}` };
    return new Role(`worker ${index}`, { redisLink, clientLink: undefined }, () => this.gateway.startWorker(own));
  }
}
