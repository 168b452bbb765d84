import assert from 'node:assert/strict';
import { held } from './chat-requests.ts';
import { eventually } from './eventually.ts';
import type { TestGateway } from './gateway.ts';
import { vendorCalls } from './vendor-journal.ts';

/** Requests to a gateway, and what its vendor has seen of them. */
export class Asking {
  readonly gateway: TestGateway;
  readonly #key: string | undefined;

  /** @param key of whom; left out: the gateway's own */
  constructor(gateway: TestGateway, key?: string) {
    this.gateway = gateway;
    this.#key = key;
  }

  /** @param user names the request in the vendor's journal */
  ask(
    text: string,
    user: string,
    headers: Record<string, string> = {},
    more: object = {},
    url?: string,
  ): Promise<Response> {
    const body = JSON.stringify(held(text, { user, ...more }));
    const authorization = this.#key && { authorization: `Bearer ${this.#key}` };
    return this.gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body,
      headers: { ...authorization, ...headers },
      ...(url !== undefined && { url }),
    });
  }

  /** Another request with the same key. */
  other(method: string, path: string): Promise<Response> {
    return this.gateway.fetch(path, { method, headers: this.#key ? { authorization: `Bearer ${this.#key}` } : {} });
  }

  async calls(user: string): Promise<number> {
    return (await vendorCalls(this.gateway, user)).length;
  }

  /** How many wait in a lane. */
  async waiting(lane: 'flex' | 'high' | 'waiting'): Promise<number> {
    const text = await (await this.gateway.fetch('/metrics')).text();
    return Number(new RegExp(`^sluice_queue_${lane}\\{.*capability="chat".*\\} (\\d+)`, 'm').exec(text)?.[1]);
  }

  /** Takes the only slot for so many seconds; returns once the vendor knows of it. */
  async occupy(user: string, seconds = 3): Promise<Promise<number>[]> {
    const status = this.ask(`WORDS:${10 * seconds}@10`, user).then((answer) => answer.status);
    await eventually(async () => assert.equal(await this.calls(user), 1));
    return [status];
  }

  /** Names of the requests, as the vendor was called. */
  async order(): Promise<string[]> {
    return (await vendorCalls(this.gateway)).map(({ test_id }) => String(test_id));
  }
}
