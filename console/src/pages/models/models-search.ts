/** What the price list can be ordered by. */
export const modelOrders = ['model', 'vendor', 'context', 'input', 'output'] as const;
export type ModelOrder = (typeof modelOrders)[number];

/** The price list's filters and order; all of them are in the address. */
export interface ModelsSearch {
  readonly search?: string;
  readonly vendor?: string;
  readonly capability?: string;
  /** Tokens at least. */
  readonly context?: number;
  /** Whether only those that can be used are shown; left out: as is usual for the page. */
  readonly available?: boolean;
  readonly order?: ModelOrder;
  readonly falling?: boolean;
}

/** The filters that an address names. */
export function readModelsSearch(given: Record<string, unknown>): ModelsSearch {
  const text = (name: 'search' | 'vendor' | 'capability'): object =>
    given[name] === undefined || given[name] === '' ? {} : { [name]: String(given[name]) };
  const order = modelOrders.find((name) => name === given.order);
  return {
    ...text('search'),
    ...text('vendor'),
    ...text('capability'),
    ...(typeof given.context === 'number' && { context: given.context }),
    ...(typeof given.available === 'boolean' && { available: given.available }),
    ...(order !== undefined && { order }),
    ...(given.falling === true && { falling: true }),
  };
}
