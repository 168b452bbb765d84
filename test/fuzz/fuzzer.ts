import { readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { eventually } from '../support/eventually.ts';
import { type ApiProcess, TestGateway } from '../support/gateway.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import type { Edit } from './edits.ts';
import { complaintOf } from './judge.ts';
import { drawRequest, everyKind, type FuzzRequest, toWire } from './requests.ts';
import { type Sample, samples } from './samples.ts';
import { send } from './send.ts';
import { makeTenant, operatorSettings, renewed, type Tenant } from './tenants.ts';
import { startRefusingVendor, wiredConfiguration, wiredSamples } from './vendor-wires.ts';

export interface FuzzOptions {
  readonly seed?: number | undefined;
  readonly requests: number;
  /** Folder of the build to run; left out: the usual one. */
  readonly product?: string | undefined;
  /** Requests at a time. */
  readonly lanes: number;
  /** Which samples are used; left out: all. */
  readonly only?: ((sample: Sample) => boolean) | undefined;
}

/** A way to break the gateway. */
export interface Finding {
  readonly route: string;
  /** The smallest change that does it; empty: the sample as it is. */
  readonly edits: readonly string[];
  readonly complaint: string;
  /** What the gateway has logged of it. */
  readonly stack: string;
  /** How often it came up in all. */
  times: number;
}

export interface FuzzReport {
  readonly seed: number;
  readonly sent: number;
  readonly findings: readonly Finding[];
  readonly statuses: Readonly<Record<string, number>>;
  /** Of the api in MiB: once warm, and at the end. */
  readonly memory: { readonly warm: number; readonly end: number };
  readonly seconds: number;
}

const patienceMs = 30_000;
/** What requests have deleted or cancelled is made anew. */
const renewEvery = 200;

/** Sends valid requests with changes, and keeps each distinct failure once. */
export class Fuzzer {
  readonly #gateway: TestGateway;
  readonly #random: SeededRandom;
  readonly #options: FuzzOptions;
  readonly #findings = new Map<string, Finding>();
  readonly #statuses: Record<string, number> = {};
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  #tenant: Tenant;
  #sent = 0;
  #restarting: Promise<void> | undefined;

  private constructor(gateway: TestGateway, tenant: Tenant, options: FuzzOptions) {
    this.#gateway = gateway;
    this.#tenant = tenant;
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  static async run(options: FuzzOptions): Promise<FuzzReport> {
    const vendor = await startRefusingVendor();
    const gateway = await TestGateway.start({
      configuration: wiredConfiguration(vendor),
      settings: { ...operatorSettings, SLUICE_DEADLINE_SECONDS: '20', SLUICE_VENDOR_SILENCE_SECONDS: '10' },
      ...(options.product !== undefined && { product: options.product }),
    });
    try {
      return await new Fuzzer(gateway, await makeTenant(gateway), options).#run();
    } finally {
      await gateway.stop();
      await vendor.close();
    }
  }

  async #run(): Promise<FuzzReport> {
    const startedAt = Date.now();
    const { requests, lanes, only } = this.#options;
    const all = [...samples, ...wiredSamples(samples)];
    const chosen = only === undefined ? all : all.filter(only);
    // Half of the requests at most, in an order that the seed repeats.
    const systematic = everyKind(chosen.filter(({ route }) => !route.includes('/console/api/v1/')));
    const sweep = Math.min(systematic.length, Math.floor(requests / 2));
    let warm = 0;
    const lane = async (): Promise<void> => {
      while (this.#sent < requests) {
        const number = this.#sent++;
        if (number === Math.floor(requests / 3)) warm = await this.#memory();
        if (number % renewEvery === renewEvery - 1) this.#tenant = await this.#renewed();
        const random = this.#random.fork(number);
        const next = number < sweep ? takeAny(systematic, random) : drawRequest(random, chosen);
        await this.#try(next);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    const end = await this.#memory();
    this.#agent.destroy();
    return {
      ...{ seed: this.#random.seed, sent: this.#sent, findings: [...this.#findings.values()] },
      ...{ statuses: this.#statuses, memory: { warm, end }, seconds: Math.round((Date.now() - startedAt) / 1000) },
    };
  }

  get #api(): ApiProcess {
    return this.#gateway.apis.at(-1) as ApiProcess;
  }

  async #renewed(): Promise<Tenant> {
    try {
      return await renewed(this.#gateway, this.#tenant);
    } catch {
      // An api that has just ended: the next round makes them.
      return this.#tenant;
    }
  }

  async #try(request: FuzzRequest): Promise<void> {
    await this.#restarting;
    const api = this.#api;
    const { complaint, status } = await this.#send(request);
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
    await this.#watchWorker(request);
    const hasEnded = await this.#endedIn(complaint, api);
    if (complaint === undefined) return;
    // Another request of this moment may have ended it.
    if (hasEnded) await this.#restart(api);
    await this.#note(request, complaint);
  }

  /** A worker that has ended is a finding of one of the requests of this moment, and another one is started. */
  async #watchWorker(request: FuzzRequest): Promise<void> {
    const worker = this.#gateway.workers.at(-1);
    if (worker === undefined || (worker.child.exitCode === null && worker.child.signalCode === null)) return;
    this.#keep(request.sample.route, request.edits, 'the worker ends', worker.output().slice(-600));
    if (this.#gateway.workers.at(-1) === worker) await this.#gateway.startWorker();
  }

  async #send(request: FuzzRequest): Promise<{ complaint: string | undefined; status: string; id: string }> {
    const wire = toWire(request, this.#tenant);
    const answer = await send(this.#api.url, wire, { agent: this.#agent, patienceMs });
    const id = String(answer.headers['x-request-id'] ?? '');
    return { complaint: complaintOf(wire, answer), status: String(answer.status ?? answer.why.slice(0, 20)), id };
  }

  /** Whether the api has ended: its connections break a moment before that is known. */
  async #endedIn(complaint: string | undefined, api: ApiProcess): Promise<boolean> {
    if (complaint === undefined || !/no answer|broke off/.test(complaint)) return false;
    const hasEnded = (): boolean => api.child.exitCode !== null || api.child.signalCode !== null;
    await eventually(() => {
      if (!hasEnded()) throw new Error('it runs');
    }, 500).catch(() => undefined);
    return hasEnded();
  }

  async #restart(ended: ApiProcess): Promise<void> {
    if (this.#api !== ended) return await this.#restarting;
    this.#restarting ??= this.#gateway.startApi().then(() => {
      this.#restarting = undefined;
    });
    await this.#restarting;
  }

  /** Finds the smallest change that does the same, and keeps it where it is new. */
  async #note(request: FuzzRequest, first: string): Promise<void> {
    const known = this.#findings.get(keyOf(request.sample.route, request.edits, first));
    if (known !== undefined) {
      known.times++;
      return;
    }
    for (const edits of [[], ...request.edits.map((edit) => [edit]), request.edits]) {
      const smaller = { sample: request.sample, edits };
      const before = this.#api;
      const { complaint, id } = await this.#send(smaller);
      if (complaint === undefined) continue;
      const hasEnded = await this.#endedIn(complaint, before);
      const said = hasEnded ? 'the process ends' : complaint;
      const stack = await this.#stackOf(id, before, hasEnded);
      if (hasEnded) await this.#restart(before);
      this.#keep(request.sample.route, edits, said, stack);
      // The next of the same kind is known at once.
      const key = keyOf(request.sample.route, request.edits, first);
      const kept = this.#findings.get(keyOf(request.sample.route, edits, said));
      if (kept !== undefined) this.#findings.set(key, kept);
      return;
    }
    this.#keep(request.sample.route, request.edits, `once: ${first}`, '');
  }

  #keep(route: string, edits: readonly Edit[], complaint: string, stack: string): void {
    const key = keyOf(route, edits, complaint);
    const known = this.#findings.get(key);
    if (known === undefined) {
      this.#findings.set(key, { route, edits: edits.map(({ name }) => name), complaint, stack, times: 1 });
    } else known.times++;
  }

  /** What the api has logged of a request: log lines are buffered for up to a second. */
  async #stackOf(id: string, api: ApiProcess, hasEnded: boolean): Promise<string> {
    const job = id.replace(/^(job|req)_/, '');
    const found = async (): Promise<string> => {
      const processes = [api, ...this.#gateway.workers];
      const lines = processes.flatMap((process) => process.output().split('\n'));
      const line = hasEnded
        ? lines.slice(-30).join('\n')
        : lines.find((text) => job !== '' && text.includes(job) && text.includes('"err"'));
      if (line === undefined || line === '') throw new Error('not logged');
      return line;
    };
    const line = await eventually(found, 1500).catch(() => '');
    return (/"stack":"(.*?)"[,}]/.exec(line)?.[1] ?? line).replaceAll('\\n', '\n').slice(0, 600);
  }

  async #memory(): Promise<number> {
    const statm = await readFile(`/proc/${this.#api.pid}/statm`, 'utf8').catch(() => '0 0');
    return Math.round((Number(statm.split(' ')[1]) * 4096) / 1024 / 1024);
  }
}

/** Takes one out of a list, whichever. */
function takeAny<T>(list: T[], random: SeededRandom): T {
  const at = random.int(0, list.length - 1);
  const taken = list[at] as T;
  list[at] = list.at(-1) as T;
  list.pop();
  return taken;
}

/** Failures of one kind at one place of one route are one finding. */
function keyOf(route: string, edits: readonly Edit[], complaint: string): string {
  const places = edits.map(({ name }) => name.replace(/ = .*/, ''));
  return `${route} ${places.join('+')} ${complaint.replace(/\d{2,}|[0-9a-f]{8,}/g, '#').slice(0, 120)}`;
}
