import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { longKeepAliveMs } from './long-keep-alive.ts';

/** A reverse proxy before one api: it calls the api by the api's own name, and says in headers what it was called. */
export class Ingress {
  /** Its own address: what `PUBLIC_URL` names. */
  readonly url: string;
  readonly #server: Server;
  /** Where the api listens: `http://127.0.0.1:port`. */
  upstream = '';

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://localhost:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<Ingress> {
    // Its clients read in the api's headers how long a connection stays.
    const server = createServer({ keepAliveTimeout: longKeepAliveMs }, (incoming, outgoing) => {
      const { host = '', ...headers } = incoming.headers;
      const forwarded = request(
        new URL(incoming.url ?? '/', ingress.upstream),
        {
          method: incoming.method,
          headers: {
            ...headers,
            'x-forwarded-for': incoming.socket.remoteAddress,
            'x-forwarded-host': host,
            'x-forwarded-proto': 'http',
          },
        },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          pipeline(answer, outgoing, () => undefined);
        },
      );
      forwarded.on('error', () => outgoing.destroy());
      outgoing.once('close', () => forwarded.destroy());
      pipeline(incoming, forwarded, () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const ingress = new Ingress(server);
    return ingress;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
