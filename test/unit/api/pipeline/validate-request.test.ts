import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatCompletions } from '../../../../api/endpoints/chat/chat-completions.ts';
import { messages } from '../../../../api/endpoints/messages/messages.ts';
import { checkRequest, ignoredByAll, withCheck } from '../../../../api/pipeline/validate-request.ts';
import type { UnsupportedParameters } from '../../../../shared/accounts/api-keys.ts';
import { createCatalogue } from '../../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../../shared/catalogue/models.ts';
import { vendorsOn } from '../../../support/vendor-settings.ts';

/** The scopes of a key that may use every model. */
const everything = { capabilities: undefined, models: undefined };
const vendors = vendorsOn('openai', 'groq', 'mistral', 'gemini', 'anthropic', 'bedrock');

function chatModel(id: string, routes: Model['routes'], more: Partial<Model> = {}): Model {
  return { id, created: 1, ownedBy: 'maker', capability: 'chat', routes, ...more };
}

/** What the routes of the model `m` make of a chat with these fields. */
function check(models: readonly Model[], fields: object, unsupportedParameters: UnsupportedParameters = 'refuse') {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...fields };
  const parsed = chatCompletions.parse?.(Buffer.from(JSON.stringify(body)));
  assert.ok(parsed);
  const catalogue = createCatalogue({ vendors, models });
  return checkRequest({ catalogue }, chatCompletions, parsed, { unsupportedParameters, ...everything });
}

const viaGroq = { vendor: 'groq', model: 'g' };
const viaMistral = { vendor: 'mistral', model: 's' };
const viaOpenAi = { vendor: 'openai', model: 'o' };

describe('checkRequest', () => {
  it('checkRequest excludes the routes that would reject the request, those of fallbacks included', () => {
    const models = [
      chatModel('m', [viaGroq, viaOpenAi, viaMistral], { fallbacks: ['other'] }),
      chatModel('other', [{ vendor: 'groq', model: 'vendor/other' }]),
    ];
    assert.deepEqual(check(models, {}).excludedRoutes, []);
    const { excludedRoutes, ignored } = check(models, { n: 2 });
    assert.deepEqual(excludedRoutes, ['groq/g', 'groq/vendor/other']);
    assert.deepEqual([...ignored.keys()], ['openai', 'mistral']);
    assert.deepEqual(check(models, { logit_bias: { 1: 2 } }).excludedRoutes, [
      'groq/g',
      'mistral/s',
      'groq/vendor/other',
    ]);
  });

  it('checkRequest never puts a field name into the header that could break it', () => {
    const models = [chatModel('m', [{ vendor: 'gemini', model: 'g' }])];
    const { ignored } = check(models, { 'a: b\r\nc': 1 }, 'drop');
    assert.equal(ignored.get('gemini'), 'unknown');
  });

  it('checkRequest rejects a request that all routes would reject, with the error of the first route', () => {
    const routes = [viaOpenAi, { ...viaGroq, maxOutputTokens: 120 }];
    const models = [chatModel('m', routes, { maxOutputTokens: 100 })];
    assert.throws(() => check(models, { max_tokens: 150 }), { status: 400, param: 'max_tokens', message: /<= 100 / });
    assert.throws(() => check(models, { max_tokens: 150, n: 2 }), { param: 'max_tokens' });
    assert.throws(() => check([chatModel('m', [viaGroq])], { n: 2 }), { param: 'n' });
  });

  it('checkRequest applies the limits of each route, and none where a route has no limit of its own', () => {
    const larger = chatModel('m', [viaOpenAi, { ...viaGroq, maxOutputTokens: 200 }], { maxOutputTokens: 100 });
    assert.deepEqual(check([larger], { max_tokens: 150 }).excludedRoutes, ['openai/o']);
    const unknown = chatModel('m', [viaOpenAi, viaGroq], { maxOutputTokens: 100 });
    assert.deepEqual(check([unknown], { max_tokens: 150 }).excludedRoutes, ['openai/o']);
    assert.deepEqual(check([unknown], { max_tokens: 100 }).excludedRoutes, []);
  });

  it('withCheck lowers the limit of a message to the longest answer of the routes that take it', async () => {
    const facts = {
      anthropic: { maxOutputTokens: 16_000 },
      bedrock: { maxOutputTokens: 4096 },
      groq: { maxOutputTokens: 8192 },
      mistral: {},
    };
    const limitOf = async (asked: number, first: keyof typeof facts, other: keyof typeof facts) => {
      const message = { model: 'm', max_tokens: asked, messages: [{ role: 'user', content: 'Hello' }] };
      const parsed = await messages.parse?.(Buffer.from(JSON.stringify(message)));
      assert.ok(parsed);
      // The facts of a model are those of its first route.
      const routes = [first, other].map((vendor) => ({ vendor, model: vendor, ...facts[vendor] }));
      const catalogue = createCatalogue({ vendors, models: [chatModel('m', routes, facts[first])] });
      const caller = { unsupportedParameters: 'refuse' as const, ...everything };
      return withCheck(parsed, checkRequest({ catalogue }, messages, parsed, caller)).extent?.outputTokens;
    };
    assert.equal(await limitOf(32_000, 'groq', 'bedrock'), 8192);
    assert.equal(await limitOf(8000, 'groq', 'bedrock'), 8000);
    assert.equal(await limitOf(32_000, 'bedrock', 'mistral'), 32_000);
    // Anthropic refuses it, so that the other one alone is left.
    assert.equal(await limitOf(32_000, 'anthropic', 'bedrock'), 4096);
    assert.equal(await limitOf(10_000, 'anthropic', 'bedrock'), 10_000);
  });

  it('checkRequest lists the ignored fields by vendor, and for all vendors only when they agree', () => {
    const models = [chatModel('m', [viaOpenAi, viaGroq])];
    const differing = check(models, { store: true });
    assert.deepEqual(
      [...differing.ignored],
      [
        ['openai', ''],
        ['groq', 'store'],
      ],
    );
    assert.equal(ignoredByAll(differing), undefined);
    assert.equal(ignoredByAll(check(models, {})), '');
    assert.equal(ignoredByAll(check([chatModel('m', [viaGroq, viaMistral])], { store: true })), 'store');
  });

  it('checkRequest takes a cache of an hour for priced where input is, and where writes are told by their lifetimes', () => {
    const cached = { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } };
    const messages = [{ role: 'user', content: [cached] }];
    const priced = { input: 4, output: 9 };
    const unpriced = (prices: Model['prices'], ...routes: Model['routes']): string | undefined =>
      check([chatModel('m', routes, { prices })], { messages }).unpriced?.param;
    const param = 'messages[0].content[0].cache_control.ttl';
    for (const vendor of ['anthropic', 'bedrock']) {
      assert.equal(unpriced(priced, { vendor, model: 'c' }), undefined, vendor);
      assert.equal(unpriced({ output: 9 }, { vendor, model: 'c' }), param, vendor);
    }
    assert.equal(unpriced(priced, viaOpenAi), param);
    assert.equal(unpriced(priced, { vendor: 'anthropic', model: 'c' }, { ...viaOpenAi, prices: priced }), param);
  });

  it('checkRequest excludes no route for fields that the key lets it drop, but does for limits', () => {
    const models = [chatModel('m', [viaGroq, { ...viaOpenAi, maxOutputTokens: 10 }])];
    const { excludedRoutes, ignored } = check(models, { n: 2, max_tokens: 20 }, 'drop');
    assert.deepEqual([excludedRoutes, [...ignored]], [['openai/o'], [['groq', 'n']]]);
  });

  it('checkRequest returns 404 with similar names for an unknown model, and 400 for another capability', () => {
    const models = [chatModel('mm', [viaOpenAi]), chatModel('painter', [viaOpenAi], { capability: 'image' })];
    assert.throws(() => check([chatModel('model-a', [viaOpenAi])], { model: 'model-b' }), {
      ...{ status: 404, code: 'model_not_found', param: 'model' },
      message: /Did you mean model-a\?/,
    });
    assert.throws(() => check(models, { model: 'painter' }), { status: 400, param: 'model' });
  });

  it('checkRequest returns a 404 that tells when a model was shut down, and its replacement if the caller may use that', () => {
    const gone = chatModel('gone', [viaOpenAi], { retired: true, deprecatedAt: 1_795_996_800, replacement: 'next' });
    const told = 'The model `gone` was shut down by its vendor (openai) on 2026-11-30.';
    const refusal = { status: 404, code: 'model_not_found', param: 'model' };
    assert.throws(() => check([gone, chatModel('next', [viaOpenAi])], { model: 'gone' }), {
      ...refusal,
      message: `${told} Use \`next\` instead.`,
    });
    assert.throws(() => check([gone, chatModel('next', [{ vendor: 'luma', model: 'n' }])], { model: 'gone' }), {
      ...refusal,
      message: told,
    });
    const parsed = chatCompletions.parse?.(Buffer.from('{"model":"gone","messages":[{"role":"user","content":"Hi"}]}'));
    assert.ok(parsed);
    const catalogue = createCatalogue({ vendors, models: [gone, chatModel('next', [viaOpenAi])] });
    const scopes = { ...everything, models: ['gone'], unsupportedParameters: 'refuse' as const };
    assert.throws(() => checkRequest({ catalogue }, chatCompletions, parsed, scopes), { ...refusal, message: told });
  });

  it('checkRequest returns a 404 that tells a model whose vendor is off from an unknown one, and lists available models', () => {
    const off = (id: string, ...vendors: string[]) =>
      chatModel(
        id,
        vendors.map((vendor) => ({ vendor, model: id })),
      );
    const many = Array.from({ length: 7 }, (_, index) => chatModel(`chat-${index}`, [viaOpenAi]));
    const models = [...many, chatModel('painter', [viaOpenAi], { capability: 'image' }), off('faraway', 'luma')];
    assert.throws(() => check(models, { model: 'faraway' }), {
      ...{ status: 404, code: 'model_not_found', param: 'model' },
      message:
        'The model `faraway` is known, but its vendor (luma) is off on this gateway. Available chat models: chat-0, chat-1, chat-2, chat-3, chat-4, ….',
    });
    assert.throws(() => check([off('faraway', 'luma', 'kling')], { model: 'faraway' }), {
      message: 'The model `faraway` is known, but its vendors (luma, kling) are off on this gateway.',
    });
    // One with legacy completions only would be refused, too.
    const legacy = chatModel('a-legacy-one', [viaOpenAi], { legacyCompletions: true });
    assert.throws(
      () => check([legacy, chatModel('chat-0', [viaOpenAi]), off('faraway', 'luma')], { model: 'faraway' }),
      {
        message: / Available chat models: chat-0\.$/,
      },
    );
    assert.throws(() => check(models, { model: 'nothing-like-it' }), { message: /does not exist/ });
  });

  it('checkRequest excludes no route for the fields of other vendors when one vendor has the model', () => {
    assert.deepEqual(
      check([chatModel('m', [viaOpenAi])], { n: 2, logit_bias: { 1: 2 }, nobody_knows_it: 1 }).excludedRoutes,
      [],
    );
  });
});
