import type { AnswerPlan } from './answer-plan.ts';
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
}

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
    faults: ['redis_replies_lost', 'redis_link_cut'],
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
    replacement: "redis.call('ZADD', KEYS[1], 0, holds[2])",
    rules: ['no_row', 'left_in_redis'],
    faults: [],
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
    rules: ['lost_tokens', 'stuck'],
    faults: ['client_link_cut'],
    answers: { tokens: 40, gapMs: 20, writing: 'event_a_write', ending: 'whole' },
  },
  {
    name: 'a reader takes live frames that come after a gap',
    files: /api\/main\.js$/,
    text: 'if (batch.firstSeq !== this.#cursor + 1) {',
    replacement: 'if (batch.firstSeq <= this.#cursor) {',
    rules: ['lost_tokens', 'wrong_tokens'],
    faults: ['redis_link_cut', 'redis_replies_lost'],
    answers: { tokens: 100, gapMs: 50, writing: 'event_a_write', ending: 'whole' },
  },
  {
    name: 'records are acknowledged before they are written',
    files: /api\/main\.js$/,
    text: 'const { refused, postponed } = await writeRecords(store, batch.map(({ item }) => item), log);',
    replacement:
      'const { refused, postponed } = await writeRecords(store, batch.map(({ item }) => item), log).catch(() => ({ refused: [], postponed: [] }));',
    rules: ['no_row', 'account_differs'],
    faults: ['database_locked'],
  },
  {
    name: 'a request stays in the store',
    files: /bundles\/version-\w+\.js$|bundles\/.*\.js$/,
    text: 'return this.#disk.delete(id);',
    replacement: 'return Promise.resolve();',
    rules: ['left_in_blobs'],
    faults: [],
  },
  {
    name: 'a stream that fails ends without its error',
    files: /api\/main\.js$/,
    text: 'const event = errorEvent(this.#options.view, error, this.#folded);',
    replacement: "const event = ': nothing';",
    rules: ['silent_end'],
    faults: [],
    answers: { ending: 'cut', tokens: 40, gapMs: 5, writing: 'event_a_write' },
  },
];
