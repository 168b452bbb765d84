import type { Served } from '../../shared/jobs/settlement/served.ts';
import { formatDollars } from '../../shared/money/dollars.ts';
import type { Context } from '../state.ts';

/**
 * Reports in the response's headers, and in the access log, the vendor, the number of calls, the cost if it is known in
 * time, and the ignored fields.
 */
export function showServed({ res, state }: Context, { vendor, calls, model, cost }: Served): void {
  state.facts.vendor = vendor;
  state.facts.calls = calls;
  if (model !== undefined) state.facts.served_model = model;
  const dollars = cost === undefined ? undefined : formatDollars(cost);
  if (dollars !== undefined) state.facts.cost = dollars;
  if (res.headersSent) return;
  res.setHeader('x-sluice-vendor', vendor);
  res.setHeader('x-sluice-attempts', String(calls));
  if (dollars !== undefined) res.setHeader('x-sluice-cost', dollars);
  // An operator may give a model a name that headers do not allow.
  if (model !== undefined) res.setHeader('x-sluice-model', encodeURI(model));
  const ignored = state.ignored?.get(serverName(vendor, model));
  if (ignored) res.setHeader('x-sluice-ignored', ignored);
}

/** Who serves a request: a vendor, and the fallback model if one is used. */
export function serverName(vendor: string, standIn: string | undefined): string {
  return standIn === undefined ? vendor : `${vendor} ${standIn}`;
}
