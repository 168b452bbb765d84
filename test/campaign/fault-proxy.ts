import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What becomes of the bytes that go through. */
export type LinkState =
  | 'open'
  /** Connections are reset, new ones too. */
  | 'cut'
  /** What is sent does not arrive. */
  | 'requests_lost'
  /** What is sent arrives; what comes back does not. */
  | 'replies_lost';

/** Stands between two parts of a deployment, whatever they speak, and can lose what goes through. */
export class FaultProxy {
  /** Where connections go. May be changed: those that are open stay. */
  targetPort: number;
  /** How much later each piece arrives, in either direction, in ms. */
  delayMs = 0;
  #state: LinkState = 'open';
  #trap: { readonly text: string; readonly sprung: () => void } | undefined;
  readonly #pairs = new Set<[Socket, Socket]>();
  readonly #server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));

  private constructor(targetPort: number) {
    this.targetPort = targetPort;
  }

  static async start(targetPort: number): Promise<FaultProxy> {
    const proxy = new FaultProxy(targetPort);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Begins to lose, or ends: connections that have lost something are reset then. */
  set(state: LinkState): void {
    const before = this.#state;
    this.#state = state;
    this.#trap = undefined;
    if (state === 'cut' || (state === 'open' && before !== 'open')) this.reset();
  }

  /** Loses requests from the one on that contains this text. Resolves when it has come. */
  loseFrom(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#trap = { text, sprung: resolve };
    });
  }

  /** Resets every connection. */
  reset(): void {
    for (const [client, server] of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  }

  async close(): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    if (this.#state === 'cut') {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: this.targetPort, host: '127.0.0.1', allowHalfOpen: true });
    const pair: [Socket, Socket] = [client, server];
    this.#pairs.add(pair);
    this.#forward(client, server, 'requests_lost');
    this.#forward(server, client, 'replies_lost');
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#pairs.delete(pair);
        // A reset goes on as a reset, an orderly end as one.
        for (const other of pair) if (!other.writableEnded) other.resetAndDestroy();
      });
    }
  }

  #forward(from: Socket, to: Socket, losing: LinkState): void {
    from.on('data', (bytes) => {
      if (losing === 'requests_lost' && this.#trap !== undefined && bytes.includes(this.#trap.text)) {
        this.#state = losing;
        this.#trap.sprung();
      }
      if (this.#state === losing || to.destroyed) return;
      if (this.delayMs > 0) {
        // Equal delays end in the order in which they began.
        setTimeout(() => to.destroyed || to.write(bytes), this.delayMs);
      } else if (!to.write(bytes)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
    });
    from.on('end', () => to.end());
  }
}
