/**
 * The load, in its own process: raw keep-alive connections that count only complete answers with a 2xx status.
 *
 * Its parent sends one `LoadSpec`; the load answers `{ event: 'measuring' }` when its window begins and
 * `{ event: 'measured', result }` when it ends, goes on loading until its parent says `stop` (so that the end of the load is
 * in nobody's figures), and exits.
 */
import { type RawAnswer, RawConnection } from './raw-connection.ts';
import { percentile } from './statistics.ts';

interface LoadTarget {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** Every connection sends its next request when the last one is answered, and `everyMs` after it at the earliest. */
interface ClosedLoopSpec extends LoadTarget {
  kind: 'closed-loop';
  connections: number;
  everyMs?: number;
  warmupSeconds: number;
  seconds: number;
  /** Events that a stream must have had before its `[DONE]`; 0 for a held answer. */
  events: number;
  /** Other requests to the same URL, sent all the while, of which only their number and failures are counted. */
  beside?: { body: string; connections: number; everyMs: number };
}

/** Streams that are opened once and stay open; the window begins when all are. */
interface OpenStreamsSpec extends LoadTarget {
  kind: 'open-streams';
  connections: number;
  /** How many streams may be without their first event at a time while they are opened. */
  opening: number;
  /** How long opening may take, in seconds; the window begins then with those that are open. */
  openingSeconds: number;
  warmupSeconds: number;
  seconds: number;
}

export type LoadSpec = ClosedLoopSpec | OpenStreamsSpec;

/** What was seen within the window. */
export interface LoadResult {
  seconds: number;
  /** Complete 2xx answers (closed loop). */
  completed: number;
  /** The same of what was sent beside it. */
  completedBeside: number;
  /** Answers with another status or incomplete, and lost connections. */
  failed: number;
  /** The failures by what they were. */
  failures: Record<string, number>;
  /** Milliseconds: of whole answers (closed loop), or between two events of one stream (open streams). */
  p50: number;
  p99: number;
  /** Events of all streams (open streams). */
  events: number;
  /** Streams open at the end of the window. */
  open: number;
}

export type LoadMessage = { event: 'measuring' } | { event: 'measured'; result: LoadResult };

interface Window {
  open: boolean;
  times: number[];
  completed: number;
  completedBeside: number;
  failed: number;
  failures: Record<string, number>;
  events: number;
}

const window: Window = { open: false, times: [], completed: 0, completedBeside: 0, failed: 0, failures: {}, events: 0 };
let stopping = false;

function fail(reason: string): void {
  if (stopping) return;
  window.failed += 1;
  window.failures[reason] = (window.failures[reason] ?? 0) + 1;
}

function requestBytes(spec: LoadTarget, url: URL): Buffer {
  const headers = {
    host: url.host,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(spec.body),
    ...spec.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${url.pathname} HTTP/1.1\r\n${lines.join('')}\r\n${spec.body}`);
}

function failureOf(answer: RawAnswer, events: number): string | undefined {
  if (answer.status < 200 || answer.status > 299) return `status ${answer.status}`;
  if (events > 0 && !answer.done) return 'stream without [DONE]';
  if (answer.events < events) return `stream of ${answer.events} events`;
  return undefined;
}

interface Loop {
  address: { host: string; port: number };
  request: Buffer;
  events: number;
  everyMs: number;
  /** Whether it is what is measured, else goes on beside it. */
  isMeasured: boolean;
}

function loopConnection(loop: Loop): void {
  const { address, request, events, everyMs, isMeasured } = loop;
  let sentAt = performance.now();
  const send = () => {
    sentAt = performance.now();
    connection.send(request);
  };
  const connection = new RawConnection(address, {
    onAnswer: (answer) => {
      const failure = failureOf(answer, events);
      if (failure) {
        fail(failure);
      } else if (window.open && !isMeasured) {
        window.completedBeside += 1;
      } else if (window.open) {
        window.completed += 1;
        window.times.push(performance.now() - sentAt);
      }
      if (stopping) connection.close();
      // A server that refuses everything would otherwise be asked as fast as it can refuse.
      else if (failure) setTimeout(send, 10);
      else if (everyMs > 0) setTimeout(send, sentAt + everyMs - performance.now());
      else send();
    },
    onClose: (reason) => {
      fail(reason);
      if (!stopping) setTimeout(() => loopConnection(loop), 100);
    },
  });
  send();
}

function openLoops(connections: number, loop: Loop): void {
  for (let index = 0; index < connections; index += 1) loopConnection(loop);
}

function openStream(address: { host: string; port: number }, request: Buffer, onFirst: () => void): RawConnection {
  let lastEventAt = 0;
  const connection = new RawConnection(address, {
    onEvents: (count) => {
      const now = performance.now();
      if (lastEventAt === 0) onFirst();
      else if (window.open) {
        window.events += count;
        window.times.push(now - lastEventAt);
        for (let together = 1; together < count; together += 1) window.times.push(0);
      }
      lastEventAt = now;
    },
    onAnswer: (answer) => {
      fail(`ended early, status ${answer.status}`);
      connection.close();
    },
    onClose: (reason) => {
      open.delete(connection);
      fail(reason);
    },
  });
  open.add(connection);
  connection.send(request);
  return connection;
}

const open = new Set<RawConnection>();

/** Opens the streams, a bounded number at a time; resolves when all are open or the time is over. */
function openStreams(spec: OpenStreamsSpec, address: { host: string; port: number }, request: Buffer): Promise<void> {
  return new Promise((resolve) => {
    let started = 0;
    let opened = 0;
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(end, spec.openingSeconds * 1000);
    const next = () => {
      if (started >= spec.connections || stopping) return;
      started += 1;
      openStream(address, request, () => {
        opened += 1;
        if (opened === spec.connections) end();
        next();
      });
    };
    for (let index = 0; index < spec.opening; index += 1) next();
  });
}

function wait(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

async function run(spec: LoadSpec): Promise<void> {
  const url = new URL(spec.url);
  const address = { host: url.hostname, port: Number(url.port) };
  const request = requestBytes(spec, url);
  if (spec.kind === 'open-streams') {
    await openStreams(spec, address, request);
  } else {
    const { connections, events, everyMs = 0, beside } = spec;
    openLoops(connections, { address, request, events, everyMs, isMeasured: true });
    if (beside !== undefined) {
      const other = requestBytes({ ...spec, body: beside.body }, url);
      const { everyMs: everyOtherMs } = beside;
      openLoops(beside.connections, { address, request: other, events: 0, everyMs: everyOtherMs, isMeasured: false });
    }
  }
  await wait(spec.warmupSeconds);
  const startedAt = performance.now();
  window.open = true;
  // Streams that were lost while they were opened are lost all the same.
  if (spec.kind === 'closed-loop') {
    window.failed = 0;
    window.failures = {};
  }
  process.send?.({ event: 'measuring' } satisfies LoadMessage);
  await wait(spec.seconds);
  window.open = false;
  const times = Float64Array.from(window.times).sort();
  const result: LoadResult = {
    seconds: (performance.now() - startedAt) / 1000,
    completed: window.completed,
    completedBeside: window.completedBeside,
    failed: window.failed,
    failures: window.failures,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    events: window.events,
    open: open.size,
  };
  process.send?.({ event: 'measured', result } satisfies LoadMessage);
}

/** Answers under way are let finish for a moment: broken ones would be work for the target in somebody else's window. */
function stop(): void {
  stopping = true;
  for (const connection of open) connection.close();
  setTimeout(() => process.exit(0), 2_000).unref();
  process.disconnect?.();
}

process.on('message', (message: LoadSpec | 'stop') => {
  if (message === 'stop') {
    stop();
  } else {
    run(message).catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
  }
});
process.on('disconnect', () => {
  if (!stopping) process.exit(0);
});
