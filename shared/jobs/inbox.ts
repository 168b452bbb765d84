import { setTimeout as delay } from 'node:timers/promises';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient, RedisHandle } from '../redis/redis.ts';
import type { Logger } from '../runtime/log.ts';

/** Ping interval of a subscribed connection: a half-open one would stay silent forever. */
const pingMs = 5000;
/** Pause between attempts to subscribe anew: Redis may refuse for as long as its user lacks a right. */
const againMs = 1000;
/** How many of them a Cluster's client may fail for lack of any connection to subscribe by, before another takes its place. */
const maxOrphaned = 3;
/** ioredis's error for a channel of a node to which it has no such connection. */
const withoutConnection = /^No sharded subscriber/;

/** Stands between messages that are published as one. As bytes: a text would be encoded at each search. */
const emptyLine = Buffer.from('\n\n');

/**
 * The id under which an api process is registered as a reader: the sign at its end says that it accepts several messages in
 * one (see append.lua), which processes of releases before do not.
 */
export function readerOf(processId: string): string {
  return `${processId}+`;
}

/** Receives a process's messages: batches of frames for a job it reads; for a job it runs, an abort or that it has a new reader. */
export interface InboxListener {
  /** `text` from `start` on is a batch; see append.ts. It is a string of its own: what is kept of it keeps no other job's. */
  frames?(jobId: string, text: string, start: number): void;
  abort?(jobId: string): void;
  readerAdded?(jobId: string): void;
  /** The subscription was lost and restored: messages may have been missed. */
  resubscribed?(): void;
}

/**
 * A process's live channels, one per job tag, subscribed once for its whole life, so that registering a reader before its job
 * is enqueued costs no round trip. Delivery is at most once; readers fill gaps from the log.
 */
export class Inbox {
  readonly #redis: RedisHandle;
  readonly #channels: string[];
  #subscriber: RedisClient;
  readonly #listener: InboxListener;
  readonly #log: Logger;
  readonly #ping: NodeJS.Timeout;
  /** Counts restorations, of which only the last goes on; `close` ends it, too. */
  #restoration = 0;

  private constructor(redis: RedisHandle, processId: string, listener: InboxListener, log: Logger) {
    this.#redis = redis;
    this.#channels = jobKeys.inboxes(processId);
    this.#listener = listener;
    this.#log = log;
    this.#subscriber = this.#connect();
    this.#ping = setInterval(() => this.#subscriber.ping().catch(() => undefined), pingMs);
    this.#ping.unref();
  }

  /** Opens the inbox. Resolves once every channel is subscribed. */
  static async open(redis: RedisHandle, processId: string, listener: InboxListener, log: Logger): Promise<Inbox> {
    const inbox = new Inbox(redis, processId, listener, log);
    const [failure] = await inbox.#subscribe();
    if (failure !== undefined) throw failure;
    inbox.#restoreOnReconnect();
    return inbox;
  }

  #connect(): RedisClient {
    const subscriber = this.#redis.subscriber();
    const onMessage = (_channel: Buffer, message: Buffer): void => this.#receiveAll(message);
    return subscriber.on(this.#redis.isCluster ? 'smessageBuffer' : 'messageBuffer', onMessage);
  }

  #restoreOnReconnect(): void {
    // A Cluster's client replaces the connection to one node by itself, without a word of what was missed or refused.
    for (const event of ['ready', 'subscribersReady']) this.#subscriber.on(event, () => void this.#restore());
  }

  /** Returns the errors of channels that could not be subscribed. */
  #subscribe(): Promise<Error[]> {
    if (!this.#redis.isCluster) return failuresOf([this.#subscriber.subscribe(...this.#channels)]);
    // One channel per call: a sharded subscription may name channels of one slot only.
    return failuresOf(this.#channels.map((channel) => this.#subscriber.ssubscribe(channel)));
  }

  /** A Cluster's client keeps each channel as often as it was asked for, and asks for all of them whenever it replaces a connection. */
  async #forgetChannels(): Promise<Error[]> {
    if (!this.#redis.isCluster) return [];
    return await failuresOf(this.#channels.map((channel) => this.#subscriber.sunsubscribe(channel)));
  }

  /** Subscribes over a new connection, again and again while Redis refuses: nothing else would until the next connection. */
  async #restore(): Promise<void> {
    const restoration = ++this.#restoration;
    for (let failures = 0; restoration === this.#restoration; failures++) {
      const errors = (await Promise.all([this.#forgetChannels(), this.#subscribe()])).flat();
      if (restoration !== this.#restoration) return;
      if (errors.length === 0) {
        this.#listener.resubscribed?.();
        if (failures > 0) this.#log.info('subscribed to answers again');
        return;
      }
      if (failures === 0)
        this.#log.warn({ err: errors[0] }, 'subscribing to answers failed; it is tried again each second');
      if (failures >= maxOrphaned && this.#isOrphaned(errors)) return this.#replace();
      await delay(againMs, undefined, { ref: false });
    }
  }

  /** Whether the client has not one connection to subscribe by: while one node is away, it has those to the others. */
  #isOrphaned(errors: readonly Error[]): boolean {
    return (
      errors.length === 2 * this.#channels.length && errors.every(({ message }) => withoutConnection.test(message))
    );
  }

  /**
   * Subscribes by another client. When ioredis (6.0) connects anew to a whole Cluster while it opens a connection to subscribe by, it
   * waits for that one for ever, and never opens another: nothing would be heard until the process is restarted.
   */
  #replace(): void {
    this.#log.warn('no connection to subscribe by: the client of the Cluster is replaced');
    this.#subscriber.disconnect();
    this.#subscriber = this.#connect();
    this.#restoreOnReconnect();
  }

  /** A message is one for each job, with an empty line between them, which no batch has. */
  #receiveAll(messages: Buffer): void {
    let from = 0;
    for (let to = messages.indexOf(emptyLine); to >= 0; to = messages.indexOf(emptyLine, from)) {
      this.#receive(messages.toString('utf8', from, to));
      from = to + emptyLine.length;
    }
    this.#receive(messages.toString('utf8', from));
  }

  #receive(message: string): void {
    const space = message.indexOf(' ');
    const head = message.slice(0, space);
    try {
      if (head === 'abort') this.#listener.abort?.(message.slice(space + 1));
      else if (head === 'reader') this.#listener.readerAdded?.(message.slice(space + 1));
      else this.#listener.frames?.(head, message, space + 1);
    } catch (error) {
      this.#log.error({ err: error }, 'handling a live message failed');
    }
  }

  close(): void {
    this.#restoration++;
    clearInterval(this.#ping);
    this.#subscriber.disconnect();
  }
}

/** Returns the errors of calls that failed, once all have ended. */
async function failuresOf(calls: readonly Promise<unknown>[]): Promise<Error[]> {
  const settled = await Promise.allSettled(calls);
  return settled.flatMap((call) => (call.status === 'rejected' ? [call.reason as Error] : []));
}
