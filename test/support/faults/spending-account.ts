import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { readAccountMoney, readBudget } from '../../../shared/accounts/account-money.ts';
import { ensureAccount, findAccount } from '../../../shared/accounts/accounts.ts';
import { findApiKeyByHash } from '../../../shared/accounts/api-keys.ts';
import { hashApiKey } from '../../../shared/ids.ts';
import { accountKeys } from '../../../shared/redis/keys.ts';
import { held } from '../chat-requests.ts';
import { assertErrorAnswer } from '../error-answers.ts';
import type { ApiProcess } from '../gateway.ts';
import { type JobRecords, jobIdOf } from '../job-records.ts';
import { makeApiKey } from '../make-api-key.ts';

/** Nano-dollars. */
export interface Means {
  readonly credit: number;
  readonly budget: number;
}

const period = 'month';
/** What each request of an account asks for: its price is the same every time. */
const question = { max_tokens: 60, user: 'spending' };

/** An account with a balance and one key with a budget, and what its callers were answered. */
export class SpendingAccount {
  readonly id: string;
  readonly key: string;
  readonly means: Means;
  /** What a held answer said it had cost, in nano-dollars, by its job; a stream cannot say so. */
  readonly told = new Map<string, number>();
  /** Jobs that were answered with 200, or accepted. */
  readonly answered = new Set<string>();
  refused = 0;
  readonly #records: JobRecords;
  readonly #keyId: string;

  private constructor(records: JobRecords, named: { id: string; key: string; keyId: string; means: Means }) {
    this.#records = records;
    this.id = named.id;
    this.key = named.key;
    this.means = named.means;
    this.#keyId = named.keyId;
  }

  static async open(records: JobRecords, id: string, means: Means): Promise<SpendingAccount> {
    const { db, gateway } = records;
    await ensureAccount(db, { id, name: id }, { amount: means.credit, note: 'a test', createdBy: 'test' });
    const key = await makeApiKey(gateway, { accountId: id, budget: { amount: means.budget, period } });
    const keyId = (await findApiKeyByHash(db, hashApiKey(key)))?.id as string;
    return new SpendingAccount(records, { id, key, keyId, means });
  }

  get authorization(): { authorization: string } {
    return { authorization: `Bearer ${this.key}` };
  }

  /** What a request that does not pay for itself is told that it may cost, in nano-dollars. */
  async readPrice(): Promise<number> {
    const response = await this.#post(this.#records.gateway.url, 0);
    const { error } = (await response.json()) as { error?: { message: string } };
    const dollars = /may cost up to \$([\d.]+)/.exec(error?.message ?? '')?.[1];
    assert.ok(dollars, `${response.status} ${error?.message}`);
    return Math.round(Number(dollars) * 1e9);
  }

  /** Asks one time: a held answer, a stream, or a stream that is left in its middle, by turns. */
  async ask({ url }: Pick<ApiProcess, 'url'>, round: number): Promise<void> {
    const response = await this.#post(url, round);
    if (response.status === 429) {
      await assertErrorAnswer(response, 429, 'insufficient_quota');
      this.refused++;
      return;
    }
    assert.equal(response.status, 200);
    const id = jobIdOf(response);
    this.answered.add(id);
    if (round % 3 === 2) {
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();
      await reader.cancel();
      return;
    }
    await response.text();
    if (round % 3 === 0) this.told.set(id, Math.round(Number(response.headers.get('x-sluice-cost')) * 1e9));
  }

  async askUntil(api: ApiProcess, until: number, restMs: number): Promise<void> {
    for (let round = 0; Date.now() < until; round++) {
      await this.ask(api, round);
      await delay(restMs);
    }
  }

  #post(url: string, round: number): Promise<Response> {
    const body = { ...held('WORDS:20@100', question), stream: round % 3 !== 0 };
    return this.#records.post(body, this.authorization, { url });
  }

  /**
   * Asserts that each answered job is in the ledger once and nothing else is, at the cost its caller was told, and that the
   * ledger's sum is what balance and budget have lost, in Redis and in the database, with nothing held any more.
   * @returns that sum, in nano-dollars
   */
  async assertSquare(): Promise<number> {
    const { db, redis } = this.#records;
    const rows = await db
      .selectFrom('jobs')
      .select(['id', 'cost', 'outcome'])
      .where('account_id', '=', this.id)
      .execute();
    assert.deepEqual(rows.map(({ id }) => id).sort(), [...this.answered].sort(), this.id);
    const spent = rows.reduce((sum, { cost }) => sum + (cost ?? 0), 0);
    const toldOf = new Map(rows.map(({ id, cost }) => [id, cost]));
    for (const [id, cost] of this.told) assert.equal(toldOf.get(id), cost, id);
    assert.ok(rows.every(({ outcome }) => outcome === 'completed' || outcome === 'cancelled'));
    const { credit, budget } = this.means;
    assert.deepEqual(await readAccountMoney(redis, this.id), { credit, charged: spent, held: 0 });
    const account = await findAccount(db, this.id);
    assert.deepEqual([account?.credit, account?.charged], [credit, spent]);
    assert.equal(await readBudget(redis, { account: this.id, apiKeyId: this.#keyId, period }), spent);
    assert.equal(await redis.hget(accountKeys.budget(this.id, this.#keyId), 'held'), '0');
    assert.equal(await redis.zcard(accountKeys.holds(this.id)), 0);
    assert.ok(spent > 0 && spent <= Math.min(credit, budget), `${this.id}: ${spent} of ${credit} and ${budget}`);
    return spent;
  }
}
