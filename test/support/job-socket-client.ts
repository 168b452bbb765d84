import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type ClientOptions, WebSocket } from 'ws';
import type { WireEvent } from './sse-events.ts';

/** A message of a job's socket, as it stood on the wire. */
export interface SocketMessage {
  readonly id: string | null;
  readonly event: string | null;
  readonly data: unknown;
}

/** A client of a job's socket that keeps what it gets. */
export interface JobSocketClient {
  readonly webSocket: WebSocket;
  readonly messages: SocketMessage[];
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
}

/**
 * Opens a job's socket and waits for the handshake.
 * @param base an api's URL, `http://…`
 * @param path from `/v1` on
 */
export async function openJobSocket(
  base: string,
  path: string,
  options: ClientOptions & { key: string },
): Promise<JobSocketClient> {
  const { key, ...more } = options;
  const headers = { authorization: `Bearer ${key}`, ...more.headers };
  const webSocket = new WebSocket(`${base.replace(/^http/, 'ws')}${path}`, { ...more, headers });
  const messages: SocketMessage[] = [];
  webSocket.on('message', (data, isBinary) => {
    assert.equal(isBinary, false, 'messages are text');
    messages.push(JSON.parse(String(data)));
  });
  const closed = new Promise<number>((resolve) => webSocket.once('close', resolve));
  await once(webSocket, 'open');
  // A connection that breaks is closed with 1006; that says it all.
  webSocket.on('error', () => undefined);
  return { webSocket, messages, closed };
}

/** The HTTP answer to a handshake that is refused. */
export async function refusedHandshake(
  url: string,
  options: ClientOptions & { protocols?: string[] } = {},
): Promise<Response> {
  const webSocket = new WebSocket(url.replace(/^http/, 'ws'), options.protocols ?? [], options);
  // Said when it is let go of below.
  webSocket.on('error', () => undefined);
  const [, answer] = (await once(webSocket, 'unexpected-response')) as [unknown, IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  webSocket.terminate();
  const headers = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Response(Buffer.concat(chunks), { status: answer.statusCode as number, headers });
}

/** The messages that a socket has to send where the SSE view shows this; comments are left out. */
export function messagesOfSse(text: string): SocketMessage[] {
  const blocks = text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'));
  return blocks.map((block) => {
    const line = (name: string): string | null => new RegExp(`^${name}: ([^\\n]*)$`, 'm').exec(block)?.[1] ?? null;
    const data = line('data');
    return { id: line('id'), event: line('event'), data: data === '[DONE]' ? data : JSON.parse(data ?? '') };
  });
}

/** A message as the event that it is in the SSE view. */
export function asEvent({ id, data }: SocketMessage): WireEvent {
  return { id: id ?? undefined, data: typeof data === 'string' ? data : JSON.stringify(data) };
}
