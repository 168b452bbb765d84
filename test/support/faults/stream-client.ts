import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay } from 'node:timers/promises';

/** What one client asks for and how it behaves. */
export interface StreamPlan {
  /** Unique; the vendor's journal knows each try of it as `<name>.<try>`. */
  readonly name: string;
  readonly words: number;
  /** Absent: as fast as the vendor can. */
  readonly wordsPerSecond?: number;
  /** Its request is one that travels as a blob, and so is queued in a step of its own, after its admission. */
  readonly isLarge?: boolean;
  /** The vendor's silence before its answer. */
  readonly firstTokenMs?: number;
  readonly apiKey: string;
  /** Base URLs of the apis that can be asked now, asked for anew on every connection. */
  apis(): readonly string[];
  /** Further headers of the request that makes the job. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Called after each event with how many there were. */
  onEvent?(count: number, connection: ClientConnection): void;
  /** How long the client tries; default 150 s. */
  readonly deadlineMs?: number;
}

/** What a client can do to its own connection. */
interface ClientConnection {
  /** Leaves without a word: the socket is reset. */
  reset(): void;
  /** Stops reading for a while. */
  pause(ms: number): void;
}

interface ReceivedEvent {
  readonly id: string;
  readonly data: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Everything one client saw. */
export interface StreamRecord {
  readonly plan: StreamPlan;
  /** Names under which the vendor may know its requests; the last one is the answer's. */
  readonly tries: string[];
  jobId: string | undefined;
  readonly events: ReceivedEvent[];
  /** Connections made to go on with a job. */
  resumes: number;
  /** The code of an error that came as an HTTP status and ended the job for its client. */
  statusError: string | undefined;
  /** Why the client gave up, if it did. */
  gaveUp: string | undefined;
}

/** Error codes that end a job for good: sending the request again would be another job. */
const endingCodes = new Set(['stream_interrupted', 'outcome_unknown', 'cancelled', 'timeout']);

/** Runs one client to the end of its stream. Never rejects: what went wrong stands in the record. */
export async function runStream(plan: StreamPlan, index = 0): Promise<StreamRecord> {
  const record: StreamRecord = {
    plan,
    tries: [],
    jobId: undefined,
    events: [],
    resumes: 0,
    statusError: undefined,
    gaveUp: undefined,
  };
  const signal = AbortSignal.timeout(plan.deadlineMs ?? 150_000);
  for (let connection = index; !hasEnded(record); connection++) {
    if (signal.aborted) {
      record.gaveUp = `no end within its deadline (job ${record.jobId})`;
      break;
    }
    const apis = plan.apis();
    const url = apis[connection % apis.length] as string;
    const outcome = await connect(record, url, signal);
    if (outcome === 'refused') await delay(200);
    else if (outcome !== 'broken') {
      record.gaveUp = outcome;
      break;
    }
  }
  return record;
}

/** Whether an event ends its stream. */
export function isTerminal(event: { readonly data: string }): boolean {
  return event.data === '[DONE]' || event.data.startsWith('{"error"');
}

/** The whole stream of a job as an api shows it now, from its first event on. */
export async function replay(record: StreamRecord, url: string): Promise<StreamRecord> {
  const copy: StreamRecord = { ...record, events: [], tries: [], statusError: undefined, gaveUp: undefined };
  const quiet = { ...copy, plan: { ...record.plan, onEvent: () => undefined } };
  const outcome = await connect(quiet, url, AbortSignal.timeout(60_000));
  if (outcome !== 'broken') quiet.gaveUp = outcome;
  return quiet;
}

function hasEnded(record: StreamRecord): boolean {
  const last = record.events.at(-1);
  return record.statusError !== undefined || (last !== undefined && isTerminal(last));
}

/** One connection: makes the job, or goes on with it. Answers `broken`, `refused`, or why there is no point in going on. */
async function connect(record: StreamRecord, url: string, signal: AbortSignal): Promise<string> {
  const sent = record.jobId === undefined ? post(record, url, signal) : resume(record, url, signal);
  let response: IncomingMessage;
  try {
    response = await new Promise<IncomingMessage>((resolve, reject) =>
      sent.on('response', resolve).on('error', reject),
    );
  } catch {
    return 'refused';
  }
  sent.on('error', () => undefined);
  if (response.statusCode !== 200) return await readRefusal(record, response);
  record.jobId ??= String(response.headers['x-request-id']);
  await readEvents(record, sent, response);
  return 'broken';
}

function post(record: StreamRecord, url: string, signal: AbortSignal): ClientRequest {
  const { plan } = record;
  const name = `${plan.name}.${record.tries.length + 1}`;
  record.tries.push(name);
  const pace = plan.wordsPerSecond === undefined ? '' : `@${plan.wordsPerSecond}`;
  const body = JSON.stringify({
    model: 'sandbox-chat',
    stream: true,
    messages: [
      ...(plan.isLarge ? [{ role: 'system', content: 'x'.repeat(70_000) }] : []),
      { role: 'user', content: `WORDS:${plan.words}${pace}` },
    ],
    metadata: { test_id: name },
    ...(plan.firstTokenMs === undefined ? {} : { sandbox: { first_token_ms: plan.firstTokenMs } }),
  });
  const sent = request(`${url}/v1/chat/completions`, {
    method: 'POST',
    agent: false,
    signal,
    headers: {
      authorization: `Bearer ${plan.apiKey}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...plan.headers,
    },
  });
  return sent.end(body);
}

function resume(record: StreamRecord, url: string, signal: AbortSignal): ClientRequest {
  record.resumes++;
  const last = record.events.at(-1)?.id;
  const headers = {
    authorization: `Bearer ${record.plan.apiKey}`,
    ...(last === undefined ? {} : { 'last-event-id': last }),
  };
  return request(`${url}/v1/jobs/${record.jobId}/events`, { agent: false, signal, headers }).end();
}

async function readRefusal(record: StreamRecord, response: IncomingMessage): Promise<string> {
  let text = '';
  try {
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
  } catch {
    return 'refused';
  }
  const code = (JSON.parse(text) as { error: { code: string } }).error.code;
  if (endingCodes.has(code)) {
    record.statusError = code;
    return 'broken';
  }
  const status = response.statusCode ?? 0;
  return status === 429 || status >= 500 ? 'refused' : `status ${status} ${code}`;
}

/** Reads events until the connection ends, however it does. A cut event is dropped: a resume brings it again. */
function readEvents(record: StreamRecord, sent: ClientRequest, response: IncomingMessage): Promise<void> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let isReset = false;
  const connection: ClientConnection = {
    reset: () => {
      isReset = true;
      sent.socket?.resetAndDestroy();
    },
    pause: (ms) => {
      response.pause();
      setTimeout(() => response.resume(), ms);
    },
  };
  response.on('data', (chunk: Buffer) => {
    const blocks = (rest + decoder.write(chunk)).split('\n\n');
    rest = blocks.pop() as string;
    for (const block of blocks) {
      const event = isReset ? undefined : parseEvent(block);
      if (event === undefined) continue;
      record.events.push(event);
      record.plan.onEvent?.(record.events.length, connection);
    }
  });
  response.on('error', () => undefined);
  return new Promise((resolve) => response.on('close', resolve));
}

function parseEvent(block: string): ReceivedEvent | undefined {
  let id = '';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('id:')) id = line.slice(3).trim();
    if (line.startsWith('data:')) data.push(line.slice(5).trim());
  }
  return data.length === 0 ? undefined : { id, data: data.join('\n'), at: Date.now() };
}
