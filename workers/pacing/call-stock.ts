/** How long reserved calls are kept, in ms: a vendor counts them when they are made. */
const keptMs = 100;
/** Reserved calls of a route at a time. */
const maxStock = 64;
/** Routes that are remembered: names of open vendors' models come from callers. */
const maxRoutes = 1000;

interface Stock {
  account: string;
  left: number;
  /** How many to reserve next. */
  wanted: number;
  until: number;
}

/**
 * Calls that were reserved together with another, while their vendor has plenty of capacity: the next calls of the route need not
 * ask for it. What is not used in time is lost, which nobody misses then.
 */
export class CallStock {
  readonly #routes = new Map<string, Stock>();

  /** Takes a reserved call of a route; undefined if there is none. @param accounts ids of the eligible keys */
  take(route: string, accounts: readonly string[]): string | undefined {
    const stock = this.#routes.get(route);
    if (stock === undefined || stock.left === 0) return undefined;
    if (performance.now() > stock.until) {
      // They were too many.
      stock.wanted = Math.max(0, stock.wanted - stock.left);
      stock.left = 0;
      return undefined;
    }
    if (!accounts.includes(stock.account)) return undefined;
    stock.left--;
    if (stock.left === 0) stock.wanted = Math.min(maxStock, 2 * stock.wanted + 1);
    return stock.account;
  }

  /** How many calls to reserve in addition to the next one. */
  wanted(route: string): number {
    const stock = this.#routes.get(route);
    // While some are left, they are of another key.
    return stock === undefined ? 1 : stock.left > 0 ? 0 : Math.max(1, stock.wanted);
  }

  /** Keeps reserved calls. */
  put(route: string, account: string, count: number): void {
    const stock = this.#routes.get(route);
    const until = performance.now() + keptMs;
    if (stock !== undefined) Object.assign(stock, { account, left: count, until });
    else if (count > 0) {
      if (this.#routes.size >= maxRoutes) this.#routes.delete(this.#routes.keys().next().value as string);
      this.#routes.set(route, { account, left: count, wanted: count, until });
    }
  }

  /** Forgets all of them: the limits have changed. */
  clear(): void {
    this.#routes.clear();
  }
}
