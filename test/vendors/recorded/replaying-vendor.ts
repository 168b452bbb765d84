import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { longKeepAliveMs } from '../../support/long-keep-alive.ts';
import type { Exchange } from './exchange.ts';

/** How an answer is cut into the pieces in which the gateway gets it. */
export type Cut = 'whole' | 'odd_pieces' | 'byte_by_byte';

/** What the gateway has sent. */
export interface Sent {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

/** All vendors in one server, each under its name: `/groq/chat/completions`. */
export interface ReplayingVendor {
  readonly url: string;
  /** From now on a vendor answers so. What it is asked meanwhile goes into the list that this returns. */
  play(vendor: string, exchange: Exchange, cut: Cut): Sent[];
  close(): Promise<void>;
}

export async function startReplayingVendor(): Promise<ReplayingVendor> {
  const playing = new Map<string, { exchange: Exchange; cut: Cut; sent: Sent[] }>();
  const server = createServer({ keepAliveTimeout: longKeepAliveMs }, async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const [, vendor = '', path = ''] = /^\/([^/]+)(\/.*)$/.exec(request.url ?? '') ?? [];
    const play = playing.get(vendor);
    if (play === undefined) {
      response.writeHead(500).end();
      return;
    }
    play.sent.push({ path, headers: request.headers, body: JSON.parse(Buffer.concat(parts).toString()) });
    answer(response, play.exchange, play.cut);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    play: (vendor, exchange, cut) => {
      const sent: Sent[] = [];
      playing.set(vendor, { exchange, cut, sent });
      return sent;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Each piece is an HTTP chunk of its own, so that the gateway sees these very cuts, however they travel together. */
function answer(response: ServerResponse, { status, headers, body }: Exchange, cut: Cut): void {
  const { socket } = response;
  response.writeHead(status, headers);
  // Not the response itself: Node 22 and 24 end a corked one before its last pieces.
  socket?.cork();
  for (const piece of piecesOf(body, cut)) response.write(piece);
  response.end();
  socket?.uncork();
}

/** None of them is as long as an event, or ends where one does, but by chance. */
const oddSizes = [1, 2, 61, 3, 7, 113, 5, 19];

function* piecesOf(body: Buffer, cut: Cut): Generator<Buffer> {
  if (cut === 'whole') {
    yield body;
    return;
  }
  let turn = 0;
  for (let start = 0; start < body.length; ) {
    const size = cut === 'byte_by_byte' ? 1 : (oddSizes[turn++ % oddSizes.length] ?? 1);
    yield body.subarray(start, start + size);
    start += size;
  }
}
