import { learnTime } from './gateway-clock.ts';

/** Root of the console's JSON: the same origin, so that the session cookie is sent. */
const apiRoot = '/console/api';
/** Root of the operators' JSON, which also accepts an operator's session. */
const adminRoot = '/admin/v1';

/** Timeout of a response; streams are not read through here. */
const deadlineMs = 30_000;

/** A failed request: `message` is written for the user. */
export class RequestError extends Error {
  /** 0: there was no response at all. */
  readonly status: number;
  readonly code: string | undefined;
  /** The field named by the server, if any. */
  readonly field: string | undefined;
  readonly requestId: string | undefined;
  /** How long the server asks to wait before the next try. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    facts: { status: number; code?: string; field?: string; requestId?: string; retryAfterMs?: number },
  ) {
    super(message);
    this.name = 'RequestError';
    this.status = facts.status;
    this.code = facts.code;
    this.field = facts.field;
    this.requestId = facts.requestId;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** Values of a query string; undefined, null and empty ones are left out. */
export type Query = Record<string, string | number | boolean | null | undefined>;

export interface RequestOptions {
  readonly query?: Query | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** A path with its query string, under the console's JSON or, with a leading `/admin/v1`, the operators'. */
export function address(path: string, query: Query = {}): string {
  const root = path.startsWith(adminRoot) ? '' : apiRoot;
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${root}${path}${text === '' ? '' : `?${text}`}`;
}

/**
 * Sends one call to the console's JSON: `request('GET', '/keys')`, `request('GET', '/admin/v1/users')`.
 * @throws RequestError with a readable message, also if the network or the server is unavailable.
 */
export async function request<Answer>(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const deadline = AbortSignal.timeout(deadlineMs);
  const signal = options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]);
  try {
    const response = await fetch(address(path, options.query), {
      method,
      signal,
      credentials: 'same-origin',
      headers: {
        accept: 'application/json',
        ...options.headers,
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    });
    learnTime(response);
    if (!response.ok) throw await readError(response);
    return (await readJson(response)) as Answer;
  } catch (error) {
    // Leaving a page aborts its requests: that is not an error to show.
    if (error instanceof RequestError || options.signal?.aborted === true) throw error;
    // Either there is no response, or its connection broke off, which browsers tell in words of their own.
    throw noAnswer(deadline.aborted);
  }
}

/** The error of a request without a whole response. @param isLate whether it took too long */
export function noAnswer(isLate = false): RequestError {
  return new RequestError(
    isLate
      ? 'The gateway took too long to answer. Try again in a moment.'
      : 'The gateway cannot be reached. Check your connection and try again.',
    { status: 0 },
  );
}

async function readJson(response: Response): Promise<unknown> {
  const text = await response.text();
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError('The gateway answered with something that is not JSON.', { status: response.status });
  }
}

/** Parses the error of a failed response: in the API's format, or that of the sign-in routes. */
export async function readError(response: Response): Promise<RequestError> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = (isRecord(body) && isRecord(body.error) ? body.error : isRecord(body) ? body : {}) as Record<
    string,
    unknown
  >;
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
  const code = text(error.code) ?? text(error.type);
  const field = text(error.param);
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new RequestError(text(error.message) ?? plainMessage(response.status), {
    status: response.status,
    ...(code === undefined ? {} : { code }),
    ...(field === undefined ? {} : { field }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(Number.isFinite(retryAfter) ? { retryAfterMs: retryAfter * 1000 } : {}),
  });
}

function plainMessage(status: number): string {
  if (status === 401) return 'You are not signed in.';
  if (status === 403) return 'You may not do this.';
  if (status === 404) return 'There is no such thing here.';
  if (status === 429) return 'Too many requests. Wait a moment and try again.';
  if (status >= 500) return `The gateway has a fault of its own (${status}). Try again in a moment.`;
  return `The gateway refused this (${status}).`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
