import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../../shared/runtime/log.ts';
import { networkOf } from '../http/network-of.ts';
import { Tally } from './tally.ts';

/** How often connections are looked at, in ms. */
const usualSweepMs = 1000;
/** Requests that may wait on one connection behind another: nobody who means well sends more before an answer. */
const maxPipelined = 32;

/** What connections may take. */
export interface ConnectionLimits {
  readonly maxConnections: number;
  /** Connections of one address, or of one IPv6 network of 64 bits. */
  readonly addressConnections: number;
  /** How long a client may take no byte of what waits for it. */
  readonly unreadMs: number;
  /** Bytes that may wait for clients, all together. */
  readonly unsentBytes: number;
  /** Whether many callers share this address: a trusted proxy, this machine. */
  readonly isShared: (address: string) => boolean;
}

/** Why connections were ended, as metrics name it. */
export type CutReason = 'unread' | 'unsent' | 'pipelined' | 'address' | 'full';

/** A connection on which something waits to be taken. */
interface Unread {
  readonly socket: Socket;
  /** Bytes that the client's side has taken so far. */
  taken: number;
  /** Since when it has taken nothing. */
  since: number;
  bytes: number;
}

/**
 * Every connection of the server: how many there may be, and how long a client may leave unread what was sent to it,
 * whatever kind of answer that is. What nobody takes stands in this process's memory.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #log: Logger;
  readonly #onCut: (reason: CutReason) => void;
  readonly #open = new Set<Socket>();
  readonly #unread = new Map<Socket, Unread>();
  readonly #addresses = new Tally();
  /** Answers that wait for the one before them on their connection. */
  readonly #pipelined = new Map<Socket, Set<ServerResponse>>();
  #timer: NodeJS.Timeout | undefined;
  #unsent = 0;

  constructor(limits: ConnectionLimits, log: Logger, onCut: (reason: CutReason) => void = () => undefined) {
    this.#limits = limits;
    this.#log = log;
    this.#onCut = onCut;
  }

  /** Connections that are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Bytes that wait to be taken, as of the last look. */
  get unsent(): number {
    return this.#unsent;
  }

  /** Watches a server's connections from now on. */
  watch(server: Server): void {
    const { maxConnections, unreadMs } = this.#limits;
    server.maxConnections = maxConnections;
    server.on('drop', () => this.#onCut('full'));
    server.on('connection', (socket) => this.#opened(socket));
    server.on('request', (request, response) => {
      // It gets its connection when the answer before it is out.
      if (response.socket === null) this.#wait(request, response);
    });
    this.#timer = setInterval(() => this.sweep(), Math.min(usualSweepMs, unreadMs / 4));
    this.#timer.unref();
  }

  /** An answer of so many bytes is about to be sent: where it would be too much, others make room. */
  expect(bytes: number): void {
    this.#unsent += bytes;
    if (this.#unsent > this.#limits.unsentBytes) this.sweep(bytes);
  }

  /**
   * Cuts connections whose clients have taken nothing for too long, and, while too much waits, those that keep most for longest.
   * @param coming bytes that are about to be added
   */
  sweep(coming = 0): void {
    const now = Date.now();
    this.#unsent = coming;
    for (const socket of this.#open) this.#look(socket, now);
    for (const unread of [...this.#unread.values()]) {
      if (now - unread.since > this.#limits.unreadMs) this.#cut(unread.socket, 'unread');
    }
    if (this.#unsent <= this.#limits.unsentBytes) return;
    const weight = ({ bytes, since }: Unread): number => bytes * (now - since + usualSweepMs);
    for (const { socket } of [...this.#unread.values()].sort((one, other) => weight(other) - weight(one))) {
      if (this.#unsent <= this.#limits.unsentBytes) return;
      this.#cut(socket, 'unsent');
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #opened(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const name = this.#limits.isShared(address) ? undefined : networkOf(address);
    if (name !== undefined && this.#addresses.of(name) >= this.#limits.addressConnections) {
      this.#onCut('address');
      socket.destroy();
      return;
    }
    if (name !== undefined) this.#addresses.add(name, 1);
    this.#open.add(socket);
    socket.once('close', () => {
      if (name !== undefined) this.#addresses.add(name, -1);
      this.#open.delete(socket);
      this.#unread.delete(socket);
      this.#pipelined.delete(socket);
    });
  }

  #wait({ socket }: IncomingMessage, response: ServerResponse): void {
    const waiting = this.#pipelined.get(socket) ?? new Set();
    this.#pipelined.set(socket, waiting);
    waiting.add(response);
    response.once('close', () => waiting.delete(response));
    if (waiting.size > maxPipelined) this.#cut(socket, 'pipelined');
  }

  #look(socket: Socket, now: number): void {
    let bytes = socket.writableLength;
    for (const response of this.#pipelined.get(socket) ?? [])
      if (response.socket === null) bytes += response.writableLength;
    // One that was cut is open until it says so; what it kept counts no more, or others would be cut for it.
    if (bytes === 0 || socket.destroyed) {
      this.#unread.delete(socket);
      return;
    }
    this.#unsent += bytes;
    const taken = takenOf(socket);
    const known = this.#unread.get(socket);
    if (known === undefined) this.#unread.set(socket, { socket, taken, since: now, bytes });
    else {
      if (known.taken !== taken) known.since = now;
      Object.assign(known, { taken, bytes });
    }
  }

  #cut(socket: Socket, reason: CutReason): void {
    this.#unsent -= this.#unread.get(socket)?.bytes ?? 0;
    this.#unread.delete(socket);
    this.#onCut(reason);
    this.#log.debug({ reason, address: socket.remoteAddress }, 'connection cut');
    socket.destroy();
  }
}

/** What Node itself looks at to tell a slow write from one that stands still. */
interface StreamHandle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/** Bytes that the system has taken off this process. A chunk that is being sent counts as far as it is. */
function takenOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: StreamHandle | null };
  if (handle?.bytesWritten === undefined) return socket.bytesWritten - socket.writableLength;
  return handle.bytesWritten - (handle.writeQueueSize ?? 0);
}
