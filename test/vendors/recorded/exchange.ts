import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventMessage, exceptionMessage } from './recorded-bedrock.ts';

/**
 * What a client is to be told. Written by hand beside what the vendor says, so that it knows nothing of how the gateway
 * reads it. Either an answer, or `code` with the status of an error; both, where an error ends an answer that has begun.
 */
export interface Expected {
  readonly text?: string;
  readonly reasoning?: string;
  /** Name, arguments and id; `*` for an id that the gateway makes up. */
  readonly calls?: readonly (readonly [name: string, input: Record<string, unknown>, id: string])[];
  readonly finish?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** Tokens: all input, all output, and of the input those read from a cache and those written to one. */
  readonly usage?: readonly [input: number, output: number, cached?: number, written?: number];
  readonly status?: number;
  readonly code?: string;
  /** Seconds. */
  readonly retryAfter?: number;
}

/** What a vendor answers to one request. */
export interface Exchange {
  readonly isStreamed: boolean;
  readonly kind: string;
  readonly title: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly expected: Expected;
}

/** The exchanges with one vendor, and how the gateway is to reach it. */
export interface VendorExchanges {
  readonly vendor: string;
  /** Whose row it is like; left out: it has its own. */
  readonly like: string | undefined;
  readonly model: string;
  readonly apiKey: string;
  /** What is asked of it, held and streamed, behind its base URL. */
  readonly path: string;
  readonly streamPath: string;
  /** The header that holds the key, and what stands before the key in it. */
  readonly keyHeader: string;
  readonly exchanges: readonly Exchange[];
}

/**
 * Reads the files of `exchanges`: after comments and a head of `name: value` come exchanges of the form
 *
 *     == streamed calls: two calls in pieces
 *     200 x-header=value
 *     data: …
 *     => {"calls":[["get_time",{},"call_1"]],"finish":"tool_calls","usage":[9,3]}
 *
 * A body is sent as it stands. Only Bedrock's streams, which are binary, stand as lines of an event's name and its JSON,
 * exceptions behind a `!`.
 */
export function readExchanges(): VendorExchanges[] {
  const folder = fileURLToPath(new URL('exchanges/', import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.txt'));
  return files.sort().map((file) => readFile(basename(file, '.txt'), readFileSync(join(folder, file), 'utf8')));
}

function readFile(vendor: string, text: string): VendorExchanges {
  const [head = '', ...blocks] = text.split(/^== /m);
  const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(head)?.[1];
  const path = field('path') ?? '/chat/completions';
  return {
    vendor,
    like: field('like'),
    model: field('model') ?? '',
    apiKey: field('key') ?? `key-of-${vendor}-0123456789abcdef`,
    path,
    streamPath: field('stream-path') ?? path,
    keyHeader: field('key-header') ?? 'authorization',
    exchanges: blocks.map(readBlock),
  };
}

const blockForm = /^(held|streamed) (\w+): (.*)\n(\d{3})(.*)\n([\s\S]*?)\n?^=> (.*)\n*$/m;

function readBlock(block: string): Exchange {
  const [, mode, kind = '', title = '', status, heads = '', body = '', expected = ''] = blockForm.exec(block) ?? [];
  if (mode === undefined) throw new Error(`not an exchange: ${block}`);
  const isEvents = /^!?[a-z][A-Za-z]+ \{/.test(body);
  const given = heads
    .split(' ')
    .filter(Boolean)
    .map((head) => head.split('='));
  return {
    isStreamed: mode === 'streamed',
    kind,
    title,
    status: Number(status),
    headers: { 'content-type': typeOf(body, isEvents), ...Object.fromEntries(given) },
    body: isEvents ? Buffer.concat(body.split('\n').map(toMessage)) : Buffer.from(mode === 'held' ? body : `${body}\n`),
    expected: JSON.parse(expected) as Expected,
  };
}

function typeOf(body: string, isEvents: boolean): string {
  if (isEvents) return 'application/vnd.amazon.eventstream';
  return /^(data|event|:)/.test(body) ? 'text/event-stream' : 'application/json';
}

function toMessage(line: string): Buffer {
  const [, isException, type = '', body = ''] = /^(!?)(\w+) (.*)$/.exec(line) ?? [];
  return isException ? exceptionMessage(type, body) : eventMessage(type, body);
}
