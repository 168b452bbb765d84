import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { held } from '../../support/chat-requests.ts';
import { freePort } from '../../support/free-port.ts';
import { type ApiProcess, type GatewayOptions, type GatewayProcess, TestGateway } from '../../support/gateway.ts';
import { Prometheus, type ScrapeJob } from '../../support/prometheus.ts';

/** A fault, and the alerts that it raises. */
export interface Drill {
  readonly fault: string;
  readonly alerts: readonly string[];
  /** Opens a deployment that is in order. */
  readonly open: (stage: Stage) => Promise<void>;
  /** Begins the fault, which may go on until the stage's signal. */
  readonly begin: (stage: Stage) => Promise<void>;
  /** Ends the fault, as an operator does; what was repeated has ended before. Without it nothing more is to be done. */
  readonly end?: (stage: Stage) => Promise<void>;
}

/** Where Prometheus finds a process's metrics, and for which of its jobs. */
export interface ScrapedTarget {
  readonly job: string;
  readonly address: string;
}

/** As Prometheus is often set up; its own default is a minute. */
const usualInterval = '15s';
const chatPath = '/v1/chat/completions';

/** A gateway, and a real Prometheus that scrapes each of its processes. */
export class Stage {
  readonly #closers: (() => unknown)[] = [];
  readonly #targets = { 'sluice-api': [] as string[], 'sluice-worker': [] as string[] };
  #ending = new AbortController();
  #running: Promise<void>[] = [];
  readonly #jobs: string[] = [];
  #gateway: TestGateway | undefined;
  #prometheus: Prometheus | undefined;

  /** Aborts when the drill, or its fault, is over. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get gateway(): TestGateway {
    if (this.#gateway === undefined) throw new Error('the drill has opened no gateway');
    return this.#gateway;
  }

  get prometheus(): Prometheus {
    if (this.#prometheus === undefined) throw new Error('nothing is scraped yet');
    return this.#prometheus;
  }

  /** Opens the gateway, without processes. */
  async openGateway(options: GatewayOptions = {}): Promise<TestGateway> {
    this.#gateway = await TestGateway.start({ ...options, apis: 0, workers: 0 });
    this.use(() => this.gateway.stop());
    return this.gateway;
  }

  /** Runs at the end of the stage, the last first. */
  use(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** A port for metrics of a role, which Prometheus scrapes whether or not a process listens there. */
  async target(role: 'api' | 'worker'): Promise<string> {
    const port = await freePort();
    this.#targets[`sluice-${role}`].push(`127.0.0.1:${port}`);
    return String(port);
  }

  get targets(): readonly ScrapedTarget[] {
    return Object.entries(this.#targets).flatMap(([job, addresses]) => addresses.map((address) => ({ job, address })));
  }

  async startApi(settings: Record<string, string> = {}): Promise<ApiProcess> {
    return await this.gateway.startApi({ METRICS_PORT: await this.target('api'), ...settings });
  }

  async startWorker(settings: Record<string, string> = {}): Promise<GatewayProcess> {
    return await this.gateway.startWorker({ WORKER_PORT: await this.target('worker'), ...settings });
  }

  /** A connection of the drill's own to the gateway's Redis. */
  redis(): Redis {
    const redis = new Redis(this.gateway.redisUrl);
    this.use(() => redis.disconnect());
    return redis;
  }

  /** Starts Prometheus with these files of rules. */
  async watch(ruleFiles: readonly string[], scrapeInterval = usualInterval): Promise<void> {
    const jobs: ScrapeJob[] = Object.entries(this.#targets)
      .filter(([, targets]) => targets.length > 0)
      .map(([name, targets]) => ({
        ...{ job_name: name, scrape_interval: scrapeInterval, static_configs: [{ targets }] },
      }));
    this.#prometheus = await Prometheus.start(jobs, { ruleFiles });
    this.use(() => this.prometheus.stop());
  }

  /** Sends a request without waiting for more than its head; a failure is what some drills are about. */
  async ask(body: object = held('Hi'), headers: Record<string, string> = {}, path = chatPath): Promise<number> {
    const sent = { method: 'POST', body: JSON.stringify(body), headers, signal: this.signal };
    return await this.gateway.fetch(path, sent).then(
      ({ status }) => status,
      () => 0,
    );
  }

  /** A chat whose answer nobody waits for. */
  async askLater(text = 'Hi'): Promise<void> {
    const sent = { method: 'POST', body: JSON.stringify(held(text)), headers: { prefer: 'respond-async' } };
    const answer = await this.gateway.fetch(chatPath, sent);
    if (answer.status === 202) this.#jobs.push(((await answer.json()) as { id: string }).id);
  }

  /** Does something again and again, so often, until the drill is over; several at a time if it takes long. */
  repeat(perSecond: number, work: () => Promise<unknown>): void {
    const { signal } = this;
    const loop = async (): Promise<void> => {
      while (!signal.aborted) {
        void work().catch(() => undefined);
        await delay(1000 / perSecond, undefined, { signal }).catch(() => undefined);
      }
    };
    this.#running.push(loop());
  }

  /** Ends what is repeated, and what the drill waits for. */
  async endRepeated(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#running);
    this.#running = [];
    this.#ending = new AbortController();
  }

  /** Cancels the chats that nobody waits for. */
  async cancelJobs(): Promise<void> {
    await Promise.all(this.#jobs.map((id) => this.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' })));
  }

  async close(): Promise<void> {
    await this.endRepeated();
    for (const close of this.#closers.reverse()) await close();
  }
}
