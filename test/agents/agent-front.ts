import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * Stands between an agent and the gateway and notes what the agent asks for. It is the agent's proxy to everybody else, too:
 * what it asks of others is noted and refused, so that no test reaches the internet.
 */
export class AgentFront {
  /** Requests to the gateway, such as `POST /v1/responses`; one that becomes a WebSocket begins with `WebSocket`. */
  readonly requests: string[] = [];
  /** Hosts and addresses of others that were asked for. */
  readonly elsewhere: string[] = [];
  readonly #target: URL;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((request, response) => this.#forward(request, response));
    this.#server.on('upgrade', (request, socket, head) => this.#forwardSocket(request, socket, head));
    this.#server.on('connect', (request, socket) => {
      this.elsewhere.push(String(request.url));
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    });
  }

  /** @param target the gateway's base URL, without `/v1` */
  static async start(target: string): Promise<AgentFront> {
    const front = new AgentFront(target);
    front.#server.listen(0, '127.0.0.1');
    await once(front.#server, 'listening');
    return front;
  }

  /** Base URL for the agent, without `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Environment that sends the agent's calls to others here. */
  get proxySettings(): Record<string, string> {
    const own = '127.0.0.1,localhost';
    const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
    const proxies = names.flatMap((name) => [name, name.toLowerCase()].map((spelled) => [spelled, this.url]));
    return { ...Object.fromEntries(proxies), NO_PROXY: own, no_proxy: own };
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const { method, url = '/', headers } = incoming;
    if (!url.startsWith('/')) {
      this.elsewhere.push(url);
      response.writeHead(403).end();
      return;
    }
    this.requests.push(`${method} ${url}`);
    const outgoing = request(new URL(url, this.#target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode as number, answer.headers);
      answer.pipe(response);
      answer.once('error', () => response.destroy());
    });
    outgoing.once('error', () => response.destroy());
    response.once('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }

  #forwardSocket(incoming: IncomingMessage, client: Duplex, head: Buffer): void {
    this.requests.push(`WebSocket ${incoming.url}`);
    const gateway = connect(Number(this.#target.port), this.#target.hostname);
    const lines = [`GET ${incoming.url} HTTP/1.1`];
    for (let index = 0; index < incoming.rawHeaders.length; index += 2) {
      lines.push(`${incoming.rawHeaders[index]}: ${incoming.rawHeaders[index + 1]}`);
    }
    gateway.write(`${lines.join('\r\n')}\r\n\r\n`);
    gateway.write(head);
    for (const [from, to] of [
      [client, gateway],
      [gateway, client],
    ] as const) {
      this.#sockets.add(from);
      from.pipe(to);
      from.once('error', () => to.destroy());
      from.once('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }
}
