/** An error in OpenAI's format: HTTP status, headers and the fields of `{"error": {…}}`. */
export class WireError extends Error {
  override name = 'WireError';
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    details: { type?: string; code?: string | null; param?: string | null; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.status = status;
    this.type = details.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
    this.code = details.code ?? null;
    this.param = details.param ?? null;
    this.headers = details.headers ?? {};
  }

  /** The body of the response (and of an error event in a stream) as JSON text. */
  toBody(): string {
    const { message, type, param, code } = this;
    return JSON.stringify({ error: { message, type, param, code } });
  }
}

/** A 400 that names the invalid parameter. */
export function invalidParameter(param: string, message: string): WireError {
  return new WireError(400, message, { param });
}
