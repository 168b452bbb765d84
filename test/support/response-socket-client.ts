import assert from 'node:assert/strict';
import { once } from 'node:events';
import type OpenAI from 'openai';
import { type ClientOptions, WebSocket } from 'ws';

/** A message of a response socket: an event of OpenAI's stream, or `error`. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into events of every kind
export type SocketEvent = { readonly type: string } & Record<string, any>;

/** The events of one turn, to its last. */
export interface Turn {
  readonly events: SocketEvent[];
  /** The last event: of the type `response.completed` and the like, or `error`. */
  readonly last: SocketEvent;
  /** The response as the last event shows it. */
  readonly response: OpenAI.Responses.Response;
  /** The text that its deltas make. */
  readonly text: string;
}

const lastTypes = ['response.completed', 'response.failed', 'response.incomplete', 'error'];

/** A client of the WebSocket mode of `/v1/responses`. */
export class ResponseSocketClient {
  readonly webSocket: WebSocket;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
  /** All that has come and was not taken by `next`. */
  readonly #events: SocketEvent[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;

  /** @param base an api's URL, `http://…` */
  static async open(base: string, options: ClientOptions & { key: string }): Promise<ResponseSocketClient> {
    const { key, ...more } = options;
    const headers = { authorization: `Bearer ${key}`, ...more.headers };
    const client = new ResponseSocketClient(
      new WebSocket(`${base.replace(/^http/, 'ws')}/v1/responses`, { ...more, headers }),
    );
    await once(client.webSocket, 'open');
    client.webSocket.on('error', () => undefined);
    return client;
  }

  private constructor(webSocket: WebSocket) {
    this.webSocket = webSocket;
    webSocket.on('message', (data, isBinary) => {
      assert.equal(isBinary, false, 'messages are text');
      this.#events.push(JSON.parse(String(data)));
      this.#wake?.();
    });
    this.closed = new Promise((resolve) => {
      webSocket.once('close', (code) => {
        this.#isClosed = true;
        this.#wake?.();
        resolve(code);
      });
    });
  }

  send(message: object): void {
    this.webSocket.send(JSON.stringify(message));
  }

  /** Sends a request for a response of `sandbox-chat`, unless it names another model. */
  create(fields: object): void {
    this.send({ type: 'response.create', model: 'sandbox-chat', ...fields });
  }

  /** The next event. @throws Error when the socket is closed before. */
  async next(): Promise<SocketEvent> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) return event;
      if (this.#isClosed) throw new Error('the socket is closed');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Waits for the first event of a type, and takes all before it. */
  async until(type: string): Promise<SocketEvent> {
    for (;;) {
      const event = await this.next();
      if (event.type === type) return event;
      if (event.type === 'error') throw new Error(JSON.stringify(event));
    }
  }

  /** The events of the turn under way; `fields` is a request to be sent before. */
  async turn(fields?: object): Promise<Turn> {
    if (fields !== undefined) this.create(fields);
    const events: SocketEvent[] = [];
    for (;;) {
      const event = await this.next();
      events.push(event);
      if (lastTypes.includes(event.type)) return asTurn(events);
    }
  }

  /** The error with which the request is answered. */
  async refusal(fields?: object): Promise<SocketEvent> {
    const { events } = await this.turn(fields);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['error'],
    );
    return events[0] as SocketEvent;
  }
}

/** The events of one turn, the last among them. */
export function asTurn(events: SocketEvent[]): Turn {
  const last = events.at(-1) as SocketEvent;
  const deltas = events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta);
  return { events, last, response: last.response, text: deltas.join('') };
}
