import { setTimeout as delay } from 'node:timers/promises';
import { isTerminal, type StreamRecord } from './stream-client.ts';

/** How a client's stream may end: whole, or with one error that carries this code. */
export type Ending = 'done' | 'stream_interrupted' | 'cancelled';

/** A call as the vendor's journal tells it. */
export interface VendorCall {
  readonly sequence: number;
  readonly test_id: string | null;
  readonly received_at: number;
  readonly tokens: number;
  readonly ended: string | null;
}

/** What a set of streams came to. */
export interface Summary {
  streams: number;
  /** Streams that were read over more than one connection. */
  resumed: number;
  /** Streams whose request was refused, or lost before its status, and sent again. */
  sentAgain: number;
  /** Streams for which the vendor was called more than once. */
  rerun: number;
  interrupted: number;
  wrongTokens: number;
  /** One sentence per broken rule. */
  violations: string[];
}

/** All the vendor's calls, once none of them is open any more. */
export async function readJournal(sandboxUrl: string): Promise<Map<string, VendorCall[]>> {
  for (let round = 0; round < 200; round++) {
    const { open } = (await (await fetch(`${sandboxUrl}/__open`)).json()) as { open: number };
    if (open === 0) break;
    await delay(100);
  }
  const text = await (await fetch(`${sandboxUrl}/__journal`)).text();
  const calls = new Map<string, VendorCall[]>();
  for (const line of text.split('\n').filter(Boolean)) {
    const call = JSON.parse(line) as VendorCall;
    const name = call.test_id ?? '';
    calls.set(name, [...(calls.get(name) ?? []), call]);
  }
  return calls;
}

/** Compares what clients received with what the vendor sent. `endings` are those that the fault allows. */
export async function check(
  records: readonly StreamRecord[],
  sandboxUrl: string,
  endings: readonly Ending[],
): Promise<Summary> {
  const journal = await readJournal(sandboxUrl);
  const summary: Summary = {
    streams: records.length,
    resumed: 0,
    sentAgain: 0,
    rerun: 0,
    interrupted: 0,
    wrongTokens: 0,
    violations: [],
  };
  for (const record of records) checkStream(record, journal.get(record.tries.at(-1) as string) ?? [], endings, summary);
  return summary;
}

/** The summary as one line. */
export function describeSummary(fault: string, summary: Summary): string {
  const { streams, resumed, sentAgain, rerun, interrupted, wrongTokens } = summary;
  return `${fault}: ${streams} streams, ${resumed} resumed, ${sentAgain} sent again, ${rerun} re-run, ${interrupted} interrupted, wrong tokens = ${wrongTokens}`;
}

function checkStream(
  record: StreamRecord,
  calls: readonly VendorCall[],
  endings: readonly Ending[],
  summary: Summary,
): void {
  const { plan } = record;
  const complain = (sentence: string): void => {
    summary.violations.push(`${plan.name} (${record.jobId}): ${sentence}`);
  };
  if (record.resumes > 0) summary.resumed++;
  if (record.tries.length > 1) summary.sentAgain++;
  if (calls.length > 1) summary.rerun++;
  const answer = readAnswer(record);
  const wrong = countWrongTokens(record, answer);
  summary.wrongTokens += wrong;
  if (wrong > 0) complain(`${wrong} tokens are wrong, missing, repeated or out of order: ${shape(record, answer)}`);
  const ending = endingOf(record, answer, complain);
  if (ending === undefined) return;
  if (ending === 'stream_interrupted') {
    summary.interrupted++;
    if (record.events.length < 2) complain('interrupted before its first frame: it could have been run again');
  }
  if (!endings.includes(ending as Ending)) complain(`ended with ${ending}, which this fault does not allow`);
  checkIds(record, complain);
  checkVendor(record, answer, calls, ending, complain);
}

type Complain = (sentence: string) => void;

interface Chunk {
  readonly choices?: {
    readonly delta?: { readonly content?: string | null };
    readonly finish_reason?: string | null;
  }[];
}

/** What the events of a stream say. */
interface Answer {
  readonly tokens: readonly string[];
  readonly finishReasons: readonly string[];
}

function readAnswer(record: StreamRecord): Answer {
  const tokens: string[] = [];
  const finishReasons: string[] = [];
  for (const event of record.events) {
    if (isTerminal(event)) continue;
    const choice = (JSON.parse(event.data) as Chunk).choices?.[0];
    if (choice?.delta?.content) tokens.push(choice.delta.content);
    if (choice?.finish_reason) finishReasons.push(choice.finish_reason);
  }
  return { tokens, finishReasons };
}

/** Tokens that are not the one expected at their place; of a whole answer those missing at its end count too. */
function countWrongTokens(record: StreamRecord, { tokens: received }: Answer): number {
  const isWhole = record.events.at(-1)?.data === '[DONE]';
  const wrong = received.filter((token, index) => token !== wordAt(index)).length;
  return wrong + (isWhole ? Math.max(0, record.plan.words - received.length) : 0);
}

function wordAt(index: number): string {
  return index === 0 ? 'word1' : ` word${index + 1}`;
}

function shape(record: StreamRecord, { tokens: received }: Answer): string {
  const first = received.findIndex((token, index) => token !== wordAt(index));
  return `${received.length} of ${record.plan.words}, first difference at ${first}: ${received.slice(Math.max(0, first - 2), first + 3).join(',')}`;
}

/** How the stream ended. Complains when it did not end in exactly one way. */
function endingOf(record: StreamRecord, { finishReasons }: Answer, complain: Complain): string | undefined {
  if (record.gaveUp !== undefined) {
    complain(`never ended: ${record.gaveUp}`);
    return undefined;
  }
  const terminals = record.events.filter(isTerminal);
  const count = terminals.length + (record.statusError === undefined ? 0 : 1);
  if (count !== 1) complain(`${count} terminals`);
  const last = record.events.at(-1);
  if (terminals.length > 0 && last !== undefined && !isTerminal(last)) complain('events came after the terminal');
  if (record.statusError !== undefined) return record.statusError;
  if (last === undefined) return undefined;
  if (last.data !== '[DONE]') return (JSON.parse(last.data) as { error: { code: string } }).error.code;
  if (finishReasons.join() !== 'stop') complain(`[DONE] after the finish reasons [${finishReasons.join()}]`);
  return 'done';
}

/** Event ids `<seq>.<n>` follow on: an event that came twice, late or not at all shows. The mark of the end has none. */
function checkIds(record: StreamRecord, complain: Complain): void {
  let [lastSeq, lastIndex] = [0, 0];
  for (const { id, data } of record.events) {
    if (data === '[DONE]') continue;
    const match = /^(\d+)\.(\d+)$/.exec(id);
    const [seq, index] = [Number(match?.[1]), Number(match?.[2])];
    const follows = (seq === lastSeq + 1 && index === 0) || (seq === lastSeq && index === lastIndex + 1);
    if (!follows) complain(`the event ${id} came after ${lastSeq}.${lastIndex}`);
    [lastSeq, lastIndex] = [seq, index];
  }
}

function checkVendor(
  record: StreamRecord,
  { tokens }: Answer,
  calls: readonly VendorCall[],
  ending: string,
  complain: Complain,
): void {
  const received = tokens.length;
  const last = calls.at(-1);
  if (ending === 'done') {
    if (last?.ended !== 'completed') complain(`whole for the client, but the vendor's call ended ${last?.ended}`);
    if (last?.tokens !== received) complain(`received ${received} tokens, the vendor sent ${last?.tokens}`);
  } else if (received > 0 && (last === undefined || received > last.tokens)) {
    complain(`received ${received} tokens, the vendor sent ${last?.tokens ?? 'none'}`);
  }
  const firstEventAt = record.events.find((event) => !isTerminal(event))?.at;
  for (const call of calls.slice(1)) {
    if (firstEventAt !== undefined && call.received_at > firstEventAt) {
      complain(`the vendor was called again ${call.received_at - firstEventAt} ms after the first frame`);
    }
  }
}
