import { ApiError } from '../../shared/errors.ts';

const short = { requests: 'RPM', tokens: 'TPM' };

/** A limit per minute that a request exceeds. */
export interface ReachedLimit {
  /** The owner of the limit. */
  readonly whose: string;
  readonly what: keyof typeof short;
  readonly limit: string | number;
  /** Tokens that the request counts as. */
  readonly asked?: string;
  readonly retryAfterMs: number;
  /** The limits in force, for the response's headers. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The 429 for it, worded like OpenAI's, from which clients parse how long to wait. */
export function rateLimitReached({ whose, what, limit, asked, retryAfterMs, headers }: ReachedLimit): ApiError {
  const need = asked === undefined ? '' : `, Requested ${asked}`;
  const seconds = (retryAfterMs / 1000).toFixed(3);
  return new ApiError(
    'rate_limit_exceeded',
    `Rate limit reached for ${whose} on ${what} per min (${short[what]}): Limit ${limit}${need}. Please try again in ${seconds}s.`,
    { retryAfterMs, headers },
  );
}
