import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** What a request is sent with beside its body. */
export interface RawHead {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The address to call from; left out: the system's choice. */
  readonly from?: string;
}

/** A request whose body is sent by hand, as slowly and as little of it as a test likes. */
export class RawRequest {
  readonly socket: Socket;
  /** What has come so far. */
  text = '';
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
  #wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('error', () => undefined);
    socket.on('data', (text) => {
      this.text += text;
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#wake();
        resolve();
      });
    });
  }

  /** Connects to an api (`http://127.0.0.1:port`) and sends the head. */
  static async open(url: string, head: RawHead = {}): Promise<RawRequest> {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), localAddress: head.from });
    await once(socket, 'connect');
    const headers = {
      host,
      ...(head.key === undefined ? {} : { authorization: `Bearer ${head.key}` }),
      'content-type': 'application/json',
      ...head.headers,
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.write(
      `${head.method ?? 'POST'} ${head.path ?? '/v1/chat/completions'} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`,
    );
    return new RawRequest(socket);
  }

  /** Sends bytes, and waits until they are on their way, or the connection is closed. */
  async send(bytes: string | Uint8Array): Promise<void> {
    if (!this.socket.destroyed && !this.socket.write(bytes)) {
      await Promise.race([once(this.socket, 'drain').catch(() => undefined), this.closed]);
    }
  }

  /** The answer's status and body (of an answer with a length), as soon as they have come; the connection ends when they do not. */
  async answer(ms = 15_000): Promise<{ readonly status: number; readonly body: string; readonly head: string }> {
    const late = setTimeout(() => this.socket.destroy(), ms);
    try {
      return await this.#answer();
    } finally {
      clearTimeout(late);
    }
  }

  async #answer(): Promise<{ readonly status: number; readonly body: string; readonly head: string }> {
    for (;;) {
      const end = this.text.indexOf('\r\n\r\n');
      const head = this.text.slice(0, Math.max(0, end));
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      if (end >= 0 && this.text.length >= end + 4 + length) {
        return { status: Number(head.slice(9, 12)), head, body: this.text.slice(end + 4, end + 4 + length) };
      }
      if (this.socket.destroyed) throw new Error(`the connection was closed: ${this.text.slice(0, 500)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
