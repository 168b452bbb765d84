import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { isLoopback } from '../config/loopback.ts';
import type { Registry } from './metrics.ts';

/** Headers by which a proxy says that somebody else asks. */
const forwardingHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via'];

/** The names under which this machine asks itself: a page that has rebound its own name sends that. */
const loopbackHost = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i;

/**
 * Whether a request may read metrics: by the token; where there is none, from this machine, by no proxy and under none but
 * its own name.
 */
export function mayReadMetrics({ socket, headers }: IncomingMessage, token: string | undefined): boolean {
  if (token !== undefined) return isSame(/^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '', token);
  if (!isLoopback(socket.remoteAddress ?? '') || !loopbackHost.test(headers.host ?? '')) return false;
  return forwardingHeaders.every((name) => headers[name] === undefined);
}

/** Compares by digests, in a time that tells nothing. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(first as Buffer, second as Buffer);
}

/** How long collections are apart at least, in ms. */
const collectionMs = 1000;

/**
 * Collects a registry's metrics at most once a second, however many ask: those who come in between wait for the next one
 * and share it, so that everybody reads figures of after their asking.
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

  /** The metrics as text. */
  read(): Promise<string> {
    this.#next ??= this.#collect();
    return this.#next;
  }

  async #collect(): Promise<string> {
    await this.#last;
    this.#last = delay(collectionMs, undefined, { ref: false });
    this.#next = undefined;
    const metrics = this.#registry.metrics();
    // One that takes longer than the pause is not overtaken either.
    this.#last = Promise.all([this.#last, metrics.catch(() => undefined)]);
    return await metrics;
  }
}
