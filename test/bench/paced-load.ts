/** A load at a steady rate, whatever becomes of its requests, over connections that stay open. */
import { setTimeout as delay } from 'node:timers/promises';
import { RawConnection } from './raw-connection.ts';

const tickMs = 2;

export interface PacedLoadOptions {
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  readonly perSecond: number;
  readonly connections: number;
}

/** Sends requests that are due on connections without one; what finds none waits for the next tick. */
export class PacedLoad {
  /** Answers by status; 0: the connection was lost. */
  readonly answers = new Map<number, number>();
  sent = 0;
  readonly #options: PacedLoadOptions;
  readonly #request: Buffer;
  readonly #idle: RawConnection[] = [];
  readonly #open = new Set<RawConnection>();
  readonly #running: Promise<void>;
  #isOver = false;

  constructor(options: PacedLoadOptions) {
    this.#options = options;
    const { host } = new URL(options.origin);
    const body = JSON.stringify(options.body);
    const headers = {
      ...{ host, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      ...options.headers,
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#request = Buffer.from(`POST ${options.path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
    for (let count = 0; count < options.connections; count++) this.#connect();
    this.#running = this.#run();
  }

  /** So many answers with this status so far. */
  count(status: number): number {
    return this.answers.get(status) ?? 0;
  }

  /** Sends no more, and resolves when what is under way is answered, or after five seconds. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
    for (let waited = 0; waited < 5000 && this.#idle.length < this.#open.size; waited += 20) await delay(20);
    for (const connection of this.#open) connection.close();
  }

  #connect(): void {
    const { hostname: host, port } = new URL(this.#options.origin);
    let isUsed = false;
    const connection: RawConnection = new RawConnection(
      { host, port: Number(port) },
      {
        onAnswer: ({ status }) => {
          isUsed = false;
          this.#note(status);
          this.#idle.push(connection);
        },
        onClose: () => {
          this.#open.delete(connection);
          const at = this.#idle.indexOf(connection);
          if (at >= 0) this.#idle.splice(at, 1);
          else if (isUsed) this.#note(0);
          if (!this.#isOver) this.#connect();
        },
      },
    );
    const send = connection.send.bind(connection);
    connection.send = (request) => {
      isUsed = true;
      send(request);
    };
    this.#open.add(connection);
    this.#idle.push(connection);
  }

  #note(status: number): void {
    this.answers.set(status, this.count(status) + 1);
  }

  async #run(): Promise<void> {
    const startedAt = performance.now();
    while (!this.#isOver) {
      const due = ((performance.now() - startedAt) / 1000) * this.#options.perSecond;
      for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
        if (this.sent >= due) {
          this.#idle.push(connection);
          break;
        }
        this.sent++;
        connection.send(this.#request);
      }
      await delay(tickMs);
    }
  }
}
