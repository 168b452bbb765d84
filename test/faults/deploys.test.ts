import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type OpenAI from 'openai';
import { held, streamed } from '../support/chat-requests.ts';
import { eventually } from '../support/eventually.ts';
import { isSoak } from '../support/faults/load.ts';
import { LoadBalancer } from '../support/faults/load-balancer.ts';
import { type GatewayOptions, type GatewayProcess, TestGateway } from '../support/gateway.ts';
import { leftovers, withLostReadersMs } from '../support/leftovers.ts';
import { startPostgres } from '../support/postgres.ts';
import { sseEvents, textOf } from '../support/sse-events.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

/** What is asked for during a restart of each role: so many at a time, so long each, until so many are answered. */
interface Figures {
  readonly streams: { readonly atATime: number; readonly words: number; readonly perSecond: number };
  readonly held: { readonly atATime: number; readonly words: number; readonly perSecond: number };
  readonly requests: number;
  readonly atLeastStreams?: number;
}

const short: Figures = isSoak
  ? {
      streams: { atATime: 100, words: 200, perSecond: 20 },
      held: { atATime: 20, words: 10, perSecond: 20 },
      requests: 3000,
    }
  : {
      streams: { atATime: 8, words: 40, perSecond: 40 },
      held: { atATime: 4, words: 10, perSecond: 40 },
      requests: 60,
    };
/** Answers of a minute, and of three quarters of one. */
const long: Figures = {
  streams: { atATime: 60, words: 300, perSecond: 5 },
  held: { atATime: 20, words: 225, perSecond: 5 },
  requests: 420,
  atLeastStreams: 300,
};
const databaseAwayMs = isSoak ? 60_000 : 2000;

/** As operators run it: the drain's default; a lame duck that is longer than the balancer's check takes to notice. */
const settings = { SLUICE_SHUTDOWN_SECONDS: '', SLUICE_LAME_DUCK_SECONDS: isSoak ? '3' : '2' };
/** Of each api. In every run, beside other suites, a balancer whose turn comes late must still be in time. */
const checkMs = isSoak ? 1000 : 250;

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

/** A gateway behind a load balancer, and clients that ask again and again without repeating what failed. */
class Deployment {
  readonly gateway: TestGateway;
  readonly balancer: LoadBalancer;
  readonly failures: string[] = [];
  /** Requests refused because this machine was too busy. */
  refused = 0;
  streams = 0;
  held = 0;

  private constructor(gateway: TestGateway, balancer: LoadBalancer) {
    this.gateway = gateway;
    this.balancer = balancer;
    for (const { url } of gateway.apis) balancer.add(url);
  }

  static async start(options: GatewayOptions = {}): Promise<Deployment> {
    const gateway = await TestGateway.start({ apis: 2, workers: 2, settings, ...options });
    return new Deployment(gateway, await LoadBalancer.start(checkMs));
  }

  async stop(): Promise<void> {
    await this.balancer.close();
    await this.gateway.stop();
  }

  get answered(): number {
    return this.streams + this.held;
  }

  /** Keeps so many requests under way until `isOver`. */
  async load({ streams, held: whole }: Pick<Figures, 'streams' | 'held'>, isOver: () => boolean): Promise<void> {
    const repeat = async (ask: () => Promise<void>): Promise<void> => {
      while (!isOver())
        await ask().catch((error: Error) => this.failures.push(`${error.message} ${error.cause ?? ''}`));
    };
    await Promise.all([
      ...Array.from({ length: streams.atATime }, () => repeat(() => this.#stream(streams))),
      ...Array.from({ length: whole.atATime }, () => repeat(() => this.#hold(whole))),
    ]);
  }

  async #stream({ words: count, perSecond }: Figures['streams']): Promise<void> {
    const text = await this.#ask(streamed(`WORDS:${count}@${perSecond}`, { user: 'deploys' }));
    const events = sseEvents(text);
    assert.equal(events.at(-1)?.data, '[DONE]', text.slice(-300));
    assert.equal(textOf(events), words(count), 'a stream is not whole');
    this.streams++;
  }

  async #hold({ words: count, perSecond }: Figures['held']): Promise<void> {
    const text = await this.#ask(held(`WORDS:${count}@${perSecond}`, { user: 'deploys' }));
    assert.equal((JSON.parse(text) as OpenAI.Chat.ChatCompletion).choices[0]?.message.content, words(count));
    this.held++;
  }

  /** A process short of CPU refuses, whether or not any restarts: its answer is waited out, and counted apart. */
  async #ask(body: object): Promise<string> {
    const sent = { method: 'POST', url: this.balancer.url, body: JSON.stringify(body) };
    const response = await this.gateway.fetch('/v1/chat/completions', sent);
    const text = await response.text();
    if (response.status === 503 && text.includes('The server is overloaded.')) {
      this.refused++;
      await delay(Number(response.headers.get('retry-after')) * 1000);
      return this.#ask(body);
    }
    assert.equal(response.status, 200, text);
    return text;
  }

  /** Ends processes of each role, all in a soak, one after the other, and starts the successor of each at once. */
  async restartEach(): Promise<void> {
    const { gateway, balancer } = this;
    const running = <Process extends GatewayProcess>(all: readonly Process[]): Process[] =>
      all.filter(({ child }) => child.exitCode === null).slice(0, isSoak ? undefined : 1);
    for (const api of running(gateway.apis)) {
      assert.equal(await api.stop(), 0, api.output().slice(-2000));
      balancer.remove(api.url);
      balancer.add((await gateway.startApi()).url);
    }
    for (const worker of running(gateway.workers)) {
      assert.equal(await worker.stop(), 0, worker.output().slice(-2000));
      await gateway.startWorker();
    }
  }
}

/** Restarts every role in turn under load until enough is answered, and finds that nothing has failed. */
async function restartUnderLoad(t: TestContext, figures: Figures): Promise<void> {
  const deployment = await Deployment.start();
  try {
    const { requests, atLeastStreams = 0 } = figures;
    let rounds = 0;
    const isEnough = (): boolean =>
      rounds > 0 && deployment.answered >= requests && deployment.streams >= atLeastStreams;
    let isOver = false;
    const restarts = (async () => {
      try {
        // Each restart begins under the whole load.
        await eventually(() => assert.ok(deployment.held > 0, 'nothing is answered yet'), 120_000);
        for (; !isEnough(); rounds++) await deployment.restartEach();
      } finally {
        isOver = true;
      }
    })();
    await Promise.all([restarts, deployment.load(figures, () => isOver)]);
    const { streams, held: whole, failures, refused, answered, gateway } = deployment;
    t.diagnostic(
      `${gateway.apis.length - 2} api and ${gateway.workers.length - 2} worker processes restarted: ${streams} streams and ${whole} held requests whole, ${failures.length} failed, ${refused} refused by busy processes`,
    );
    assert.deepEqual(failures, []);
    // The full figures are of a machine that is not too busy for them.
    if (isSoak) assert.equal(refused, 0);
    assert.ok(answered >= requests && streams >= atLeastStreams);
    assert.equal((await vendorCalls(gateway, 'deploys')).length, answered, 'the vendor was asked again for some');
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  } finally {
    await deployment.stop();
  }
}

describe('deploys behind a load balancer that repeats nothing', () => {
  it('restarting apis and workers in turn cuts no stream and no held request', (t) =>
    restartUnderLoad(t as TestContext, short));

  if (isSoak) {
    it('restarting apis and workers in turn cuts no answer that takes a minute', (t) =>
      restartUnderLoad(t as TestContext, long));
  }

  it('while Postgres is stopped every health check of an api is 200, and every chat is answered', async (t) => {
    const postgres = await startPostgres();
    let deployment: Deployment | undefined;
    try {
      const databaseUrl = await postgres.createDatabase();
      deployment = await Deployment.start({ databaseUrl });
      const { balancer, gateway } = deployment;
      // Each process knows the key and its account from then on. The first look at a database that has just begun may take too long.
      for (const { url } of gateway.apis) {
        const body = JSON.stringify(held('Hi'));
        await eventually(async () => {
          const { status } = await gateway.fetch('/v1/chat/completions', { method: 'POST', url, body });
          assert.equal(status, 200);
        }, 60_000);
      }
      let isOver = false;
      const load = deployment.load(short, () => isOver);
      const { answered } = await eventually(() => {
        assert.ok((deployment?.streams ?? 0) > 0 && (deployment?.held ?? 0) > 0, 'nothing is answered yet');
        return deployment as Deployment;
      }, 60_000);
      const checks = balancer.checks;
      await postgres.shutDown();
      await delay(databaseAwayMs);
      const during = { answered: deployment.answered - answered, checks: balancer.checks - checks };
      const ready = (await (await fetch(`${gateway.apis[0]?.url}/readyz`)).json()) as { status: string };
      assert.equal(ready.status, 'degraded');
      await postgres.start();
      isOver = true;
      await load;
      t.diagnostic(
        `Postgres stopped for ${databaseAwayMs} ms: ${during.answered} chats answered, ${deployment.failures.length} failed, ` +
          `${during.checks} health checks, ${balancer.failedChecks.length} of all not 200`,
      );
      assert.deepEqual([deployment.failures, balancer.failedChecks], [[], []]);
      assert.ok(during.answered > 0 && during.checks > 0);
    } finally {
      await deployment?.stop();
      await postgres.stop();
    }
  });
});
