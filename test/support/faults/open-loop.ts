import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { held } from '../chat-requests.ts';
import type { TestGateway } from '../gateway.ts';

/** What became of one request. */
export interface Sent {
  /** When it was due, in ms from the start of its stream of requests. */
  readonly dueAt: number;
  /** From when it was due to its answer, or until its caller left, in ms. */
  readonly ms: number;
  /** The status of its answer; 0: its caller left. */
  readonly status: number;
  /** `retry-after-ms` of a refusal. */
  readonly retryAfterMs: number | undefined;
  /** Why it was refused. */
  readonly reason: string;
}

/** A stream of requests that does not wait for answers. */
export interface OpenLoop {
  readonly key: string;
  readonly perSecond: number;
  readonly seconds: number;
  /** How long each caller waits for its answer, in ms. */
  readonly patienceMs: number;
  /** How long the vendor takes, in ms. */
  readonly vendorMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Sends held chats at a steady pace, each on time whatever became of the others, and resolves once all have ended.
 * @param onAllSent called when the last one is on its way
 */
export async function sendOpenLoop(
  gateway: TestGateway,
  loop: OpenLoop,
  onAllSent: () => void = () => undefined,
): Promise<Sent[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const startedAt = performance.now();
  const sending: Promise<Sent>[] = [];
  for (let count = 0; count < loop.perSecond * loop.seconds; count++) {
    const dueAt = (count * 1000) / loop.perSecond;
    const early = startedAt + dueAt - performance.now();
    if (early > 1) await delay(early);
    sending.push(sendOne(gateway, loop, agent, startedAt, dueAt));
  }
  onAllSent();
  const sent = await Promise.all(sending);
  agent.destroy();
  return sent;
}

/** Sends one at once. */
export async function sendHeld(gateway: TestGateway, loop: Omit<OpenLoop, 'perSecond' | 'seconds'>): Promise<Sent> {
  const [sent] = await sendOpenLoop(gateway, { ...loop, perSecond: 1, seconds: 1 });
  return sent as Sent;
}

function sendOne(
  gateway: TestGateway,
  { key, patienceMs, vendorMs, headers }: OpenLoop,
  agent: Agent,
  startedAt: number,
  dueAt: number,
): Promise<Sent> {
  const body = JSON.stringify(held('Hi', { max_tokens: 1, sandbox: { first_token_ms: vendorMs } }));
  return new Promise((resolve) => {
    const end = (status: number, body = '', retryAfterMs: number | undefined = undefined): void => {
      clearTimeout(timer);
      const reason = status >= 400 ? (/"message":"([^"\\]*)/.exec(body)?.[1] ?? body) : '';
      resolve({ dueAt, ms: performance.now() - startedAt - dueAt, status, retryAfterMs, reason });
    };
    const call = request(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      agent,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    });
    const timer = setTimeout(() => {
      end(0);
      call.destroy();
    }, patienceMs);
    call.on('error', () => end(0));
    call.on('response', (response) => {
      const after = response.headers['retry-after-ms'];
      response.on('error', () => end(0));
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => end(response.statusCode ?? 0, text, after === undefined ? undefined : Number(after)));
    });
    call.end(body);
  });
}

/** Those with a status. */
export function withStatus(sent: readonly Sent[], ...statuses: readonly number[]): Sent[] {
  return sent.filter(({ status }) => statuses.includes(status));
}

/** The time in ms within which a share of them ended; 0 for none. */
export function quantile(sent: readonly Sent[], share: number): number {
  const times = sent.map(({ ms }) => ms).sort((one, other) => one - other);
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
}
