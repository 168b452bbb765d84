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
  #trap: { readonly text: string; readonly losing: 'command' | 'replies'; readonly sprung: () => void } | undefined;
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

  /**
   * Waits for a command to Redis that contains this text. Until the next `set` Redis refuses such commands, and no others; or it
   * does them, and from then on no reply arrives. Resolves with the first one.
   */
  lose(losing: 'command' | 'replies', text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#trap = { text, losing, sprung: resolve };
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

  /** What becomes of a request to Redis that may be one that is waited for. */
  #trapped(bytes: Buffer): Buffer {
    if (this.#trap === undefined || !bytes.includes(this.#trap.text)) return bytes;
    const { text, losing, sprung } = this.#trap;
    sprung();
    if (losing === 'replies') {
      this.#state = 'replies_lost';
      return bytes;
    }
    return Buffer.concat(splitCommands(bytes).map((command) => (command.includes(text) ? refusedCommand : command)));
  }

  #forward(from: Socket, to: Socket, losing: LinkState): void {
    from.on('data', (received) => {
      const bytes = losing === 'requests_lost' ? this.#trapped(received) : received;
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

/** A command that Redis refuses, as it does all that write when it is full. */
const refusedCommand = toCommand(['eval', "return redis.error_reply('OOM command not allowed')", '0']);

function toCommand(parts: readonly string[]): Buffer {
  return Buffer.from(`*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`);
}

/** The commands of a request to Redis (RESP arrays of bulk strings), each with all its bytes; what is not whole stays as it is. */
function splitCommands(bytes: Buffer): Buffer[] {
  const commands: Buffer[] = [];
  const readNumber = (type: string, at: number): { value: number; next: number } => {
    const end = bytes.indexOf('\r\n', at);
    const value =
      end === -1 || bytes.toString('latin1', at, at + 1) !== type ? Number.NaN : Number(bytes.subarray(at + 1, end));
    return { value, next: end + 2 };
  };
  for (let from = 0; from < bytes.length; ) {
    const head = readNumber('*', from);
    let at = head.next;
    for (let part = 0; part < head.value; part++) {
      const { value, next } = readNumber('$', at);
      at = next + value + 2;
    }
    if (Number.isNaN(head.value) || !(at <= bytes.length)) return [...commands, bytes.subarray(from)];
    commands.push(bytes.subarray(from, at));
    from = at;
  }
  return commands;
}
