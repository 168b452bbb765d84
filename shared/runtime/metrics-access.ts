import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { isLoopback } from '../config/loopback.ts';
import type { ProcessRegistry } from './metrics.ts';

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

/** What scrapers that know OpenMetrics ask for first. */
const acceptsOpenMetrics = /\bapplication\/openmetrics-text\b/i;
const openMetricsType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** A page of metrics. */
interface Scrape {
  readonly text: string;
  readonly contentType: string;
}

/** Minimum interval between collections, in ms. */
const collectionMs = 1000;

/**
 * Collects a registry's metrics at most once a second: requests that arrive in between wait for the next collection and share
 * it, so that all get figures collected after their request.
 */
export class Scrapes {
  readonly #registry: ProcessRegistry;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<string> | undefined;

  constructor(registry: ProcessRegistry) {
    this.#registry = registry;
  }

  /**
   * Returns the metrics as text, and its media type: OpenMetrics, with exemplars, if the process has any and the request
   * accepts it; else the Prometheus text format.
   */
  async read({ headers }: Pick<IncomingMessage, 'headers'>): Promise<Scrape> {
    this.#next ??= this.#collect();
    const text = await this.#next;
    const { exemplars, contentType } = this.#registry;
    if (exemplars === undefined || !acceptsOpenMetrics.test(headers.accept ?? '')) return { text, contentType };
    return { text: exemplars.toOpenMetrics(text), contentType: openMetricsType };
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
