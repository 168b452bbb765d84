import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../../shared/runtime/log.ts';
import { networkOf } from '../http/network-of.ts';
import { Tally } from './tally.ts';

/** Interval between sweeps, in ms. */
const usualSweepMs = 1000;
/** Pipelined requests that may wait on one connection. No legitimate client sends more before a response. */
const maxPipelined = 32;

/** Longer answers are announced before they are sent, in bytes: their clients may not take them. */
export const largeAnswer = 1024 * 1024;

/** The part of the room for unsent bytes that one piece of an answer may take, and the fewest and the most bytes of one. */
const pieceShare = 1 / 64;
const [smallestPiece, largestPiece] = [64 * 1024, 4 * 1024 * 1024];

/** Bounds on connections. */
export interface ConnectionLimits {
  readonly maxConnections: number;
  /** Connections of one address, or of one /64 IPv6 network. */
  readonly addressConnections: number;
  /** How long a client may read no byte of its pending data. */
  readonly unreadMs: number;
  /** Unsent bytes of all clients together. */
  readonly unsentBytes: number;
  /** Whether many callers share this address, such as a trusted proxy or this machine. */
  readonly isShared: (address: string) => boolean;
}

/** Reasons for closing a connection, as labels of metrics. */
export const cutReasons = ['unread', 'unsent', 'pipelined', 'address', 'full'] as const;
export type CutReason = (typeof cutReasons)[number];

/** A connection as the server of Node sees it, with the response under way. */
interface ServerSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null;
}

/** A connection with unsent data. */
interface Unread {
  readonly socket: Socket;
  /** Bytes that the client's side has accepted so far. */
  taken: number;
  /** When it last accepted a byte. */
  since: number;
  bytes: number;
}

/**
 * All connections of the server. Bounds their number, and how long a client may leave data of any response unread, because
 * unread data stays in this process's memory.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #log: Logger;
  readonly #onCut: (reason: CutReason) => void;
  readonly #open = new Set<Socket>();
  readonly #unread = new Map<Socket, Unread>();
  readonly #addresses = new Tally();
  /** Responses that wait for an earlier one on their connection. */
  readonly #pipelined = new Map<Socket, Set<ServerResponse>>();
  #timer: NodeJS.Timeout | undefined;
  #unsent = 0;
  #isLeaving = false;

  constructor(limits: ConnectionLimits, log: Logger, onCut: (reason: CutReason) => void = () => undefined) {
    this.#limits = limits;
    this.#log = log;
    this.#onCut = onCut;
  }

  /** Number of open connections. */
  get size(): number {
    return this.#open.size;
  }

  /** Unsent bytes as of the last sweep. */
  get unsent(): number {
    return this.#unsent;
  }

  /**
   * How much of an answer that lies in a file is read and written at a time: less, the more is unsent, so that however many clients
   * read slowly there is room for those that come.
   */
  get pieceBytes(): number {
    const room = this.#limits.unsentBytes - this.#unsent;
    return Math.floor(Math.min(largestPiece, Math.max(smallestPiece, room * pieceShare)));
  }

  /** Starts to watch a server's connections. Called before the server's own listener for requests is added. */
  watch(server: Server): void {
    const { maxConnections, unreadMs } = this.#limits;
    server.maxConnections = maxConnections;
    server.on('drop', () => this.#onCut('full'));
    server.on('connection', (socket) => this.#opened(socket));
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      if (this.#isLeaving) response.shouldKeepAlive = false;
      // The response has no socket until the one before it is sent.
      if (response.socket === null) this.#wait(request, response);
    };
    server.on('request', onRequest);
    server.on('checkExpectation', onRequest);
    this.#timer = setInterval(() => this.sweep(), Math.min(usualSweepMs, unreadMs / 4));
    this.#timer.unref();
  }

  /**
   * From now on each connection ends with its next response (`Connection: close`), or the last of its pipelined ones. A
   * response whose head is sent already goes on, and so does its connection.
   */
  leave(): void {
    this.#isLeaving = true;
    for (const socket of this.#open) {
      const last = [...(this.#pipelined.get(socket) ?? [])].at(-1) ?? (socket as ServerSocket)._httpMessage;
      if (last) last.shouldKeepAlive = false;
    }
  }

  /** Announces a response of `bytes`. If it exceeds the limit, other connections are closed to make room. */
  expect(bytes: number): void {
    this.#unsent += bytes;
    if (this.#unsent > this.#limits.unsentBytes) this.sweep(bytes);
  }

  /** Bytes that were announced are the system's, before a sweep has seen it. */
  taken(bytes: number): void {
    this.#unsent = Math.max(0, this.#unsent - bytes);
  }

  /**
   * Closes connections without progress for too long, and, while the total is too high, those with the most and oldest data: first
   * those whose client takes nothing of it, and those of readers only if nothing else is left.
   * @param coming bytes that are about to be added
   */
  sweep(coming = 0): void {
    const now = performance.now();
    this.#unsent = coming;
    for (const socket of this.#open) this.#look(socket, now);
    for (const unread of [...this.#unread.values()]) {
      if (now - unread.since > this.#limits.unreadMs) this.#cut(unread.socket, 'unread');
    }
    if (this.#unsent <= this.#limits.unsentBytes) return;
    // A client that reads shows it from look to look.
    const isRead = ({ since }: Unread): boolean => now - since < usualSweepMs;
    const weight = ({ bytes, since }: Unread): number => bytes * (now - since + usualSweepMs);
    const order = (one: Unread, other: Unread): number =>
      Number(isRead(one)) - Number(isRead(other)) || weight(other) - weight(one);
    for (const { socket } of [...this.#unread.values()].sort(order)) {
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
    // A destroyed socket stays listed until `close`. Its bytes no longer count, or others would be closed for them.
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

/** The part of Node's handle that distinguishes a slow write from a stalled one. */
interface StreamHandle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/** Bytes that the system has accepted from this process. A chunk in progress counts as far as it is sent. */
function takenOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: StreamHandle | null };
  if (handle?.bytesWritten === undefined) return socket.bytesWritten - socket.writableLength;
  return handle.bytesWritten - (handle.writeQueueSize ?? 0);
}

/** Connections on which no request has come yet. Node does not count them as idle, and they would hold up its end. */
export function unusedConnections(server: Server): ReadonlySet<Socket> {
  const unused = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  server.on('upgrade', ({ socket }) => unused.delete(socket));
  return unused;
}
