import type { Context } from '../state.ts';

/** The limits in force: unfinished jobs of the API key, their maximum, and its limits per minute. */
export interface Limits {
  readonly running: number;
  /** Undefined if it was not checked. */
  readonly concurrency: number | undefined;
  readonly requests: number | undefined;
  readonly tokens: number | undefined;
  /** As of `AdmitReply`. */
  readonly left: string;
}

/**
 * The key's limits per minute under OpenAI's names. Without a limit on requests, the one on unfinished jobs is shown: a slot
 * is free again when one of them ends.
 */
export function limitHeaders({ running, concurrency, requests, tokens, left }: Limits): Record<string, string> {
  const [leftRequests = '-', requestsMs, leftTokens = '-', tokensMs] = left.split(' ');
  const headers: Record<string, string> = {};
  if (requests !== undefined && leftRequests !== '-') {
    headers['x-ratelimit-limit-requests'] = String(requests);
    headers['x-ratelimit-remaining-requests'] = leftRequests;
    headers['x-ratelimit-reset-requests'] = durationText(requestsMs);
  } else if (concurrency !== undefined) {
    headers['x-ratelimit-limit-requests'] = String(concurrency);
    headers['x-ratelimit-remaining-requests'] = String(Math.max(0, concurrency - running));
    headers['x-ratelimit-reset-requests'] = '1s';
  }
  if (tokens === undefined || leftTokens === '-') return headers;
  headers['x-ratelimit-limit-tokens'] = String(tokens);
  headers['x-ratelimit-remaining-tokens'] = leftTokens;
  headers['x-ratelimit-reset-tokens'] = durationText(tokensMs);
  return headers;
}

/** Milliseconds in OpenAI's format of durations: `6m0s`, `1.5s`, `20ms`. */
function durationText(milliseconds: string | undefined): string {
  const ms = Math.ceil(Number(milliseconds ?? 0));
  if (ms < 1000) return `${ms}ms`;
  const [minutes, seconds] = [Math.floor(ms / 60_000), (ms % 60_000) / 1000];
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}

/** Sets the headers of the key's limits on a response that has not started. */
export function showLimits({ res }: Pick<Context, 'res'>, limits: Limits | undefined): void {
  if (limits === undefined || res.headersSent) return;
  const headers = limitHeaders(limits);
  for (const name in headers) res.setHeader(name, headers[name] as string);
}
