import type { PacedKey } from './call-scopes.ts';

/** How long reserved calls are kept, in ms: a vendor counts them when they are made. */
const keptMs = 100;
/** Reserved calls of a route at a time. */
const maxStock = 64;
/** Routes that are remembered: names of open vendors' models come from callers. */
const maxRoutes = 1000;

/** Calls of a route that are reserved with one of its keys. */
export interface StockedCalls {
  readonly key: PacedKey;
  readonly ids: readonly string[];
  /** Of all of them; 0 if no limit counts tokens. */
  readonly tokens: number;
}

/** One of them. */
export interface StockedCall {
  readonly key: PacedKey;
  readonly id: string;
  readonly tokens: number;
}

interface Stock {
  /** The ids are those from `taken` on. */
  calls: StockedCalls | undefined;
  taken: number;
  tokens: number;
  /** How many to reserve next. */
  wanted: number;
  filling: Promise<void> | undefined;
  /** Until when none are asked for, by performance.now(). */
  scarceUntil: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Calls that were reserved together with another, while their vendor has plenty of capacity: the next calls of the route need not
 * ask for it. What is not used in time is returned.
 */
export class CallStock {
  readonly #routes = new Map<string, Stock>();
  readonly #giveBack: (unused: StockedCalls) => void;

  /** @param giveBack takes calls that were not used in time */
  constructor(giveBack: (unused: StockedCalls) => void) {
    this.#giveBack = giveBack;
  }

  /**
   * Takes a reserved call of a route; undefined if there is none.
   * @param accounts ids of the eligible keys
   * @param tokens that it is expected to use
   */
  take(route: string, accounts: readonly string[], tokens: number): StockedCall | undefined {
    const stock = this.#routes.get(route);
    const calls = stock?.calls;
    if (stock === undefined || calls === undefined) return undefined;
    if (tokens > stock.tokens || !accounts.includes(calls.key.account)) return undefined;
    const id = calls.ids[stock.taken++] as string;
    if (stock.taken < calls.ids.length) {
      stock.tokens -= tokens;
      return { key: calls.key, id, tokens };
    }
    // The last one has what is left, and returns it at its end.
    const left = stock.tokens;
    stock.wanted = Math.min(maxStock, 2 * calls.ids.length + 1);
    empty(stock);
    return { key: calls.key, id, tokens: left };
  }

  /** Resolves once calls of a route that are being reserved can be taken; undefined if none are. */
  coming(route: string): Promise<void> | undefined {
    return this.#routes.get(route)?.filling;
  }

  /** How many calls to reserve in addition to the next one. */
  wanted(route: string): number {
    const stock = this.#stockOf(route);
    // While some are left, they are of another key, or too small.
    if (stock.filling !== undefined || stock.calls !== undefined || performance.now() < stock.scarceUntil) return 0;
    return Math.max(1, stock.wanted);
  }

  /** Keeps calls for a while once they are reserved. */
  fill(route: string, reserving: Promise<StockedCalls | undefined>): Promise<void> {
    const stock = this.#stockOf(route);
    const put = (calls: StockedCalls | undefined): void => {
      stock.filling = undefined;
      if (calls !== undefined && calls.ids.length > 0) this.#put(stock, calls);
      // Others do not wait for what is unlikely to come.
      else stock.scarceUntil = performance.now() + keptMs;
    };
    // Who reserves the call with which they come handles the error.
    stock.filling = reserving.then(put, () => put(undefined));
    return stock.filling;
  }

  #put(stock: Stock, calls: StockedCalls): void {
    this.#return(stock);
    Object.assign(stock, { calls, taken: 0, tokens: calls.tokens });
    stock.timer = setTimeout(() => this.#expire(stock), keptMs).unref();
  }

  /** Returns all of them: the limits have changed, or the worker ends. */
  clear(): void {
    for (const route of this.#routes.keys()) this.#forget(route);
  }

  #stockOf(route: string): Stock {
    let stock = this.#routes.get(route);
    if (stock === undefined) {
      if (this.#routes.size >= maxRoutes) this.#forget(this.#routes.keys().next().value as string);
      stock = {
        calls: undefined,
        taken: 0,
        tokens: 0,
        wanted: 0,
        filling: undefined,
        scarceUntil: 0,
        timer: undefined,
      };
      this.#routes.set(route, stock);
    }
    return stock;
  }

  #forget(route: string): void {
    this.#return(this.#routes.get(route) as Stock);
    this.#routes.delete(route);
  }

  /** They were too many. */
  #expire(stock: Stock): void {
    stock.wanted = stock.taken;
    this.#return(stock);
  }

  #return(stock: Stock): void {
    if (stock.calls === undefined) return;
    const { key, ids } = stock.calls;
    const unused = { key, ids: ids.slice(stock.taken), tokens: stock.tokens };
    empty(stock);
    this.#giveBack(unused);
  }
}

function empty(stock: Stock): void {
  clearTimeout(stock.timer);
  Object.assign(stock, { calls: undefined, taken: 0, tokens: 0, timer: undefined });
}
