import { type ErrorCode, errorTable } from '../../shared/errors.ts';
import { tokenAt, tokenCount } from './answer-plan.ts';
import type { ClientRecord, Final } from './clients.ts';
import { type Exchange, errorCode } from './exchange.ts';
import type { FaultSchedule } from './fault-schedule.ts';
import { type VendorCall, videoBytes } from './vendor.ts';

/** A broken rule of the campaign. */
export interface Violation {
  readonly rule: string;
  readonly detail: string;
}

/** What the oracle knows of one request. */
export interface Evidence {
  readonly record: ClientRecord;
  readonly calls: readonly VendorCall[];
  readonly schedule: FaultSchedule;
}

type Complain = (rule: string, detail: string) => void;

/** How long the log of an answer is there after its end at least, less what a request may take. */
const keptMs = 4000;

/** What the gateway says when something of its own has failed. */
const ownErrors = ['server_error', 'stream_interrupted', 'outcome_unknown', 'resume_expired'];

const freezes = ['process_frozen'] as const;

/** How late after its vendor's last call a job may end: a worker is noticed to be dead, and another begins anew. */
const lateMs = 50_000;

/** Holds what a client was told against what the vendor has sent. */
export function judgeClient(evidence: Evidence): Violation[] {
  const { record, calls } = evidence;
  const found: Violation[] = [];
  const complain: Complain = (rule, detail) =>
    found.push({ rule, detail: `${record.plan.marker} (${record.kind}): ${detail}; ${describe(evidence)}` });
  for (const final of record.finals) {
    if (final.type === 'stuck') complain('stuck', final.why);
    if (final.type === 'whole') judgeWhole(evidence, final, complain);
    if (final.type === 'error') {
      judgeError(evidence, final, complain);
      judgeFailure(evidence, final, complain);
    }
  }
  const texts = new Set(record.finals.flatMap((final) => (final.type === 'whole' ? [final.text] : [])));
  if (texts.size > 1) complain('answers_differ', 'the same key was answered in two ways');
  judgeStreams(evidence, complain);
  judgeReplay(evidence, complain);
  if (record.kind === 'video' && calls.length > 1) complain('vendor_called_again', 'a video was begun twice');
  for (const exchange of record.exchanges) judgeExchange(evidence, exchange, complain);
  return found;
}

/** All that a call's answer says. */
export function answerOf(call: VendorCall): string {
  if (call.kind === 'video') return videoBytes(call.plan.marker, call.number).toString();
  const length = tokenCount(call.plan, call.number);
  return Array.from({ length }, (_, index) => tokenAt(call.number, index)).join('');
}

function judgeWhole(evidence: Evidence, final: Final & { type: 'whole' }, complain: Complain): void {
  const { calls } = evidence;
  const call = calls.find((candidate) => answerOf(candidate) === final.text);
  if (call === undefined) {
    const tokens = final.text.split(' ').slice(1);
    const isDoubled = new Set(tokens).size < tokens.length;
    complain(isDoubled ? 'doubled_tokens' : 'lost_tokens', `an answer ended as whole: "${final.text.slice(0, 600)}"`);
    return;
  }
  // A worker that was killed, or cut off, right behind the end had read it.
  const isWhole = call.ended === 'completed' || (call.ended === 'left' && call.hasSaidEnd);
  if (!isWhole) complain('whole_of_broken', `the vendor's call ended ${call.ended}`);
  judgeCallsAfter(evidence, call.number, complain);
}

/** No call may follow the one whose first frame has been seen. */
function judgeCallsAfter({ calls, schedule }: Evidence, seen: number, complain: Complain): void {
  for (const call of calls.slice(seen)) {
    // Who was frozen on the way to the vendor asks it once awake: nobody can take that back.
    if (schedule.has(freezes, call.at - 3000, call.at)) continue;
    complain('vendor_called_again', `call ${call.number} came after call ${seen} was seen by the client`);
  }
}

function judgeError({ record }: Evidence, { code, status }: Final & { type: 'error' }, complain: Complain): void {
  const isVendors = record.kind === 'video' && code === 'processing_error';
  if (isVendors) return;
  if (code === undefined || !Object.hasOwn(errorTable, code)) {
    complain('unnamed_error', `${status} ${code}`);
    return;
  }
  const named = errorTable[code as ErrorCode].status;
  if (status !== undefined && status !== 200 && status !== named) {
    complain('unnamed_error', `${code} with status ${status}`);
  }
}

/** Nothing fails by itself: there must have been a fault before, or the vendor must have broken its answer. */
function judgeFailure({ record, schedule }: Evidence, { code }: Final & { type: 'error' }, complain: Complain): void {
  const endedAt = Math.max(...record.exchanges.map((exchange) => exchange.endedAt));
  if (record.plan.ending !== 'whole' || record.hasCancelled || schedule.hasAny(endedAt)) return;
  if (code !== undefined && ownErrors.includes(code)) complain('failed_without_fault', code);
}

function judgeStreams(evidence: Evidence, complain: Complain): void {
  const { record, calls } = evidence;
  let text = '';
  for (const read of record.streams) {
    text = record.kind === 'stream_resumed' ? text + read.text : read.text;
    if (read.isWhole && read.end === undefined && !read.hasLeft)
      complain('silent_end', 'a stream ended without its end');
    if (read.afterEnd > 0) complain('events_after_end', `${read.afterEnd} events came after the end`);
    if (!read.isShaped) complain('unnamed_error', 'the error event is not in its shape');
    if (text === '' || read.end === 'done') continue;
    const call = calls.find((candidate) => answerOf(candidate).startsWith(text));
    if (call === undefined) complain('wrong_tokens', `a part of an answer: "${text.slice(0, 600)}"`);
    else if (record.kind !== 'keyed') judgeCallsAfter(evidence, call.number, complain);
  }
}

/** What one reader has got, all get: frames are taken back only where Redis loses them. */
function judgeReplay({ record: { replay, exchanges }, schedule }: Evidence, complain: Complain): void {
  if (replay === undefined || replay.got.startsWith(replay.had)) return;
  const begunAt = Math.min(...exchanges.map(({ at }) => at));
  if (schedule.has(['answers_rolled_back'], begunAt, replay.at)) return;
  complain(
    'replay_differs',
    `read again it says "${replay.got.slice(0, 600)}", it had said "${replay.had.slice(0, 600)}"`,
  );
}

const linkFaults = ['client_link_cut', 'client_replies_lost', 'process_killed', 'process_frozen'] as const;

function judgeExchange({ record, calls, schedule }: Evidence, exchange: Exchange, complain: Complain): void {
  const { path, method, status, isWhole, hasLeft, at, endedAt } = exchange;
  const of = `${method} ${path}`;
  if (!isWhole && !hasLeft && !schedule.has(linkFaults, at - 1000, endedAt + 1000)) {
    // An api that was killed is named by its role, and a bytes answer that fails is cut: videos' files.
    if (!path.endsWith('/content')) complain('connection_lost', `${of}: without a fault`);
  }
  if (status !== undefined && status >= 400 && isWhole) {
    const code = errorCode(exchange);
    if (code === undefined || !Object.hasOwn(errorTable, code)) complain('unnamed_error', `${of}: ${status} ${code}`);
  }
  if (isWhole && status === 410) judgeExpired({ record, calls }, exchange, complain);
  const isRefused = status !== undefined && status >= 400 && method === 'POST' && record.kind !== 'keyed';
  for (const call of calls) {
    if (isRefused && call.at > endedAt + 500 && !schedule.has(freezes, call.at - 3000, call.at)) {
      complain(
        'run_after_refusal',
        `call ${call.number} came ${call.at - endedAt} ms after the client was told ${status}`,
      );
    }
  }
  // Whatever became of the vendor's last call: another attempt would have made another.
  const last = calls.at(-1);
  const isMaking = method === 'POST' && record.kind !== 'video' && record.kind !== 'async';
  if (isMaking && last?.endedAt !== undefined && last.at >= at && endedAt - last.endedAt > lateMs) {
    complain('late_end', `${of}: ended ${endedAt - last.endedAt} ms after the vendor's ${last.ended}, with ${status}`);
  }
}

/** What has not ended, or only just has, can be resumed; with an idempotency key everything can for a day. */
function judgeExpired(
  { record, calls }: Pick<Evidence, 'record' | 'calls'>,
  { at }: Exchange,
  complain: Complain,
): void {
  const endedAt = Math.max(...calls.map((call) => call.endedAt ?? at));
  if (record.kind === 'keyed' || at < endedAt + keptMs)
    complain('expired_early', `asked ${at - endedAt} ms after its end`);
}

/** What happened to a request, in one line. */
export function describe({ record, calls }: Pick<Evidence, 'record' | 'calls'>): string {
  const seen = record.exchanges.map((one) => `${one.status ?? 'no answer'}${one.isWhole ? '' : ' cut'}`);
  const ends = record.finals.map((final) => (final.type === 'error' ? `error ${final.code}` : final.type));
  const asked = calls.map(({ tokens, ended }) => `${tokens} tokens ${ended ?? 'open'}`);
  const plan = `${record.plan.tokens} tokens ${record.plan.ending}`;
  const jobs = [...record.jobIds].join(' ');
  return `plan [${plan}] client [${seen.slice(-6).join(', ')} → ${ends.join(', ')}] vendor [${asked.join(', ')}] jobs [${jobs}]`;
}
