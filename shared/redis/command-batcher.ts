import type { Cluster, Redis } from 'ioredis';

/**
 * Commands that wait for a lost connection at most; what comes then is refused. Far more than a full process has under way
 * at a time, for each of its jobs waits for its last command.
 */
const maxOffline = 20_000;

type Command = Parameters<Redis['sendCommand']>[0];

/**
 * Gathers a connection's commands into batches: one write for all commands that came while the batch before was unanswered,
 * and at least for all of one event-loop turn. ioredis writes each command by itself, and under load those system calls, and
 * Redis's own for each small read, were a third of all CPU. An idle connection writes at once (`setImmediate` comes right
 * after the turn's input), a busy one in as few writes as its round trip allows.
 */
class CommandBatcher {
  readonly #redis: Redis;
  readonly #send: Redis['sendCommand'];
  /** How long a write waits for company, in ms. */
  patienceMs: () => number = () => 0;
  /** The socket that holds commands back; undefined while none are held. */
  #corked: Redis['stream'] | undefined;
  #lastCommand: Command | undefined;
  #isAwaitingBatch = false;
  #isFlushScheduled = false;
  /** What has commands to send with the next write, once it comes to that. */
  #waiting: (() => void)[] = [];

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#send = redis.sendCommand.bind(redis);
    redis.on('close', () => {
      // ioredis sends everything unanswered again over the new socket.
      this.#corked = undefined;
      this.#isAwaitingBatch = false;
      this.#scheduleFlush();
    });
    redis.sendCommand = (command, stream) => this.#sendCommand(command, stream);
  }

  beforeNextWrite(send: () => void): void {
    this.#waiting.push(send);
    if (!this.#isAwaitingBatch) this.#scheduleFlush();
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
    if (!this.#isAwaitingBatch) this.#scheduleFlush();
    this.#lastCommand = command;
    return this.#send(command, stream);
  }

  /** Whether no more may wait for the connection. Not so while it is being made, which takes commands of its own. */
  #isOverfull(): boolean {
    const { status, offlineQueue } = this.#redis as unknown as { status: string; offlineQueue?: { length: number } };
    return status !== 'connect' && (offlineQueue?.length ?? 0) >= maxOffline;
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled || (this.#corked === undefined && this.#waiting.length === 0)) return;
    this.#isFlushScheduled = true;
    const ms = this.patienceMs();
    if (ms > 0) setTimeout(() => this.#flush(), ms);
    else setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (!this.#isAwaitingBatch) {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const send of waiting) send();
    }
    this.#isFlushScheduled = false;
    if (this.#corked === undefined || this.#isAwaitingBatch) return;
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
 * Tells once of a command's own reply. Its promise alone would not do: that of a script which Redis has forgotten waits
 * for the script's second sending.
 */
function onReply(command: Command, listener: () => void): void {
  let isTold = false;
  const tell = (): void => {
    if (!isTold) listener();
    isTold = true;
  };
  const { resolve, reject } = command;
  command.resolve = (reply) => {
    tell();
    resolve.call(command, reply);
  };
  command.reject = (error) => {
    tell();
    reject.call(command, error);
  };
  // It may have been refused before it was sent.
  command.promise.then(tell, tell);
}

const gathered = new WeakMap<Redis | Cluster, CommandBatcher>();

/** Has a connection write many commands at a time. */
export function batchCommands(redis: Redis): void {
  gathered.set(redis, new CommandBatcher(redis));
}

/** Says how long (ms) a connection's writes wait for company, asked before each: a busy process spends most on small ones. */
export function waitForCompany(redis: Redis | Cluster, patienceMs: () => number): void {
  const writes = gathered.get(redis);
  if (writes !== undefined) writes.patienceMs = patienceMs;
}

/**
 * Calls back right before the next write to Redis: what more than one has to say until then can be said in one command.
 * Connections that gather no writes, as a Cluster's client, have it at the end of this event-loop turn.
 */
export function beforeNextWrite(redis: Redis | Cluster, send: () => void): void {
  const writes = gathered.get(redis);
  if (writes === undefined) setImmediate(send);
  else writes.beforeNextWrite(send);
}
