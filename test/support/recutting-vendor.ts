import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How a vendor cuts its answers into writes. */
export type Cut = 'one_write' | 'one_event_a_write' | 'byte_by_byte';

export const cuts: readonly Cut[] = ['one_write', 'one_event_a_write', 'byte_by_byte'];

/** A vendor that answers what another one does, cut into other writes. */
export interface RecuttingVendor {
  readonly url: string;
  /** How it cuts from now on. */
  cut: Cut;
  close(): Promise<void>;
}

/**
 * Starts a proxy before a vendor. It takes each answer whole before it passes it on, so that how the vendor paces and cuts
 * its answers leaves no trace.
 * @param upstream the vendor's base URL, without a path
 */
export async function startRecuttingVendor(upstream: string): Promise<RecuttingVendor> {
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers;
    const answer = await fetch(`${upstream}${request.url}`, {
      method: request.method ?? 'GET',
      headers: headers as Record<string, string>,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const body = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' });
    await write(response, body, vendor.cut);
  };
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const vendor: RecuttingVendor = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: 'one_write',
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return vendor;
}

async function write(response: ServerResponse, body: Buffer, cut: Cut): Promise<void> {
  if (cut === 'one_write') {
    response.end(body);
    return;
  }
  for (const piece of cut === 'byte_by_byte' ? bytesOf(body) : eventsOf(body)) {
    response.write(piece);
    // Each piece is a write of its own, and a packet.
    await nextTurn();
  }
  response.end();
}

/** Every byte by itself; of what is long only the first and the last ones, more than an event has, or an image would take a minute. */
function* bytesOf(body: Buffer): Generator<Buffer> {
  const single = 400;
  const [head, tail] = body.length <= 2 * single ? [body.length, body.length] : [single, body.length - single];
  for (let index = 0; index < head; index++) yield body.subarray(index, index + 1);
  if (tail > head) yield body.subarray(head, tail);
  for (let index = tail; index < body.length; index++) yield body.subarray(index, index + 1);
}

/** Every event of a stream; what is no stream of events comes in ten pieces. */
function* eventsOf(body: Buffer): Generator<Buffer> {
  const step = Math.ceil(body.length / 10);
  for (let start = 0; start < body.length; ) {
    const end = body.indexOf('\n\n', start);
    const next = end < 0 ? Math.min(body.length, start + step) : end + 2;
    yield body.subarray(start, next);
    start = next;
  }
}
