import assert from 'node:assert/strict';
import { eventually } from './eventually.ts';
import type { ApiProcess, TestGateway } from './gateway.ts';

/** The way of a client's requests through a failover. */
export interface Failover {
  /** Where the client sends its requests. */
  readonly url: string;
  readonly fetch: typeof fetch;
  /** How many requests the client has sent. */
  readonly tries: () => number;
}

/**
 * An api process that dies once the vendor of a client's first request is called, as a load balancer shows it: the client's further
 * requests get to the gateway's first api process.
 * @param calls how many calls of the request its vendor has had
 */
export async function startFailover(gateway: TestGateway, calls: () => number | Promise<number>): Promise<Failover> {
  const doomed: ApiProcess = await gateway.startApi();
  let tries = 0;
  const send: typeof fetch = (address, init) => {
    if (++tries > 1) return fetch(String(address).replace(doomed.url, gateway.url), init);
    const killed = eventually(async () => assert.equal(await calls(), 1)).then(async () => {
      await doomed.kill();
      gateway.apis.splice(gateway.apis.indexOf(doomed), 1);
    });
    killed.catch(() => undefined);
    return fetch(address, init);
  };
  return { url: doomed.url, fetch: send, tries: () => tries };
}
