import type { Cluster } from 'ioredis';

/**
 * Tells clients for blocking commands when slots have other masters, in place of a look of each at all slots every few seconds: a worker
 * has one for each shard of a queue, and each look costs a connection and some ms.
 */
export class SlotChanges {
  readonly #clients = new Set<Cluster>();

  /** @param cluster the client that looks, whose redirected commands make it look at once */
  constructor(cluster: Cluster) {
    let known = mastersOf(cluster);
    cluster.on('refresh', () => {
      const found = mastersOf(cluster);
      if (found === known) return;
      known = found;
      for (const client of this.#clients) client.refreshSlotsCache();
    });
  }

  /** Tells a client until it ends. */
  tell(client: Cluster): void {
    this.#clients.add(client);
    client.once('end', () => this.#clients.delete(client));
  }
}

/** The masters of all slots: where each range begins, and whose it is. */
function mastersOf({ slots }: Cluster): string {
  const ranges: string[] = [];
  let last: string | undefined;
  for (let slot = 0; slot < slots.length; slot++) {
    const master = slots[slot]?.[0];
    if (master !== last) ranges.push(`${slot} ${master}`);
    last = master;
  }
  return ranges.join();
}
