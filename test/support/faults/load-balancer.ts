import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A check that takes longer counts as a failed one: more than a busy machine's event loop is late. */
const patienceMs = 5000;
/** After so many checks in a row without an answer an api is down, as by the default of Kubernetes' `failureThreshold`. */
const failureThreshold = 3;
/** Headers about one connection, which are not passed on. */
const ownHeaders = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/** What the checks of an api have told. */
interface Health {
  isReady: boolean;
  /** Checks in a row that had no answer. */
  unanswered: number;
}

/**
 * An HTTP load balancer as many deployments have one: apis in turn, connections to them kept, `/readyz` asked of each at an
 * interval, whose last answer decides, or that there were none for a while. It repeats no request: what an api refuses or resets is
 * a 502 for the client.
 */
export class LoadBalancer {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  /** Health checks that were not answered with 200, by what they were answered with. */
  readonly failedChecks: string[] = [];
  /** Health checks so far. */
  checks = 0;
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });
  /** By base URL. */
  readonly #apis = new Map<string, Health>();
  readonly #closing = new AbortController();
  readonly #checkMs: number;
  readonly #checking: Promise<void>;
  #turn = 0;

  private constructor(server: Server, checkMs: number) {
    this.#server = server;
    this.#checkMs = checkMs;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (incoming, outgoing) => this.#pass(incoming, outgoing));
    this.#checking = this.#check();
  }

  /** @param checkMs interval of health checks */
  static async start(checkMs: number): Promise<LoadBalancer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new LoadBalancer(server, checkMs);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#checking;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    this.#agent.destroy();
  }

  /** Adds an api that is known to be ready. */
  add(url: string): void {
    this.#apis.set(url, { isReady: true, unanswered: 0 });
  }

  remove(url: string): void {
    this.#apis.delete(url);
  }

  async #check(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await delay(this.#checkMs, undefined, { signal }).catch(() => undefined);
      await Promise.all([...this.#apis.keys()].map((url) => this.#checkOne(url)));
    }
  }

  async #checkOne(url: string): Promise<void> {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(patienceMs) }).then(
      async (response) => ({ status: response.status, text: `${response.status} ${await response.text()}` }),
      (error: Error) => ({ status: undefined, text: error.message }),
    );
    this.checks++;
    if (answer.status !== 200) this.failedChecks.push(answer.text);
    const health = this.#apis.get(url);
    if (health === undefined) return;
    health.unanswered = answer.status === undefined ? health.unanswered + 1 : 0;
    if (answer.status !== undefined) health.isReady = answer.status === 200;
    else if (health.unanswered >= failureThreshold) health.isReady = false;
  }

  #next(): string | undefined {
    const ready = [...this.#apis].flatMap(([url, { isReady }]) => (isReady ? url : []));
    this.#turn++;
    return ready[this.#turn % ready.length];
  }

  #pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const url = this.#next();
    if (url === undefined) {
      outgoing.writeHead(503).end('no api is ready');
      return;
    }
    const { method, headers } = incoming;
    const passed = request(new URL(incoming.url ?? '/', url), { method, headers: own(headers), agent: this.#agent });
    passed.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, own(answer.headers));
      answer.pipe(outgoing);
      answer.on('error', () => outgoing.destroy());
    });
    passed.on('error', (error) => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end(`${url}: ${error.message}`);
    });
    outgoing.once('close', () => passed.destroy());
    incoming.pipe(passed);
  }
}

function own(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ownHeaders.has(name)));
}
