import { setTimeout as delay } from 'node:timers/promises';
import type { SeededRandom } from '../support/seeded-random.ts';
import { type AnswerPlan, drawPlan, planText } from './answer-plan.ts';
import type { Caller, Deployment } from './deployment.ts';
import { type Exchange, errorCode, exchange, type Sending } from './exchange.ts';
import { readStream, type StreamRead } from './stream-read.ts';

export const clientKinds = ['held', 'stream', 'stream_resumed', 'async', 'keyed', 'video'] as const;
type ClientKind = (typeof clientKinds)[number];

/** How a request ended for its client. */
export type Final =
  /** The whole answer; of a video its file. */
  | { readonly type: 'whole'; readonly text: string; readonly cost?: number | undefined }
  | { readonly type: 'error'; readonly code: string | undefined; readonly status: number | undefined }
  /** Its connection was lost, or it left, and it did not come back. */
  | { readonly type: 'lost' }
  /** It has waited for longer than anything may take. */
  | { readonly type: 'stuck'; readonly why: string };

/** Everything that one client has seen. */
export interface ClientRecord {
  readonly kind: ClientKind;
  readonly plan: AnswerPlan;
  readonly caller: Caller;
  readonly isStream: boolean;
  readonly exchanges: Exchange[];
  /** Streams as they were read, each over one connection. */
  readonly streams: StreamRead[];
  /** Of a stream that ended with an error: what it had said, and what it says to whoever reads it from its beginning. */
  replay?: { readonly had: string; readonly got: string; readonly at: number };
  /** Jobs that were accepted, as far as the client was told. */
  readonly jobIds: Set<string>;
  /** Another final for each client with the same idempotency key. */
  readonly finals: Final[];
  /** Whether it, or somebody for it, has asked for an end. */
  hasCancelled: boolean;
}

/** How clients behave. */
export interface ClientHabits {
  /** What every answer is like, whatever is drawn. */
  readonly answers?: Partial<AnswerPlan> | undefined;
  /** Whether all wait for their answers: none leaves for good or cancels, and most resumed streams are left on the way. */
  readonly areLoyal?: boolean | undefined;
}

/** Longer than deadline and queue together. */
const patienceMs = 150_000;
const chatPath = '/v1/chat/completions';

/** Runs one client to its end. Never rejects. */
export class Client {
  readonly record: ClientRecord;
  readonly #deployment: Deployment;
  readonly #random: SeededRandom;
  readonly #isLoyal: boolean;
  #turn: number;
  #deadline = 0;

  constructor(deployment: Deployment, random: SeededRandom, name: string, { answers, areLoyal }: ClientHabits) {
    this.#deployment = deployment;
    this.#isLoyal = areLoyal ?? false;
    this.#random = random;
    this.#turn = random.int(0, 100);
    const kind = random.weighted<ClientKind>([
      [30, 'held'],
      [30, 'stream'],
      [15, 'stream_resumed'],
      [12, 'async'],
      [10, 'keyed'],
      [3, 'video'],
    ]);
    const plan = { ...drawPlan(random, name), ...answers };
    this.record = {
      // A film's prompt may not be long.
      ...{ kind, plan: kind === 'video' ? { ...plan, filling: 10 } : plan },
      ...{ caller: random.pick(deployment.callers) },
      isStream: kind.startsWith('stream') || (kind === 'keyed' && random.chance(0.5)),
      ...{ exchanges: [], streams: [], jobIds: new Set(), finals: [], hasCancelled: false },
    };
  }

  async run(): Promise<void> {
    this.#deadline = Date.now() + patienceMs;
    const { record } = this;
    try {
      record.finals.push(...(await this.#runKind()));
    } catch (error) {
      record.finals.push({ type: 'stuck', why: `the client cannot read what came: ${error}` });
    }
  }

  async #runKind(): Promise<Final[]> {
    switch (this.record.kind) {
      case 'held':
      case 'stream':
        return [await this.#plain()];
      case 'stream_resumed':
        return [await this.#resumed()];
      case 'async':
        return [await this.#async()];
      case 'keyed':
        // Two at a time with the same key: both must be told the same.
        return this.#random.chance(0.3) ? await Promise.all([this.#keyed(), this.#keyed()]) : [await this.#keyed()];
      case 'video':
        return [await this.#video()];
    }
  }

  /** One that leaves, reads slowly, or waits. */
  async #plain(): Promise<Final> {
    const leave = this.#leaves(0.08) ? { bytes: this.#random.int(1, 4000), ms: this.#random.int(20, 1500) } : undefined;
    const pauseMs = this.#random.chance(0.05) ? this.#random.int(20, 200) : undefined;
    const sent = await this.#post({ leave, ...(pauseMs !== undefined && { pauseMs }) });
    if (sent.hasLeft) this.record.hasCancelled = true;
    const final = this.#finalOf(sent);
    if (this.record.isStream) await this.#replayFailed(final, sent);
    return final;
  }

  /** Goes on where it was, at another api, each time its connection is lost. */
  async #resumed(): Promise<Final> {
    const isLeft = this.#isLoyal && this.#random.chance(0.7);
    const leave = isLeft ? { bytes: this.#random.int(200, 2000), ms: 10_000 } : undefined;
    const first = await this.#post({ leave, headers: { 'x-sluice-on-disconnect': 'continue' } });
    let final = this.#finalOf(first);
    const jobId = first.headers['x-request-id'];
    while (final.type === 'lost' && first.status === 200 && jobId !== undefined) {
      if (this.#isLate) return { type: 'stuck', why: `${jobId} has no end` };
      await delay(200);
      const last = this.record.streams.findLast(({ lastId }) => lastId !== undefined)?.lastId;
      const again = await this.#ask(`/v1/jobs/${jobId}/events`, {
        ...(last !== undefined && { headers: { 'last-event-id': last } }),
      });
      if (again.status === undefined || (again.status >= 500 && !again.isWhole)) continue;
      final = this.#finalOf(again, true);
      // Of the reading, not of the job.
      if (final.type === 'error' && final.status === 503) final = { type: 'lost' };
    }
    await this.#replayFailed(final, first);
    return final;
  }

  /** Reads a stream that ended with an error once more: its beginning must be what was read before. */
  async #replayFailed(final: Final, { headers }: Exchange): Promise<void> {
    const { streams } = this.record;
    if (final.type !== 'error' || final.status !== 200 || streams.length === 0) return;
    const had = streams.map(({ text }) => text).join('');
    const replay = await this.#ask(`/v1/jobs/${headers['x-request-id']}/events`, {});
    if (replay.status !== 200 || !replay.isWhole) return;
    this.record.replay = { had, got: readStream(replay).text, at: replay.at };
  }

  async #async(): Promise<Final> {
    const sent = await this.#post({ headers: { prefer: 'respond-async' } });
    if (sent.status === undefined || !sent.isWhole) return { type: 'lost' };
    if (sent.status !== 202) return { type: 'error', code: errorCode(sent), status: sent.status };
    const { id } = JSON.parse(sent.bytes.toString()) as { id: string };
    this.record.jobIds.add(id);
    if (this.#leaves(0.1)) await this.#cancel(`/v1/jobs/${id}`);
    return await this.#watch(`/v1/jobs/${id}`, (job) => ({
      type: 'whole',
      text: textOfBody((job as { result: unknown }).result),
      cost: nanoDollars((job as { cost: number | null }).cost),
    }));
  }

  /** Asks until it is answered, with the same key. */
  async #keyed(): Promise<Final> {
    const headers = { 'idempotency-key': this.record.plan.marker };
    for (let tries = 1; ; tries++) {
      const sent = await this.#post({ headers });
      const final = this.#finalOf(sent);
      const isWorthIt = final.type === 'lost' || (final.type === 'error' && (final.status ?? 200) >= 429);
      if (!isWorthIt || tries === 12) return final;
      if (this.#isLate) return final.type === 'lost' ? { type: 'stuck', why: 'it was never answered' } : final;
      await delay(300);
    }
  }

  async #video(): Promise<Final> {
    const body = { model: 'sandbox-video', prompt: planText(this.record.plan) };
    const sent = await this.#ask('/v1/videos', { body });
    if (sent.status === undefined || !sent.isWhole) return { type: 'lost' };
    if (sent.status !== 200) return { type: 'error', code: errorCode(sent), status: sent.status };
    const { id } = JSON.parse(sent.bytes.toString()) as { id: string };
    this.record.jobIds.add(id.replace(/^video_/, 'job_'));
    if (this.#leaves(0.1)) await this.#cancel(`/v1/jobs/${id.replace(/^video_/, 'job_')}`);
    const final = await this.#watch(`/v1/videos/${id}`, () => ({ type: 'whole', text: '' }));
    if (final.type !== 'whole') return final;
    while (!this.#isLate) {
      const { status, isWhole, bytes } = await this.#ask(`/v1/videos/${id}/content`, {});
      if (status === 200 && isWhole) return { type: 'whole', text: bytes.toString() };
      if (status !== undefined && status < 500) return { type: 'stuck', why: `its file is answered with ${status}` };
      await delay(500);
    }
    return { type: 'stuck', why: 'its file cannot be read' };
  }

  /** Whether it does not wait for its answer, so often. */
  #leaves(share: number): boolean {
    return this.#random.chance(share) && !this.#isLoyal;
  }

  async #cancel(path: string): Promise<void> {
    await delay(this.#random.int(0, 400));
    this.record.hasCancelled = true;
    await this.#ask(path, { method: 'DELETE' });
  }

  /** Reads a job or a video until it has ended. */
  async #watch(path: string, completed: (body: object) => Final): Promise<Final> {
    let why = 'it was never answered';
    while (!this.#isLate) {
      await delay(300);
      const read = await this.#ask(path, {});
      if (read.status === undefined || !read.isWhole) continue;
      if (read.status !== 200) {
        why = `reading it is answered with ${read.status} ${errorCode(read)}`;
        if (read.status < 500 && read.status !== 429) return { type: 'stuck', why };
        continue;
      }
      const body = JSON.parse(read.bytes.toString()) as { status: string; error?: { code?: string } | null };
      why = `it is ${body.status}`;
      if (body.status === 'completed') return completed(body);
      if (body.status === 'failed' || body.status === 'cancelled') {
        return { type: 'error', code: body.error?.code ?? body.status, status: undefined };
      }
    }
    return { type: 'stuck', why };
  }

  get #isLate(): boolean {
    return Date.now() > this.#deadline;
  }

  async #post(sending: Omit<Sending, 'patienceMs'>): Promise<Exchange> {
    const { plan, isStream } = this.record;
    const body = {
      ...{ model: 'sandbox-chat', stream: isStream, max_tokens: 1000, metadata: { marker: plan.marker } },
      messages: [{ role: 'user', content: planText(plan) }],
    };
    const sent = await this.#ask(chatPath, { ...sending, body });
    const jobId = sent.headers['x-request-id'];
    if (sent.status === 200 && jobId !== undefined) this.record.jobIds.add(String(jobId));
    return sent;
  }

  async #ask(path: string, sending: Omit<Sending, 'patienceMs'>): Promise<Exchange> {
    const leftMs = Math.max(1000, this.#deadline + 5000 - Date.now());
    const url = this.#deployment.apiUrl(this.#turn++);
    const sent = await exchange(url, path, this.record.caller.key, { patienceMs: leftMs, ...sending });
    this.record.exchanges.push(sent);
    return sent;
  }

  #finalOf(sent: Exchange, isStream = this.record.isStream): Final {
    if (sent.status === undefined) return this.#lost(sent);
    if (sent.status !== 200) {
      return sent.isWhole ? { type: 'error', code: errorCode(sent), status: sent.status } : this.#lost(sent);
    }
    if (isStream) return this.#streamFinal(sent);
    if (!sent.isWhole) return this.#lost(sent);
    const cost = sent.headers['x-sluice-cost'];
    const text = textOfBody(JSON.parse(sent.bytes.toString()));
    return { type: 'whole', text, cost: cost === undefined ? undefined : nanoDollars(Number(cost)) };
  }

  #streamFinal(sent: Exchange): Final {
    const read = readStream(sent);
    this.record.streams.push(read);
    if (read.end === 'error') return { type: 'error', code: read.code, status: 200 };
    if (read.end === undefined) return this.#lost(sent);
    // A resume goes on; a repeat with the same key begins anew.
    const isResumed = this.record.kind === 'stream_resumed';
    return { type: 'whole', text: isResumed ? this.record.streams.map(({ text }) => text).join('') : read.text };
  }

  #lost({ hasLeft, at, endedAt, path }: Exchange): Final {
    const isStuck = !hasLeft && endedAt - at >= patienceMs - 1000;
    return isStuck ? { type: 'stuck', why: `${path} was not answered in ${endedAt - at} ms` } : { type: 'lost' };
  }
}

function nanoDollars(dollars: number | null): number | undefined {
  return dollars === null ? undefined : Math.round(dollars * 1e9);
}

function textOfBody(body: unknown): string {
  return (body as { choices?: { message?: { content?: string } }[] } | null)?.choices?.[0]?.message?.content ?? '';
}
