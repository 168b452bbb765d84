import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A command on its way to Redis, its arguments cut to 200 characters. */
export type RedisCommand = readonly string[];

/** A place in the stream of commands at which the way is lost. */
interface Trigger {
  /** Called for every command, in order. */
  readonly matches: (command: RedisCommand) => boolean;
  /**
   * `before`: the command does not reach Redis any more, and nothing else does. `after`: it was run, but its answer is not
   * seen, nor anything else. `reset`: likewise, but only its connection is lost, and a new one works.
   */
  readonly stop: 'before' | 'after' | 'reset';
}

/** Stands between a process and Redis: can cut the way, or stop it exactly at a command. */
export interface TcpProxy {
  readonly url: string;
  /** Resets every connection and refuses new ones until `restore`. */
  cut(): void;
  restore(): void;
  /** Loses the way at the first command that matches; resolves once that is so, with the command. */
  stopAt(trigger: Trigger): Promise<RedisCommand>;
  close(): Promise<void>;
}

/** Starts a proxy to a Redis on 127.0.0.1. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const proxy = new RedisProxy(targetPort);
  await proxy.listen();
  return proxy;
}

class RedisProxy implements TcpProxy {
  readonly #targetPort: number;
  readonly #pairs = new Set<Pair>();
  readonly #server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
  #isCut = false;
  #isStopped = false;
  #trigger: (Trigger & { resolve: (command: RedisCommand) => void }) | undefined;

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    this.#isCut = true;
    for (const pair of this.#pairs) pair.destroy();
  }

  restore(): void {
    this.#isCut = false;
  }

  stopAt(trigger: Trigger): Promise<RedisCommand> {
    return new Promise((resolve) => {
      this.#trigger = { ...trigger, resolve };
    });
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) pair.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    if (this.#isCut) {
      client.resetAndDestroy();
      return;
    }
    const pair = new Pair(client, connect({ port: this.#targetPort, host: '127.0.0.1' }), {
      isStopped: () => this.#isStopped,
      judge: (command) => this.#judge(command),
    });
    this.#pairs.add(pair);
    client.once('close', () => this.#pairs.delete(pair));
  }

  #judge(command: RedisCommand): Hit | undefined {
    if (this.#trigger === undefined || !this.#trigger.matches(command)) return undefined;
    const { stop, resolve } = this.#trigger;
    this.#trigger = undefined;
    this.#isStopped = stop !== 'reset';
    return { stop, resolve };
  }
}

/** A command has met the trigger. */
interface Hit {
  readonly stop: Trigger['stop'];
  readonly resolve: (command: RedisCommand) => void;
}

interface Control {
  isStopped(): boolean;
  judge(command: RedisCommand): Hit | undefined;
}

/** One connection and its other half. */
class Pair {
  readonly #client: Socket;
  readonly #redis: Socket;
  readonly #control: Control;
  #unread: Buffer = Buffer.alloc(0);
  #awaited: { marker: string; seen: string; onSeen: () => void } | undefined;

  constructor(client: Socket, redis: Socket, control: Control) {
    this.#client = client;
    this.#redis = redis;
    this.#control = control;
    client.setNoDelay(true);
    redis.setNoDelay(true);
    client.on('data', (chunk) => this.#fromClient(chunk));
    redis.on('data', (chunk) => this.#fromRedis(chunk));
    for (const socket of [client, redis]) {
      socket.on('error', () => this.destroy());
      socket.on('end', () => this.destroy());
    }
  }

  destroy(): void {
    this.#client.resetAndDestroy();
    // Not reset: what was forwarded must reach Redis even when its sender is dead.
    this.#redis.end();
    this.#redis.resume();
  }

  #fromClient(chunk: Buffer): void {
    if (this.#control.isStopped() || this.#awaited !== undefined) return;
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    let from = 0;
    for (;;) {
      const parsed = parseCommand(this.#unread, from);
      if (parsed === undefined) break;
      const hit = this.#control.judge(parsed.command);
      if (hit !== undefined) {
        this.#redis.write(this.#unread.subarray(0, hit.stop === 'before' ? from : parsed.end));
        this.#awaitReply(() => {
          if (hit.stop === 'reset') this.destroy();
          hit.resolve(parsed.command);
        });
        return;
      }
      from = parsed.end;
    }
    if (from > 0) this.#redis.write(this.#unread.subarray(0, from));
    this.#unread = this.#unread.subarray(from);
  }

  /** Redis answers in order: once it has echoed the marker, it has run all that came before. */
  #awaitReply(onSeen: () => void): void {
    const marker = `marker-${Math.random()}`;
    this.#awaited = { marker, seen: '', onSeen };
    this.#redis.write(`*2\r\n$4\r\nECHO\r\n$${marker.length}\r\n${marker}\r\n`);
  }

  #fromRedis(chunk: Buffer): void {
    if (this.#awaited === undefined) {
      if (!this.#control.isStopped()) this.#client.write(chunk);
      return;
    }
    this.#awaited.seen = (this.#awaited.seen + chunk.toString('latin1')).slice(-4096);
    if (!this.#awaited.seen.includes(this.#awaited.marker)) return;
    const { onSeen } = this.#awaited;
    this.#awaited.onSeen = () => undefined;
    onSeen();
  }
}

/** One command of the RESP stream; undefined when it is not there whole. */
function parseCommand(bytes: Buffer, start: number): { command: string[]; end: number } | undefined {
  let at = start;
  const line = (): string | undefined => {
    const end = bytes.indexOf('\r\n', at);
    if (end < 0) return undefined;
    const text = bytes.toString('latin1', at, end);
    at = end + 2;
    return text;
  };
  const head = line();
  if (head === undefined) return undefined;
  if (head[0] !== '*') throw new Error('not a RESP command');
  const command: string[] = [];
  for (let count = Number(head.slice(1)); count > 0; count--) {
    const length = line();
    if (length === undefined) return undefined;
    const size = Number(length.slice(1));
    if (at + size + 2 > bytes.length) return undefined;
    command.push(bytes.toString('latin1', at, at + Math.min(size, 200)));
    at += size + 2;
  }
  return { command, end: at };
}
