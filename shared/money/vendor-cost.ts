type Fields = Readonly<Record<string, unknown>>;

const nanosPerDollar = 1_000_000_000;
/** xAI reports its cost in ticks, 10^10 to the dollar (https://docs.x.ai/developers/cost-tracking). */
const ticksPerNano = 10;

/**
 * The cost reported in a vendor's usage, in nano-dollars, rounded: `cost.total_cost` of Perplexity, `cost` of OpenRouter (both
 * in US dollars), `cost_in_usd_ticks` of xAI. It is kept for comparison, and never charged. Undefined if missing or impossible:
 * negative, not a number, or more than the ledger can hold.
 */
export function readVendorCost(usage: Fields): number | undefined {
  const { cost, cost_in_usd_ticks: ticks } = usage;
  const dollars = typeof cost === 'object' && cost !== null ? (cost as Fields).total_cost : cost;
  if (typeof dollars === 'number') return possible(dollars * nanosPerDollar);
  return typeof ticks === 'number' ? possible(ticks / ticksPerNano) : undefined;
}

function possible(nanos: number): number | undefined {
  const cost = Math.round(nanos);
  // Turns minus zero into zero.
  return Number.isSafeInteger(cost) && cost >= 0 ? Math.abs(cost) : undefined;
}
