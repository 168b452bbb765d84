import { Cluster, type Redis } from 'ioredis';

/**
 * Maximum number of commands waiting for a lost connection; further ones are rejected. Far more than a full process has in
 * flight, as each of its jobs waits for its last command.
 */
const maxOffline = 20_000;

type Command = Parameters<Redis['sendCommand']>[0];

/**
 * Batches a connection's commands: one write for all commands issued while the previous batch was unanswered, and at least for
 * all of one event-loop turn. ioredis writes each command separately, and under load those system calls, and Redis's own for
 * each small read, were a third of all CPU. An idle connection writes at once (`setImmediate` comes right after the turn's
 * input), a busy one in as few writes as its round trip allows; one whose process has little to do does not await replies.
 */
class CommandBatcher {
  readonly #redis: Redis;
  readonly #send: Redis['sendCommand'];
  /** How long a write waits to be batched, in ms. */
  delayMs: () => number = () => 0;
  /** Whether a write waits until the one before is answered. */
  awaitsReplies: () => boolean = () => true;
  /** The corked socket; undefined while no commands are held back. */
  #corked: Redis['stream'] | undefined;
  #lastCommand: Command | undefined;
  #isAwaitingBatch = false;
  #isFlushScheduled = false;
  /** Callbacks that send commands with the next write. */
  #waiting: (() => void)[] = [];

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#send = redis.sendCommand.bind(redis);
    redis.on('close', () => {
      // ioredis resends everything unanswered over the new socket.
      this.#corked = undefined;
      this.#isAwaitingBatch = false;
      this.#scheduleFlush();
    });
    redis.sendCommand = (command, stream) => this.#sendCommand(command, stream);
  }

  beforeNextWrite(send: () => void): void {
    this.#waiting.push(send);
    if (!this.#isHeldBack) this.#scheduleFlush();
  }

  #sendCommand(command: Command, stream?: Parameters<Redis['sendCommand']>[1]): unknown {
    if (this.#redis.status !== 'ready' || this.#redis.stream === undefined) {
      if (this.#isOverfull()) {
        command.reject(new Error('Redis is away, and too many commands wait for it'));
        return command.promise;
      }
      return this.#send(command, stream);
    }
    if (this.#corked === undefined) {
      this.#corked = this.#redis.stream;
      this.#corked.cork();
    }
    if (!this.#isHeldBack) this.#scheduleFlush();
    this.#lastCommand = command;
    return this.#send(command, stream);
  }

  /** Whether the offline queue is full. False while connecting, which issues commands of its own. */
  #isOverfull(): boolean {
    const { status, offlineQueue } = this.#redis as unknown as { status: string; offlineQueue?: { length: number } };
    return status !== 'connect' && (offlineQueue?.length ?? 0) >= maxOffline;
  }

  get #isHeldBack(): boolean {
    return this.#isAwaitingBatch && this.awaitsReplies();
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled || (this.#corked === undefined && this.#waiting.length === 0)) return;
    this.#isFlushScheduled = true;
    const ms = this.delayMs();
    if (ms > 0) setTimeout(() => this.#flush(), ms);
    else setImmediate(() => this.#flush());
  }

  #flush(): void {
    const isHeldBack = this.#isHeldBack;
    if (!isHeldBack) {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const send of waiting) send();
    }
    this.#isFlushScheduled = false;
    if (this.#corked === undefined || isHeldBack) return;
    this.#corked.uncork();
    this.#corked = undefined;
    // Replies come in order, so the last command's reply means that the whole batch is answered.
    this.#isAwaitingBatch = true;
    if (this.#lastCommand !== undefined) onReply(this.#lastCommand, () => this.#batchAnswered());
  }

  #batchAnswered(): void {
    this.#isAwaitingBatch = false;
    this.#scheduleFlush();
  }
}

/**
 * Calls `listener` once, on a command's own reply. Its promise is not enough: for a script that Redis no longer has, it waits
 * until the script is sent a second time.
 */
function onReply(command: Command, listener: () => void): void {
  let isNotified = false;
  const notify = (): void => {
    if (!isNotified) listener();
    isNotified = true;
  };
  const { resolve, reject } = command;
  command.resolve = (reply) => {
    notify();
    resolve.call(command, reply);
  };
  command.reject = (error) => {
    notify();
    reject.call(command, error);
  };
  // It may have been rejected before it was sent.
  command.promise.then(notify, notify);
}

const gathered = new WeakMap<Redis, CommandBatcher>();

/** Makes a connection write commands in batches. */
export function batchCommands(redis: Redis): void {
  gathered.set(redis, new CommandBatcher(redis));
}

/** Batch windows of Clusters' clients: calls are gathered before it is known which nodes they go to. */
const clusterDelays = new WeakMap<Cluster, () => number>();
/** Clusters' clients whose gathered calls are being sent: they have waited, and their nodes write them at once. */
const sending = new Set<Cluster>();

/** With so many running requests or jobs, calls to Redis wait to be batched: a write costs more than its content. */
const busy = 8;
/** How long (ms) they wait with a Cluster, each of whose nodes gets a part of them. */
export const clusterBusyMs = 5;

/** Sets the batch window of a process that is busy, in ms; it has none otherwise. @param running its requests or jobs */
export function batchWhenBusy(redis: Redis | Cluster, running: { readonly size: number }, windowMs: number): void {
  setBatchDelay(redis, () => (running.size >= busy ? windowMs : 0));
}

/**
 * Sets the batch window (ms) of a connection's writes, or of those to each node of a Cluster, read before each: a busy process spends
 * most on small writes. With 0 a write does not await the replies to the one before either: the end of a lone job would wait for them.
 */
export function setBatchDelay(redis: Redis | Cluster, delayMs: () => number): void {
  const delay = (node: Redis): void => {
    const writes = gathered.get(node);
    if (writes === undefined) return;
    writes.delayMs = redis instanceof Cluster ? () => (sending.has(redis) ? 0 : delayMs()) : delayMs;
    writes.awaitsReplies = () => delayMs() > 0;
  };
  if (!(redis instanceof Cluster)) {
    delay(redis);
    return;
  }
  clusterDelays.set(redis, delayMs);
  for (const node of redis.nodes()) delay(node);
  redis.on('+node', delay);
}

/**
 * Calls back right before the next write to Redis, so that several callers can share one command. For connections that do not
 * batch writes it is called at the end of this event-loop turn, for a Cluster's client after its batch window.
 */
export function beforeNextWrite(redis: Redis | Cluster, send: () => void): void {
  if (redis instanceof Cluster) {
    const ms = clusterDelays.get(redis)?.() ?? 0;
    if (ms > 0) setTimeout(sendNow, ms, redis, send);
    else setImmediate(send);
    return;
  }
  const writes = gathered.get(redis);
  if (writes === undefined) setImmediate(send);
  else writes.beforeNextWrite(send);
}

function sendNow(cluster: Cluster, send: () => void): void {
  sending.add(cluster);
  try {
    send();
  } finally {
    sending.delete(cluster);
  }
}
