/** Sort orders of the price list. */
export const modelOrders = ['model', 'vendor', 'context', 'input', 'output'] as const;
export type ModelOrder = (typeof modelOrders)[number];

/** The price list's filters and order, all of which are in the address. */
export interface ModelsSearch {
  readonly search?: string;
  readonly vendor?: string;
  readonly capability?: string;
  /** Minimum number of tokens. */
  readonly context?: number;
  /** Whether only available models are shown; left out: the page's default. */
  readonly available?: boolean;
  readonly order?: ModelOrder;
  readonly falling?: boolean;
}

/** Parses the filters in an address. */
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
