/** The cases of the bench: what is sent, and what is counted. */
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  benchChatRequest,
  benchEmbeddingRequest,
  benchEmbeddings,
  benchImageRequest,
  benchImages,
  benchLongChatRequest,
} from './bench-requests.ts';
import type { CaseName } from './case-name.ts';
import { type Child, endChild, nextMessage, startModule } from './children.ts';
import type { LoadMessage, LoadResult, LoadSpec } from './load.ts';
import { cpuMicroseconds, residentBytes } from './process-usage.ts';
import type { Target } from './targets/target.ts';

export interface BenchCase {
  name: CaseName;
  title: string;
  /** What is counted, in the singular. */
  unit: 'request' | 'stream' | 'token';
  /** What CPU is counted by, if not by these. */
  cpuUnit?: 'long prompt';
  /** Memory is the figure of a case that wants a new process for each measurement, in one round. */
  memory: boolean;
}

export const benchCases: readonly BenchCase[] = [
  { name: 'held', title: 'Held JSON, 64 connections', unit: 'request', memory: false },
  { name: 'streams', title: 'Streams of 50 tokens, 64 connections', unit: 'stream', memory: false },
  { name: 'single', title: 'Held JSON, one connection, unloaded', unit: 'request', memory: false },
  { name: 'paced', title: '500 open streams of 50 tokens a second each', unit: 'token', memory: false },
  { name: 'large', title: '300 KB prompts, held, 16 connections', unit: 'request', memory: false },
  {
    name: 'large-streams',
    title: '300 KB prompts, streams of 50 tokens, 16 connections',
    unit: 'stream',
    memory: false,
  },
  {
    name: 'neighbour',
    title: 'One small connection beside four of 300 KB prompts',
    unit: 'request',
    cpuUnit: 'long prompt',
    memory: false,
  },
  {
    name: 'neighbour-2mb',
    title: 'One small connection beside four of 2 MB prompts',
    unit: 'request',
    cpuUnit: 'long prompt',
    memory: false,
  },
  { name: 'embeddings', title: '32 embeddings as base64 (270 KB), 16 connections', unit: 'request', memory: false },
  { name: 'images', title: 'Images of 1.5 MB as base64, 8 connections', unit: 'request', memory: false },
  { name: 'open', title: '5,000 open slow streams (one token every 10 s)', unit: 'token', memory: true },
];

/** The concurrency that the case of open streams asks of a target. */
export const openStreams = 5_000;

export interface ProcessUsage {
  name: string;
  /** Microseconds of CPU per unit, or per `cpuUnit` of the case. */
  cpu: number;
  /** Bytes resident before the load, at the end of the window, and at most since the process began. */
  residentBefore: number;
  resident: number;
  residentPeak: number;
}

/** One measurement of one target. */
export interface Measurement {
  /** Units per second. */
  rate: number;
  /** Milliseconds: of a whole answer, or between two tokens of a stream. */
  p50: number;
  p99: number;
  failed: number;
  failures: Record<string, number>;
  /** Streams open at the end. */
  open: number;
  processes: ProcessUsage[];
}

export interface CaseTimes {
  /** The length of the window, in seconds. */
  seconds: number;
  warmupSeconds: number;
}

/** What a closed loop sends: the path, the body, and over how many connections. */
interface ClosedLoop {
  path: string;
  body: object;
  connections: number;
  /** Events that a stream must have had before its `[DONE]`. */
  events?: number;
  /** See `LoadSpec`. */
  everyMs?: number;
  /** What goes on beside it. */
  beside?: { body: object; connections: number; everyMs: number };
}

const chatPath = '/v1/chat/completions';
const fast = { pace: 'fast', tokens: 50 } as const;

const closedLoops: Readonly<Partial<Record<CaseName, () => ClosedLoop>>> = {
  held: () => ({ path: chatPath, body: benchChatRequest(false), connections: 64 }),
  single: () => ({ path: chatPath, body: benchChatRequest(false), connections: 1 }),
  streams: () => ({ path: chatPath, body: benchChatRequest(fast), connections: 64, events: 51 }),
  large: () => ({ path: chatPath, body: benchLongChatRequest(300, false), connections: 16 }),
  'large-streams': () => ({ path: chatPath, body: benchLongChatRequest(300, fast), connections: 16, events: 51 }),
  neighbour: () => besideLongPrompts(300, 20),
  'neighbour-2mb': () => besideLongPrompts(2_000, 100),
  embeddings: () => ({ path: '/v1/embeddings', body: benchEmbeddingRequest(), connections: 16 }),
  images: () => ({ path: '/v1/images/generations', body: benchImageRequest(), connections: 8 }),
};

/** At rates that are equal for all as far as they can; CPU is of both, nearly all of it of the long prompts. */
function besideLongPrompts(kilobytes: number, everyMs: number): ClosedLoop {
  const beside = { body: benchLongChatRequest(kilobytes, false), connections: 4, everyMs };
  return { path: chatPath, body: benchChatRequest(false), connections: 1, everyMs: 5, beside };
}

function loadSpec(name: CaseName, target: Target, times: CaseTimes): LoadSpec {
  const { seconds, warmupSeconds } = times;
  const { origin, headers } = target;
  const loop = closedLoops[name]?.();
  if (loop !== undefined) {
    const { path, connections, everyMs, events = 0, beside } = loop;
    return {
      kind: 'closed-loop',
      url: `${origin}${path}`,
      headers,
      body: JSON.stringify(loop.body),
      connections,
      ...(everyMs !== undefined && { everyMs }),
      warmupSeconds,
      seconds,
      events,
      ...(beside && { beside: { ...beside, body: JSON.stringify(beside.body) } }),
    };
  }
  const url = `${origin}${chatPath}`;
  if (name === 'paced') {
    // Ten seconds where others take six: long enough that every stream is open all the while, opening included.
    const window = (seconds * 5) / 3;
    const openingSeconds = 20;
    const tokens = Math.ceil((openingSeconds + warmupSeconds + window + 10) * 50);
    const body = JSON.stringify(benchChatRequest({ pace: 'paced', tokens }));
    const open = { connections: 500, opening: 50, openingSeconds };
    return { kind: 'open-streams', url, headers, body, ...open, warmupSeconds, seconds: window };
  }
  const body = JSON.stringify(benchChatRequest({ pace: 'slow', tokens: 60 }));
  const open = { connections: openStreams, opening: 64, openingSeconds: 60 };
  return { kind: 'open-streams', url, headers, body, ...open, warmupSeconds: 5, seconds: 12 };
}

async function loadMessage(load: Child, milliseconds: number): Promise<LoadMessage> {
  return await nextMessage<LoadMessage>(load, milliseconds);
}

/**
 * Resolves when a target uses less than a tenth of a core, or after half a minute: an overloaded one works on after the load,
 * on the cores of the target that is measured next.
 */
async function untilIdle(target: Target): Promise<void> {
  const interval = 250;
  const used = () => target.processes.reduce((sum, { pid }) => sum + cpuMicroseconds(pid), 0);
  let before = used();
  for (let waited = 0; waited < 30_000; waited += interval) {
    await setTimeout(interval);
    const now = used();
    if (now - before < interval * 100) return;
    before = now;
  }
}

/** Loads one target once. Throws when the load or a process of the target ends on the way. */
export async function measure(
  benchCase: BenchCase,
  target: Target,
  times: CaseTimes,
  directory: string,
): Promise<Measurement> {
  const spec = loadSpec(benchCase.name, target, times);
  const opening = spec.kind === 'open-streams' ? spec.openingSeconds : 0;
  const residentBefore = target.processes.map((process) => residentBytes(process.pid));
  const load = startModule('load', 'load.ts', [], join(directory, 'load.log'));
  try {
    load.process.send(spec);
    await loadMessage(load, (opening + spec.warmupSeconds + 20) * 1000);
    const cpuBefore = target.processes.map((process) => cpuMicroseconds(process.pid));
    const message = await loadMessage(load, (spec.seconds + 20) * 1000);
    const cpuAfter = target.processes.map((process) => cpuMicroseconds(process.pid));
    const resident = target.processes.map((process) => residentBytes(process.pid));
    if (message.event !== 'measured') throw new Error('the load lost its order');
    await endLoad(load);
    await untilIdle(target);
    const { result } = message;
    const units = countOf(benchCase, result);
    const cpuUnits = benchCase.cpuUnit === undefined ? units : result.completedBeside;
    if (units === 0 || cpuUnits === 0) {
      const failures = Object.keys(result.failures).map((failure) => `, ${failure}`);
      throw new Error(`no ${benchCase.unit} was complete within the window${failures.join('')}`);
    }
    return {
      rate: units / result.seconds,
      p50: result.p50,
      p99: result.p99,
      failed: result.failed,
      failures: result.failures,
      open: result.open,
      processes: target.processes.map((process, index) => ({
        name: process.name,
        cpu: ((cpuAfter[index] ?? 0) - (cpuBefore[index] ?? 0)) / cpuUnits,
        residentBefore: residentBefore[index]?.now ?? 0,
        resident: resident[index]?.now ?? 0,
        residentPeak: resident[index]?.peak ?? 0,
      })),
    };
  } finally {
    await endLoad(load);
  }
}

async function endLoad(load: Child): Promise<void> {
  if (load.process.connected) load.process.send('stop');
  await Promise.race([load.ended, setTimeout(3_000)]);
  await endChild(load);
}

function countOf(benchCase: BenchCase, result: LoadResult): number {
  return benchCase.unit === 'token' ? result.events : result.completed;
}

/** What an item of embeddings or images contains; gateways add fields of their own to it. */
interface DataItem {
  embedding?: unknown;
  b64_json?: unknown;
}

function payloadsOf(answer: object): unknown[] {
  return (answer as { data: DataItem[] }).data.map(({ embedding, b64_json }) => embedding ?? b64_json);
}

/** Asks once for each kind of answer but those of unsupported cases; throws a sentence when one is not what the vendor sent. */
export async function checkAnswers(
  target: Target,
  expected: string,
  unsupportedCases: readonly CaseName[] = [],
): Promise<void> {
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${target.origin}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...target.headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${text.slice(0, 300)}`);
    return text;
  };
  const held = JSON.parse(await post(chatPath, benchChatRequest(false)));
  if (held.choices?.[0]?.message?.content !== expected) throw new Error('its held answer is not what the vendor sent');
  const stream = await post(chatPath, benchLongChatRequest(300, fast));
  const data = stream.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []));
  if (data.pop() !== '[DONE]') throw new Error('its stream ends without [DONE]');
  const text = data.map((event) => JSON.parse(event).choices?.[0]?.delta?.content ?? '').join('');
  if (text !== expected) throw new Error('its stream is not what the vendor sent');
  for (const [name, path, request, answer] of [
    ['embeddings', '/v1/embeddings', benchEmbeddingRequest(), benchEmbeddings()],
    ['images', '/v1/images/generations', benchImageRequest(), benchImages()],
  ] as const) {
    if (unsupportedCases.includes(name)) continue;
    if (!isDeepStrictEqual(payloadsOf(JSON.parse(await post(path, request))), payloadsOf(answer))) {
      throw new Error(`its answer of ${path} is not what the vendor sent`);
    }
  }
}
