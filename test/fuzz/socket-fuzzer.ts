import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { TestGateway } from '../support/gateway.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { type Draft, drawEdit, type Edit, everyKindOfPlace } from './edits.ts';
import { complaintOfEvent } from './judge.ts';
import { responseRequests, type Sample } from './samples.ts';
import { drawFrames, type Frames } from './socket-frames.ts';
import { makeTenant, operatorSettings, type Tenant } from './tenants.ts';

export interface SocketFinding {
  readonly what: readonly string[];
  readonly complaint: string;
}

export interface SocketFuzzReport {
  readonly seed: number;
  readonly sent: number;
  readonly findings: readonly SocketFinding[];
}

/** How long a message may stay without any answer. */
const answerMs = 25_000;
/** Messages on one socket at most: its lanes and its idle time come into play. */
const messagesPerSocket = 20;

/** Messages and frames, valid, changed and hostile, on `/v1/responses` and on a job's socket. */
export class SocketFuzzer {
  readonly #gateway: TestGateway;
  readonly #random: SeededRandom;
  readonly #findings = new Map<string, SocketFinding>();
  #tenant: Tenant;
  #sent = 0;

  private constructor(gateway: TestGateway, tenant: Tenant, random: SeededRandom) {
    this.#gateway = gateway;
    this.#tenant = tenant;
    this.#random = random;
  }

  static async run(options: { seed?: number | undefined; messages: number; lanes: number }): Promise<SocketFuzzReport> {
    const random = new SeededRandom(options.seed);
    const gateway = await TestGateway.start({ settings: { ...operatorSettings, SLUICE_DEADLINE_SECONDS: '15' } });
    try {
      const fuzzer = new SocketFuzzer(gateway, await makeTenant(gateway), random);
      await Promise.all(
        Array.from({ length: options.lanes }, (_, lane) => fuzzer.#lane(random.fork(lane), options.messages)),
      );
      return { seed: random.seed, sent: fuzzer.#sent, findings: [...fuzzer.#findings.values()] };
    } finally {
      await gateway.stop();
    }
  }

  async #lane(random: SeededRandom, messages: number): Promise<void> {
    while (this.#sent < messages) {
      if (random.chance(0.2)) await this.#frames(drawFrames(random));
      else await this.#messages(random);
      await this.#noteDeath();
    }
  }

  #open(path: string): WebSocket {
    const url = this.#gateway.apis.at(-1)?.url.replace('http', 'ws');
    return new WebSocket(`${url}${path}`, { headers: { ...this.#tenant.headers.key } });
  }

  /** Some messages one after the other, each answered before the next. */
  async #messages(random: SeededRandom): Promise<void> {
    const socket = this.#open('/v1/responses');
    socket.on('error', () => undefined);
    try {
      await once(socket, 'open', { signal: AbortSignal.timeout(answerMs) });
      for (let count = 0; count < messagesPerSocket && socket.readyState === WebSocket.OPEN; count++) {
        const { text, names } = this.#drawMessage(random);
        this.#sent++;
        await this.#ask(socket, text, names);
      }
    } catch {
      // Refused, or the api has ended: that is noted beside.
    } finally {
      socket.terminate();
    }
  }

  #drawMessage(random: SeededRandom): { text: string; names: string[] } {
    const request = random.pick<object>(responseRequests);
    const message = random.chance(0.9)
      ? {
          type: 'response.create',
          ...request,
          stream: undefined,
          stream_id: 'a',
          generate: random.chance(0.9) ? undefined : false,
        }
      : { type: 'response.cancel', stream_id: 'a', response_id: '$response' };
    const json: unknown = JSON.parse(JSON.stringify(message).replaceAll('$response', this.#tenant.ids.response));
    const sample: Sample = { route: 'POST /v1/responses', credential: 'key', json };
    const edits = Array.from({ length: random.int(0, 2) }, (): Edit => drawBodyEdit(random, sample));
    // What is of the wrong kind at one place is what code expects least.
    if (random.chance(0.5)) edits.splice(0, edits.length, random.pick(everyKindOfPlace(sample)));
    const draft: Draft = {
      ...{ method: '', path: '', query: '', headers: {}, form: undefined, spoil: [] },
      json: structuredClone(json),
    };
    for (const edit of edits) edit.apply(draft);
    const bytes = draft.spoil.reduce<Buffer>((all, spoil) => spoil(all), Buffer.from(JSON.stringify(draft.json) ?? ''));
    const type = (message as { type: string }).type;
    return { text: bytes.toString(), names: [type, ...edits.map(({ name }) => name)] };
  }

  /** Sends one message, and reads to the end of what it comes to. */
  async #ask(socket: WebSocket, text: string, names: readonly string[]): Promise<void> {
    const ended = new Promise<string | undefined>((resolve) => {
      const timer = setTimeout(() => resolve('no answer in time'), answerMs);
      const done = (complaint: string | undefined): void => {
        clearTimeout(timer);
        socket.off('message', read);
        socket.off('close', closed);
        resolve(complaint);
      };
      const read = (data: unknown): void => {
        const { isLast, complaint } = complaintOfEvent(String(data));
        if (complaint !== undefined || isLast) done(complaint);
      };
      const closed = (code: number): void => done(code === 1006 || code === 1011 ? `closed with ${code}` : undefined);
      socket.on('message', read);
      socket.on('close', closed);
    });
    socket.send(text);
    this.#note(names, await ended);
  }

  /** Frames as no client library makes them. The socket may be closed; the api has to live on. */
  async #frames({ name, bytes }: Frames): Promise<void> {
    const path = this.#random.chance(0.3) ? `/v1/jobs/${this.#tenant.ids.job}/ws` : '/v1/responses';
    const socket = this.#open(path);
    socket.on('error', () => undefined);
    try {
      await once(socket, 'open', { signal: AbortSignal.timeout(answerMs) });
      const raw = (socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket;
      for (const part of bytes) {
        raw.write(part);
        await delay(1);
      }
      this.#sent++;
      await delay(30);
    } catch {
      // The api has ended, or it refuses sockets.
    }
    socket.terminate();
    await this.#noteDeath(name);
  }

  /** Whether the api has ended; another one is started then. */
  async #noteDeath(name = 'a message'): Promise<boolean> {
    const api = this.#gateway.apis.at(-1);
    if (api === undefined || (api.child.exitCode === null && api.child.signalCode === null)) return false;
    const stack = /"stack":"(.*?)"[,}]|(\w*Error: .*)/.exec(api.output().slice(-3000))?.[0] ?? '';
    this.#note([name], `the process ends: ${stack.slice(0, 300)}`);
    // Of all lanes only the first one finds it dead.
    if (this.#gateway.apis.at(-1) === api) await this.#gateway.startApi();
    return true;
  }

  #note(what: readonly string[], complaint: string | undefined): void {
    if (complaint === undefined) return;
    const key = complaint.replace(/\d{2,}|[0-9a-f]{8,}/g, '#').slice(0, 160);
    if (!this.#findings.has(key)) this.#findings.set(key, { what, complaint });
  }
}

/** A change of the message itself: it has no headers. */
function drawBodyEdit(random: SeededRandom, sample: Sample): Edit {
  for (;;) {
    const edit = drawEdit(random, sample);
    if (/^(json|body)/.test(edit.name)) return edit;
  }
}
