import assert from 'node:assert/strict';
import { it } from 'node:test';
import { chatRequest } from '../../../shared/capabilities/chat.ts';
import { supportOf } from '../../../shared/vendors/field-support.ts';
import type { ChatFieldSupport, FieldSupport } from '../../../shared/vendors/vendor-description.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { callOf, collect } from './fixture-vendor.ts';
import type { VendorBench } from './vendor-bench.ts';

export type Fields = Record<string, unknown>;

/** What is given beside the messages, and what is sent for it, or the path that is refused. */
export interface FieldRow {
  readonly field: string;
  readonly support: FieldSupport;
  readonly given: Fields;
  readonly sent?: Fields;
  readonly refused?: string;
}

/** A field by its values, and what is sent for each. */
export function sentAs(field: string, support: FieldSupport, ...pairs: [value: unknown, sent: Fields][]): FieldRow[] {
  return pairs.map(([value, sent]) => ({ field, support, given: { [field]: value }, sent }));
}

export function dropped(field: string, value: unknown): FieldRow[] {
  return sentAs(field, 'ignored', [value, {}]);
}

export function refused(field: string, value: unknown): FieldRow[] {
  return [{ field, support: 'rejected', given: { [field]: value }, refused: field }];
}

/** Of the fields that fare alike wherever a chat is translated; what is inside of messages has suites of its own. */
export const translatedRows: readonly FieldRow[] = [
  ...dropped('metadata', { topic: 'a' }),
  ...dropped('store', true),
  ...dropped('prompt_cache_key', 'key'),
  ...dropped('prompt_cache_retention', '24h'),
  ...dropped('prompt_cache_options', { mode: 'explicit' }),
  ...dropped('prediction', { type: 'content', content: 'Hi' }),
  ...dropped('verbosity', 'low'),
  ...refused('logit_bias', { 50256: -100 }),
  ...refused('functions', [{ name: 'f' }]),
  ...refused('modalities', ['text', 'audio']),
  ...refused('audio', { voice: 'alloy', format: 'wav' }),
  ...refused('moderation', { model: 'omni-moderation-latest' }),
  ...refused('web_search_options', { search_context_size: 'low' }),
];

/** How a suite asks for fields. */
export interface FieldTrial {
  /** What a request becomes, beside its model and its messages. */
  sentFor(given: Fields, model?: string): Promise<Fields>;
  /** A request is refused by this path, and nothing is sent. */
  refuses(given: Fields, param: string, model?: string): Promise<void>;
}

/** @param usualModel the one that is asked where nothing else is said */
export function fieldTrial(bench: VendorBench<Offering<'chat'>>, usualModel: string): FieldTrial {
  const sentFor = async (given: Fields, model = usualModel): Promise<Fields> => {
    const request = JSON.stringify({ messages: [{ role: 'user', content: 'Hello!' }], ...given });
    await bench.vendor.chat(callOf({ model, stream: false, request }), collect());
    const { model: named = model, messages: _, ...sent } = bench.posted as Fields;
    assert.equal(named, model);
    return sent;
  };
  const refuses = async (given: Fields, param: string, model = usualModel): Promise<void> => {
    const asked = bench.server.requests.length;
    await assert.rejects(sentFor(given, model), { code: 'invalid_request_error', status: 400, param });
    assert.equal(bench.server.requests.length, asked);
  };
  return { sentFor, refuses };
}

/** Proves every row, that no field of a vendor's table, nor of the schema of chats, lacks one, and what no row can say. */
export function itProvesFields(
  rows: readonly FieldRow[],
  table: ChatFieldSupport,
  { sentFor, refuses }: FieldTrial,
  always: Fields = {},
): void {
  for (const { field, support, given, sent, refused: path } of rows) {
    it(`${field} is ${support} in ${JSON.stringify(given).slice(0, 120)}`, async () => {
      assert.equal(supportOf(table, field), support);
      if (path !== undefined) await refuses(given, path);
      else assert.deepEqual(await sentFor(given), { ...always, ...sent });
    });
  }

  it('every field of the support table and of the chat schema is proven by a row', () => {
    // Of what is inside of messages the suites of messages say what becomes of it.
    const elsewhere = (field: string) =>
      ['*', 'model', 'stream', 'messages'].includes(field) || /^messages\./.test(field);
    const proven = new Set(rows.map(({ field }) => field));
    const unproven = Object.keys(table).filter((field) => !proven.has(field) && !elsewhere(field));
    assert.deepEqual(unproven, []);
    // What the schema knows and no support names would be passed on to a vendor that refuses it.
    const known = Object.keys(chatRequest.shape ?? {}).filter((field) => field !== 'model' && field !== 'stream');
    assert.deepEqual(
      known.filter((field) => !Object.hasOwn(table, field)),
      [],
    );
  });

  it('tools that are no functions and formats without a schema are rejected with their path', async () => {
    const known = { type: 'function', function: { name: 'f' } };
    const custom = { type: 'custom', custom: { name: 'c' } };
    await refuses({ tools: [known, custom] }, 'tools[1].type');
    await refuses({ tools: [known], tool_choice: custom }, 'tool_choice');
    const unshaped = { type: 'json_schema', json_schema: { name: 'answer' } };
    await refuses({ response_format: unshaped }, 'response_format.json_schema');
  });
}
