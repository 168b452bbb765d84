import { type ClientRequest, type IncomingMessage, request as sendRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** One request of a client and what came back. */
export interface Exchange {
  /** The base URL that was asked. */
  readonly url: string;
  readonly path: string;
  readonly method: string;
  readonly at: number;
  endedAt: number;
  /** Undefined: no answer came. */
  status: number | undefined;
  headers: IncomingMessage['headers'];
  bytes: Buffer;
  /** Whether the answer came to its end in order; else its connection broke. */
  isWhole: boolean;
  /** The client itself has left. */
  hasLeft: boolean;
}

export interface Sending {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** How long the client waits in all, in ms. */
  readonly patienceMs: number;
  /** Leaves after so many bytes of the answer, or so many ms without one. */
  readonly leave?: { readonly bytes: number; readonly ms: number } | undefined;
  /** Stops reading for so long after each piece. */
  readonly pauseMs?: number;
}

/** Sends a request, and keeps what comes back. Never rejects. */
export async function exchange(url: string, path: string, key: string, sending: Sending): Promise<Exchange> {
  const method = sending.method ?? (sending.body === undefined ? 'GET' : 'POST');
  const result: Exchange = {
    ...{ url, path, method, at: Date.now(), endedAt: 0, status: undefined, headers: {} },
    ...{ bytes: Buffer.alloc(0), isWhole: false, hasLeft: false },
  };
  const body = sending.body === undefined ? undefined : JSON.stringify(sending.body);
  const sent = sendRequest(`${url}${path}`, {
    ...{ method, agent: false, signal: AbortSignal.timeout(sending.patienceMs) },
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      ...sending.headers,
    },
  });
  const leave = (): void => {
    result.hasLeft = true;
    sent.destroy();
  };
  const leaving = sending.leave && setTimeout(leave, sending.leave.ms);
  try {
    sent.end(body);
    await receive(result, await responseTo(sent), sending, leave);
  } catch {
    // What has come so far stands in the result.
  } finally {
    clearTimeout(leaving);
    result.endedAt = Date.now();
  }
  return result;
}

function responseTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on('response', resolve);
    // Also after the answer, where nobody else listens.
    sent.on('error', reject);
    sent.on('close', () => reject(new Error('closed')));
  });
}

async function receive(
  result: Exchange,
  response: IncomingMessage,
  sending: Sending,
  leave: () => void,
): Promise<void> {
  result.status = response.statusCode;
  result.headers = response.headers;
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      parts.push(part);
      bytes += part.length;
      if (sending.leave !== undefined && bytes >= sending.leave.bytes) return leave();
      if (sending.pauseMs !== undefined) await delay(sending.pauseMs);
    }
    result.isWhole = response.complete;
  } finally {
    result.bytes = Buffer.concat(parts);
  }
}

/** The code of an error answer; undefined where it has none. */
export function errorCode({ bytes }: Exchange): string | undefined {
  try {
    const { error } = JSON.parse(bytes.toString()) as { error?: { code?: unknown } };
    return typeof error?.code === 'string' ? error.code : undefined;
  } catch {
    return undefined;
  }
}
