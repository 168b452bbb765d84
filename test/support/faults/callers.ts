import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { held } from '../chat-requests.ts';
import { eventually } from '../eventually.ts';
import type { TestGateway } from '../gateway.ts';

/** Callers that ask again as long as they are let, and what they got. */
export class Callers {
  readonly accepted: string[] = [];
  readonly successes: number[] = [];
  failures = 0;
  readonly #gateway: TestGateway;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(gateway: TestGateway, jobs: number, holders: number) {
    this.#gateway = gateway;
    for (let index = 0; index < jobs; index++) this.#running.push(this.#repeat({ prefer: 'respond-async' }, 200));
    for (let index = 0; index < holders; index++) this.#running.push(this.#repeat({}, 50));
  }

  async #repeat(headers: Record<string, string>, pauseMs: number): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const response = await this.#gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        headers,
        body: JSON.stringify(held('WORDS:5@50')),
      });
      const { id } = (await response.json()) as { id: string };
      if (!response.ok) this.failures++;
      else if (response.status === 202) this.accepted.push(id);
      else this.successes.push(performance.now());
      await delay(pauseMs);
    }
  }

  /** Resolves when the last request has been answered. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#running);
  }

  /** The longest time without a held answer, in ms. */
  get silenceMs(): number {
    const times = [...this.successes].sort((one, other) => one - other);
    return Math.max(...times.slice(1).map((time, index) => time - (times[index] as number)));
  }
}

/** How every accepted job ended, by its status. */
export async function endings(gateway: TestGateway, ids: readonly string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const id of ids) {
    const status = await eventually(async () => {
      const response = await gateway.fetch(`/v1/jobs/${id}`);
      assert.equal(response.status, 200, await response.clone().text());
      const job = (await response.json()) as { status: string };
      assert.ok(job.status !== 'queued' && job.status !== 'running' && job.status !== 'in_progress', job.status);
      return job.status;
    }, 60_000);
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}
