import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { isLoopback } from '../config/loopback.ts';
import type { Registry } from './metrics.ts';

/** Headers that show that a proxy forwarded the request. */
const forwardingHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via'];

/** Host names for requests from this machine: a page using DNS rebinding sends its own name. */
const loopbackHost = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i;

/**
 * Whether a request may read metrics: by the token; without a configured token, only from this machine, not through a proxy,
 * and with a loopback host name.
 */
export function mayReadMetrics({ socket, headers }: IncomingMessage, token: string | undefined): boolean {
  if (token !== undefined) return isSame(/^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '', token);
  if (!isLoopback(socket.remoteAddress ?? '') || !loopbackHost.test(headers.host ?? '')) return false;
  return forwardingHeaders.every((name) => headers[name] === undefined);
}

/** Compares digests in constant time. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(first as Buffer, second as Buffer);
}

/** Minimum interval between collections, in ms. */
const collectionMs = 1000;

/**
 * Collects a registry's metrics at most once a second: requests that arrive in between wait for the next collection and share
 * it, so that all get figures collected after their request.
 */
export class Scrapes {
  readonly #registry: Registry;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<string> | undefined;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Returns the metrics as text. */
  read(): Promise<string> {
    this.#next ??= this.#collect();
    return this.#next;
  }

  async #collect(): Promise<string> {
    await this.#last;
    this.#last = delay(collectionMs, undefined, { ref: false });
    this.#next = undefined;
    const metrics = this.#registry.metrics();
    // A collection that takes longer than the interval is not overtaken either.
    this.#last = Promise.all([this.#last, metrics.catch(() => undefined)]);
    return await metrics;
  }
}
