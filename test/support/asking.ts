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

  /** How many wait in a lane; `waiting` as of the last second. */
  async waiting(lane: 'flex' | 'high' | 'waiting'): Promise<number> {
    const line = new RegExp(`^sluice_queue_${lane}\\{.*capability="chat".*\\} (\\d+)`, 'm');
    return await eventually(async () => {
      const count = line.exec(await (await this.gateway.fetch('/metrics')).text())?.[1];
      // A scrape waits for no slow Redis.
      assert.ok(count !== undefined, 'the scrape does not know how many wait');
      return Number(count);
    });
  }

  /** Waits until so many wait in a lane. */
  async untilWaiting(lane: 'flex' | 'high' | 'waiting', count: number): Promise<void> {
    await eventually(async () => assert.equal(await this.waiting(lane), count));
  }

  /**
   * Takes the only slot, once the vendor knows of it, until it is released: what is sent meanwhile waits, however slow the machine is.
   * @returns what releases the slot
   */
  async occupy(user: string): Promise<() => Promise<void>> {
    const silent = { sandbox: { first_token_ms: 3_600_000 } };
    const accepted = await this.ask('Hi', user, { prefer: 'respond-async' }, silent);
    assert.equal(accepted.status, 202, await accepted.clone().text());
    const { id } = (await accepted.json()) as { id: string };
    await eventually(async () => assert.equal(await this.calls(user), 1));
    return async () => assert.equal((await this.other('DELETE', `/v1/jobs/${id}`)).status, 200);
  }

  /** Names of the requests, as the vendor was called. */
  async order(): Promise<string[]> {
    return (await vendorCalls(this.gateway)).map(({ test_id }) => String(test_id));
  }
}
