import type { AnswerPlan } from './answer-plan.ts';
import type { CampaignOptions } from './campaign.ts';
import type { FaultKind } from './faults.ts';

/** A defect to be planted into the built product, and what must notice it. */
export interface Defect {
  readonly name: string;
  /** Files of the build in which the text is looked for: it must stand in one of them, once. */
  readonly files: RegExp;
  readonly text: string;
  readonly replacement: string;
  /** Rules of the oracle of which at least one must be broken. */
  readonly rules: readonly string[];
  /** Faults that lead there; none: it shows without any. */
  readonly faults: readonly FaultKind[];
  /** What answers must be like to show it. */
  readonly answers?: Partial<AnswerPlan>;
  /** How many requests, clients and faults there are, where others than usual show it. */
  readonly size?: Partial<Pick<CampaignOptions, 'requests' | 'clients' | 'faults' | 'gapMs'>>;
}

const usualSize = { requests: 160, clients: 24, apis: 2, workers: 2 };

/** The campaign that must notice a defect. Links fail often and for short: the one call that shows it has to be hit. */
export function campaignFor({ faults, answers, size }: Defect): CampaignOptions {
  if (faults.length === 0) return { ...usualSize, faults: 0, gapMs: 0, answers, ...size };
  const isQuick = faults.every((kind) => kind.includes('_link_') || kind.endsWith('_lost'));
  const pace = isQuick ? { faults: 60, gapMs: 200 } : { faults: 14, gapMs: 700 };
  return { ...usualSize, only: faults, ...pace, answers, ...size };
}

/** The api's own code: with what it shares with the ledger's program. */
const apiCode = /api\/main\.js$|bundles\/[^/]+\.js$/;

/**
 * The places are named by text of the build that is least likely to change. Where a change of the product takes one away, the
 * test says so, and the defect is to be planted anew at the place that now does the same.
 */
export const defects: readonly Defect[] = [
  {
    name: 'a settlement takes no hold to be the condition of a charge',
    files: /settle\.lua$/,
    text: 'if isHeld or entry then',
    replacement: 'if true then',
    rules: ['account_differs', 'left_in_redis'],
    faults: ['settlement_replies_lost'],
  },
  {
    name: 'a settlement leaves the slot of its key taken',
    files: /settle\.lua$/,
    text: 'table.insert(ended[running], job)',
    replacement: "table.insert(ended[running], 'no job')",
    rules: ['left_in_redis'],
    faults: [],
  },
  {
    name: 'a settlement forgets the charge of the account',
    files: /settle\.lua$/,
    text: "if charged > 0 then add(accounts, key, 'charged', charged) end",
    replacement: "if charged > 30000 then add(accounts, key, 'charged', charged) end",
    rules: ['account_differs'],
    faults: [],
  },
  {
    name: 'an admission holds nothing',
    files: /admit\.lua$/,
    text: "redis.call('ZADD', KEYS[1], unpack(holds))",
    replacement: "redis.call('EXISTS', KEYS[1])",
    rules: ['no_row', 'no_end', 'left_in_redis', 'account_differs'],
    faults: ['worker_killed_before_settling'],
  },
  {
    name: 'an idempotency key is not bound to its job',
    files: /admit\.lua$/,
    text: "redis.call('HSET', binding, 'job', job, 'body', body)",
    replacement: "redis.call('HSET', binding, 'other', job, 'body', body)",
    rules: ['doubled_row', 'answers_differ'],
    faults: [],
  },
  {
    name: 'an admission that is sent again counts again',
    files: /admit\.lua$/,
    text: 'if isRepeat then',
    replacement: 'if isRepeat and false then',
    rules: ['left_in_redis'],
    faults: ['redis_replies_lost'],
  },
  {
    name: 'a job whose output is committed is run again',
    files: /begin-job\.lua$/,
    text: "if state[5] then return verdict('interrupted') end",
    replacement: '',
    rules: ['vendor_called_again', 'doubled_tokens', 'lost_tokens', 'wrong_tokens'],
    faults: ['process_killed'],
    answers: { tokens: 100, gapMs: 50, writing: 'event_a_write', ending: 'whole' },
  },
  {
    name: 'frames are published and not logged',
    files: /append\.lua$/,
    text: "redis.call('XADD', log, last .. '-0', 'b', batch)",
    replacement: "redis.call('EXISTS', log)",
    rules: ['expired_early', 'lost_tokens', 'stuck'],
    faults: ['client_link_cut'],
    answers: { tokens: 40, gapMs: 20, writing: 'event_a_write', ending: 'whole' },
  },
  {
    name: 'whoever ends a job leaves its last frames in the journal',
    files: /finish\.lua$/,
    text: "if state[9] and expected == '' then",
    replacement: "if state[9] == '-' then",
    rules: ['replay_differs'],
    faults: ['process_killed'],
    answers: { tokens: 100, gapMs: 50, writing: 'event_a_write', ending: 'whole' },
  },
  {
    name: 'a reader takes live frames that come after a gap',
    files: apiCode,
    text: 'if (firstSeq > seq + 1 || firstSeq + frames.length <= seq + 1) return void 0;',
    replacement: 'if (firstSeq > seq + 1) return batch; if (firstSeq + frames.length <= seq + 1) return void 0;',
    rules: ['lost_tokens', 'wrong_tokens'],
    // Whoever resumes at an api that has read the same answer before hears of it before he has caught up.
    faults: ['client_link_cut'],
    answers: { tokens: 100, gapMs: 50, writing: 'event_a_write', ending: 'whole' },
  },
  {
    name: 'records are acknowledged before they are written',
    files: apiCode,
    text: 'const { refused, postponed } = await writeRecords(store, batch.map(({ item }) => item), log);',
    replacement:
      'const { refused, postponed } = await writeRecords(store, batch.map(({ item }) => item), log).catch(() => ({ refused: [], postponed: [] }));',
    rules: ['no_row', 'account_differs'],
    faults: ['database_locked_for_long'],
    size: { faults: 4, gapMs: 4000 },
  },
  {
    name: 'a request stays in the store',
    files: /bundles\/version-\w+\.js$|bundles\/.*\.js$/,
    text: 'await unlink(join(this.location, id))',
    replacement: 'await Promise.resolve()',
    rules: ['left_in_blobs'],
    faults: [],
  },
  {
    name: 'a stream that fails ends without its error',
    files: apiCode,
    text: 'const event = errorEvent(this.#options.view, error, this.#folded);',
    replacement: "const event = ': nothing';",
    rules: ['silent_end'],
    faults: [],
    answers: { ending: 'cut', tokens: 40, gapMs: 5, writing: 'event_a_write' },
  },
  {
    name: 'an end is taken behind frames that Redis has lost',
    files: /finish\.lua$/,
    text: "if expected ~= '' and tonumber(expected) ~= first then return answer('gap') end",
    replacement: '',
    rules: ['lost_tokens', 'stuck', 'late_end', 'outcome_differs'],
    faults: ['answers_rolled_back'],
    answers: { tokens: 3, firstMs: 100, gapMs: 800, writing: 'event_a_write', ending: 'whole' },
    size: { faults: 40, gapMs: 500 },
  },
  {
    name: 'the lease of a job is not renewed',
    files: /workers\/main\.js$/,
    text: 'if (due.length > 0) this.#renew(due);',
    replacement: ';',
    rules: ['failed_without_fault'],
    faults: [],
    answers: { tokens: 3, firstMs: 40_000, ending: 'whole' },
    size: { requests: 24 },
  },
  {
    name: 'a settlement keeps the hold of what was cancelled',
    files: /settle\.lua$/,
    text: "local isHeld = redis.call('ZREM', KEYS[1], member) == 1",
    replacement:
      "local isHeld = not string.find(text, '\"cancelled\"', 1, true) and redis.call('ZREM', KEYS[1], member) == 1",
    rules: ['left_in_redis'],
    faults: [],
  },
  {
    name: 'what a dead worker has not settled stays so',
    files: apiCode,
    text: 'await settleNow(this.#context.redis, settlement);',
    replacement: '',
    rules: ['no_row', 'no_end', 'left_in_redis', 'account_differs'],
    faults: ['worker_killed_before_settling'],
  },
  {
    name: 'an answer ends as whole though a part of it was refused',
    files: /workers\/main\.js$/,
    text: 'if (verdict instanceof Error) this.#fail(lostFrames(this.#hasDelta, verdict));',
    replacement: 'if (verdict instanceof Error) ;',
    rules: ['lost_tokens'],
    faults: ['redis_refuses_for_long'],
    answers: { tokens: 100, gapMs: 50, writing: 'event_a_write', ending: 'whole' },
    size: { faults: 4, gapMs: 24_000 },
  },
  {
    name: 'the vendor is called again though the client has read of its answer',
    files: /workers\/main\.js$/,
    text: 'if (failure === void 0 || sink.hasWritten || job.signal.aborted) throw thrown;',
    // What breaks off in its middle is not to be repeated for another reason as well.
    replacement:
      'if (sink.hasWritten && calls === 1) continue; if (failure === void 0 || job.signal.aborted) throw thrown;',
    rules: ['wrong_tokens', 'vendor_called_again'],
    faults: [],
    answers: { ending: 'cut', tokens: 40, gapMs: 5, writing: 'event_a_write' },
  },
];
