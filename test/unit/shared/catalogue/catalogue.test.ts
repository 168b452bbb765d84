import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { buildCatalogue, catalogueText } from '../../../../catalogue/build-catalogue.ts';
import { readModelsDev } from '../../../../catalogue/models-dev.ts';
import { shutdowns } from '../../../../catalogue/shutdowns.ts';
import { sources } from '../../../../catalogue/sources.ts';
import { readTierPrices } from '../../../../catalogue/tier-prices.ts';
import { capabilities } from '../../../../shared/capabilities/capability.ts';
import { capabilityOf } from '../../../../shared/catalogue/capability-of.ts';
import { createCatalogue } from '../../../../shared/catalogue/catalogue.ts';
import { catalogueFile } from '../../../../shared/catalogue/model.ts';
import { type Model, models } from '../../../../shared/catalogue/models.ts';
import { type Prices, tokenPrices } from '../../../../shared/money/cost.ts';
import { pricesAt } from '../../../../shared/money/service-tier.ts';
import { findVendorRow } from '../../../../shared/vendors/vendors.ts';
import { everyVendor, vendorsOn } from '../../../support/vendor-settings.ts';

const text = readFileSync(new URL('../../../../shared/catalogue/models.json', import.meta.url), 'utf8');
const file = catalogueFile.parse(JSON.parse(text));

describe('the catalogue', () => {
  it('the catalogue names every model once, with a lower-case owner and a time in seconds', () => {
    const ids = models.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    for (const model of models) {
      assert.equal(model.ownedBy, model.ownedBy.toLowerCase());
      assert.ok(model.created > 1_600_000_000 && model.created < 2_000_000_000, model.id);
    }
  });

  it('the catalogue lists and finds only models of vendors that are on', () => {
    const sandbox = createCatalogue({ vendors: vendorsOn('sandbox') });
    assert.deepEqual(
      sandbox.list().map(({ id, ownedBy, capability }) => [id, ownedBy, capability]),
      [
        ['sandbox-chat', 'sandbox', 'chat'],
        ['sandbox-reasoning', 'sandbox', 'chat'],
        ['sandbox-responses', 'sandbox', 'chat'],
        ['sandbox-instruct', 'sandbox', 'chat'],
        ['sandbox-embedding', 'sandbox', 'embedding'],
        ['sandbox-image', 'sandbox', 'image'],
        ['sandbox-transcribe', 'sandbox', 'transcription'],
        ['sandbox-speech', 'sandbox', 'speech'],
        ['sandbox-video', 'sandbox', 'video'],
        ['sandbox-video-portrait', 'sandbox', 'video'],
      ],
    );
    assert.equal(sandbox.find('gpt-4o-mini'), undefined);
    const openai = createCatalogue({ vendors: vendorsOn('openai') });
    assert.equal(openai.find('sandbox-chat'), undefined);
    assert.deepEqual(openai.find('gpt-4o-mini')?.routes, [{ vendor: 'openai', model: 'gpt-4o-mini' }]);
    assert.deepEqual(createCatalogue({ vendors: {} }).list(), []);
    const current = models.filter(({ retired, routes }) => {
      return retired !== true || routes.some(({ vendor }) => vendor !== routes[0]?.vendor);
    });
    assert.equal(createCatalogue({ vendors: everyVendor }).list().length, current.length);
    const anthropic = createCatalogue({ vendors: vendorsOn('anthropic') }).list();
    assert.ok(anthropic.length > 0 && anthropic.every(({ ownedBy }) => ownedBy === 'anthropic'));
  });

  it('the catalogue omits routes to vendors that are off', () => {
    const model: Model = {
      id: 'family/model',
      created: 1,
      ownedBy: 'family',
      capability: 'chat',
      routes: [
        { vendor: 'first', model: 'a' },
        { vendor: 'second', model: 'b' },
      ],
    };
    const catalogue = createCatalogue({ vendors: vendorsOn('second'), models: [model] });
    assert.deepEqual(catalogue.find('family/model')?.routes, [{ vendor: 'second', model: 'b' }]);
  });

  it('the catalogue shows the limits and prices of the first route that is on', () => {
    const model: Model = {
      id: 'open-model',
      created: 1,
      ownedBy: 'maker',
      capability: 'chat',
      contextWindow: 1000,
      maxOutputTokens: 100,
      prices: { input: 5 },
      routes: [
        { vendor: 'first', model: 'a' },
        { vendor: 'second', model: 'b', contextWindow: 500, prices: { input: 3 } },
      ],
    };
    const shown = (...vendors: string[]) => {
      const found = createCatalogue({ vendors: vendorsOn(...vendors), models: [model] }).find('open-model');
      return [found?.contextWindow, found?.maxOutputTokens, found?.prices?.input];
    };
    assert.deepEqual(shown('first', 'second'), [1000, 100, 5]);
    assert.deepEqual(shown('first'), [1000, 100, 5]);
    assert.deepEqual(shown('second'), [500, undefined, 3]);
  });

  it('the catalogue finds nothing under the names of built-in properties', () => {
    const catalogue = createCatalogue({ vendors: everyVendor });
    for (const id of ['constructor', '__proto__', 'toString', '']) assert.equal(catalogue.find(id), undefined);
  });

  it('nearest suggests up to three similar names, the nearest first, and none for a name without similar ones', () => {
    const catalogue = createCatalogue({ vendors: vendorsOn('openai', 'sandbox') });
    assert.equal(catalogue.nearest('gpt-4o-mimi')[0], 'gpt-4o-mini');
    assert.equal(catalogue.nearest('openai/gpt-4o')[0], 'gpt-4o');
    assert.equal(catalogue.nearest('GPT-4O-MINI')[0], 'gpt-4o-mini');
    assert.equal(catalogue.nearest('sandbox-chta')[0], 'sandbox-chat');
    assert.ok(catalogue.nearest('gpt-4').length <= 3);
    for (const id of ['claude', 'x'.repeat(256), 'ab', 'vendor/', '']) assert.deepEqual(catalogue.nearest(id), []);
  });

  it('nearest suggests names with another vendor prefix, without one and in another case', () => {
    const catalogue = createCatalogue({ vendors: everyVendor });
    assert.equal(catalogue.nearest('llama-3.3-70b-versatil')[0], 'groq/llama-3.3-70b-versatile');
    assert.equal(catalogue.nearest('minimax-m2.7')[0], 'MiniMax-M2.7');
    assert.equal(catalogue.nearest('nobody/claude-opus-4-8')[0], 'claude-opus-4-8');
  });

  it('nearest finds similar names among hundreds of models within milliseconds', () => {
    const catalogue = createCatalogue({ vendors: everyVendor });
    const unknown = Array.from({ length: 50 }, (_, index) => `claude-sonnet-${index}-preview`);
    for (const id of unknown) catalogue.nearest(id);
    // Its own time: the machine may be busy.
    const before = process.cpuUsage();
    for (const id of unknown) catalogue.nearest(id);
    const { user } = process.cpuUsage(before);
    assert.ok(user < unknown.length * 10_000, `${user} µs`);
  });
});

describe('the generated catalogue', () => {
  it('the generated catalogue has over 200 models of every capability, with reasoning ones among them', () => {
    const listed = createCatalogue({
      vendors: vendorsOn(...Object.keys(everyVendor).filter((name) => name !== 'sandbox')),
    }).list();
    assert.ok(listed.length > 200, `${listed.length}`);
    const least = { chat: 150, embedding: 5, image: 30, transcription: 10, speech: 10, video: 3 };
    for (const capability of capabilities) {
      const count = listed.filter((model) => model.capability === capability).length;
      assert.ok(count >= least[capability], `${capability}: ${count}`);
    }
    assert.ok(listed.filter(({ reasoning }) => reasoning).length > 50);
    assert.ok(listed.filter(({ reasoning }) => reasoning === false).length > 20);
  });

  it('the generated catalogue states the inputs and outputs of each model, and traits of its capability alone', () => {
    const outputs: Record<Model['capability'], NonNullable<Model['output']>[number]> = {
      ...{ chat: 'text', embedding: 'vector', image: 'image' },
      ...{ transcription: 'text', speech: 'audio', video: 'video' },
    };
    for (const model of file.models) {
      assert.equal(capabilityOf(model), model.capability, model.id);
      assert.ok(model.input?.includes(model.capability === 'transcription' ? 'audio' : 'text'), model.id);
      assert.ok(model.output?.includes(outputs[model.capability]), model.id);
      if (model.capability === 'chat') assert.equal(typeof model.reasoning, 'boolean', model.id);
      if (model.chat?.effort && !model.legacyCompletions) assert.equal(model.reasoning, true, model.id);
      if (model.image?.tasks.includes('edit')) assert.ok(model.input?.includes('image'), model.id);
      const { contextWindow = Number.POSITIVE_INFINITY, maxOutputTokens = 1 } = model;
      assert.ok(maxOutputTokens <= contextWindow, model.id);
    }
  });

  it('the generated catalogue has plausible prices in whole nano-dollars', () => {
    // A thousand tokens: from a hundredth of a cent a million to a thousand dollars a million.
    const sane = (price: number | undefined) => price === undefined || (price >= 100 && price <= 1_000_000_000);
    for (const { id, prices, routes } of file.models) {
      for (const { input, cachedInput, output } of [prices, ...routes.map((route) => route.prices)].filter(
        (some) => some !== undefined,
      )) {
        assert.ok([input, cachedInput, output].every(sane), id);
        if (input !== undefined && cachedInput !== undefined) assert.ok(cachedInput <= input, id);
      }
    }
    const priced = (id: string) => file.models.find((model) => model.id === id)?.prices;
    // $5 and $30 a million tokens, half a dollar from the cache, and the double price of long requests.
    assert.deepEqual(priced('gpt-5.5'), {
      ...{ input: 5_000_000, cachedInput: 500_000, output: 30_000_000 },
      above: [{ tokens: 272_000, input: 10_000_000, cachedInput: 1_000_000, output: 45_000_000 }],
      tiers: { flex: 0.5, priority: { input: 12_500_000, cachedInput: 1_250_000, output: 75_000_000 } },
    });
    // $0.36 an hour; $15 a million characters.
    assert.deepEqual(priced('whisper-1'), { second: 100_000 });
    assert.deepEqual(priced('tts-1'), { character: 15_000 });
  });

  it('the generated catalogue has service tiers with prices above 0, priority never cheaper than the standard tier, flex never dearer', () => {
    const counts: Record<string, number> = {};
    for (const { id, capability, prices, routes } of file.models) {
      const lists = [{ prices, vendor: routes[0]?.vendor }, ...routes.slice(1)];
      for (const { prices: own, vendor } of lists) {
        for (const [tier, price] of Object.entries(own?.tiers ?? {})) {
          assert.equal(capability, 'chat', id);
          counts[`${vendor} ${tier}`] = (counts[`${vendor} ${tier}`] ?? 0) + 1;
          const at = pricesAt(own, tier);
          assert.ok(own && at, id);
          if (typeof price === 'object') assert.ok(price.input && price.output, `${id} ${tier}`);
          for (const tokens of [undefined, ...(own.above ?? []).map((step) => step.tokens)]) {
            const step = (list: Prices) => list.above?.find((each) => each.tokens === tokens);
            const [usual, tiered] = [tokenPrices(own, step(own)), tokenPrices(at, step(at))];
            for (const kind of Object.keys(usual) as (keyof typeof usual)[]) {
              const [standard, found] = [usual[kind], tiered[kind]];
              assert.ok(found > 0 || standard === 0, `${id} ${tier} ${kind}`);
              const isSane = tier === 'flex' ? found <= standard : found >= standard;
              assert.ok(isSane, `${vendor} ${id} ${tier} ${kind} ${tokens}: ${found}, ${standard}`);
            }
          }
        }
      }
    }
    for (const [name, least] of Object.entries({
      ...{ 'openai flex': 25, 'openai priority': 30, 'openai ultrafast': 2, 'gemini flex': 15, 'gemini priority': 15 },
      ...{ 'bedrock flex': 30, 'bedrock priority': 30, 'groq flex': 5, 'fireworks priority': 10 },
    })) {
      assert.ok((counts[name] ?? 0) >= least, `${name}: ${counts[name]}`);
    }
  });

  it('the generated catalogue has the published prices of service tiers', () => {
    const at = (id: string, tier: string) => {
      const { input, cachedInput, output } = pricesAt(file.models.find((each) => each.id === id)?.prices, tier) ?? {};
      return [input, cachedInput, output].map((price) => price && price / 1_000_000);
    };
    // https://openai.com/api-priority-processing
    assert.deepEqual(at('gpt-5.4', 'priority'), [5, 0.5, 30]);
    assert.deepEqual(at('gpt-5.2', 'priority'), [3.5, 0.35, 28]);
    assert.deepEqual(at('gpt-5-mini', 'priority'), [0.45, 0.045, 3.6]);
    assert.deepEqual(at('gpt-4.1', 'priority'), [3.5, 0.875, 14]);
    // https://ai.google.dev/gemini-api/docs/pricing
    assert.deepEqual(at('gemini-2.5-flash', 'flex'), [0.15, 0.03, 1.25]);
    assert.deepEqual(at('gemini-2.5-flash', 'priority'), [0.54, 0.054, 4.5]);
    // https://console.groq.com/docs/flex-processing: as on demand.
    const groq = file.models.find(({ routes }) => routes[0]?.vendor === 'groq' && routes.length === 1);
    assert.deepEqual([groq?.prices?.tiers, at('gpt-5-nano', 'priority')], [{ flex: 1 }, Array(3).fill(undefined)]);
    // https://aws.amazon.com/bedrock/pricing
    assert.deepEqual(at('bedrock/openai.gpt-oss-120b-1:0', 'priority'), [0.2625, undefined, 1.05]);
  });

  it('the generated catalogue has one row for an open model of several vendors, and no vendor twice in a row', () => {
    const open = file.models.find(({ id }) => id === 'openai/gpt-oss-120b');
    assert.ok((open?.routes.length ?? 0) >= 3);
    for (const { id, routes } of file.models) {
      const vendors = routes.map(({ vendor }) => vendor);
      assert.equal(new Set(vendors).size, vendors.length, id);
    }
  });

  it('the generated catalogue routes chats and embeddings only to vendors that offer them', () => {
    const offered = { chat: 'chat', embedding: 'embed' } as const;
    for (const { id, capability, routes } of file.models) {
      if (capability !== 'chat' && capability !== 'embedding') continue;
      for (const { vendor } of routes) {
        const row = findVendorRow(vendor);
        assert.ok(row, `${id}: ${vendor}`);
        if (row.dialect === 'openai') assert.ok(row.offers?.includes(offered[capability]), `${id}: ${vendor}`);
      }
    }
  });

  it('the generated catalogue marks the models as retired that were shut down before it was made, and no others', () => {
    const made = Date.parse(file.generated_at);
    for (const { id, deprecatedAt = Number.POSITIVE_INFINITY, retired } of file.models) {
      assert.equal(retired === true, deprecatedAt * 1000 <= made, id);
    }
    const retired = (day: string) =>
      buildCatalogue(new Date(day)).models.flatMap((model) => (model.retired === true ? [model.id] : []));
    assert.deepEqual(retired('2026-05-11').sort(), []);
    assert.deepEqual(retired('2026-10-23').sort(), ['dall-e-2', 'dall-e-3', 'gpt-image-1']);
    assert.ok(retired('2026-12-01').includes('chatgpt-image-latest'));
  });

  it('every shutdown is one of a model of the catalogue, and recommends one that outlives it', () => {
    const rows = new Map(file.models.map((model) => [model.id, model]));
    for (const [id, { day, replacement }] of Object.entries(shutdowns)) {
      assert.ok(rows.has(id), id);
      if (replacement === undefined) continue;
      assert.equal(rows.get(replacement)?.capability, rows.get(id)?.capability, id);
      assert.ok(day < (shutdowns[replacement]?.day ?? '9'), id);
    }
  });

  it('the catalogue neither lists, finds nor suggests retired models, and returns them as such', () => {
    const catalogue = createCatalogue({ vendors: everyVendor });
    assert.equal(catalogue.find('dall-e-3', 'image'), undefined);
    assert.deepEqual(catalogue.routes('dall-e-3', 'image'), []);
    assert.ok(!catalogue.nearest('dall-e-4').includes('dall-e-3'));
    const shown = [...catalogue.list(), ...catalogue.sources().models];
    assert.ok(shown.every(({ id, retired }) => retired !== true && id !== 'dall-e-3'));
    assert.equal(catalogue.retired('dall-e-3')?.replacement, 'gpt-image-2');
    assert.equal(catalogue.retired('gpt-4o'), undefined);
  });

  it('a model that its own vendor has shut down stays at others, with the limits and prices there', () => {
    const id = 'claude-sonnet-4-5-20250929';
    const [row] = file.models.filter((model) => model.id === id);
    const [own, elsewhere] = row?.routes ?? [];
    assert.deepEqual([row?.retired, own?.vendor, elsewhere?.vendor], [true, 'anthropic', 'bedrock']);
    const prices = { input: 1, output: 2 };
    const changed = { ...row, routes: [own, { ...elsewhere, contextWindow: 7, prices }] } as Model;
    for (const on of [['bedrock'], ['anthropic', 'bedrock']]) {
      const catalogue = createCatalogue({ vendors: vendorsOn(...on), models: [changed] });
      const { retired, deprecatedAt, replacement, routes, ...found } = catalogue.find(id) ?? assert.fail();
      assert.deepEqual([retired, deprecatedAt, replacement], [undefined, undefined, undefined]);
      assert.deepEqual(
        routes.map(({ vendor }) => vendor),
        ['bedrock'],
      );
      assert.deepEqual(
        [found.contextWindow, found.maxOutputTokens, found.prices],
        [7, elsewhere?.maxOutputTokens, prices],
      );
      assert.deepEqual(
        catalogue.routes(id, 'chat').map(({ route }) => route.vendor),
        ['bedrock'],
      );
    }
    const withoutBedrock = createCatalogue({ vendors: vendorsOn('anthropic') });
    assert.equal(withoutBedrock.find(id), undefined);
    assert.equal(withoutBedrock.retired(id)?.replacement, 'claude-sonnet-5-5');
  });

  it('the generated catalogue equals what the pinned sources make, byte for byte', () => {
    assert.deepEqual(file.sources, {
      ...Object.fromEntries(Object.entries(sources).map(([name, { version }]) => [name, version])),
      [readModelsDev().repository]: readModelsDev().commit,
      [readTierPrices().source]: readTierPrices().version,
    });
    const made = new Date(file.generated_at);
    assert.equal(catalogueText(buildCatalogue(made)), text, 'run `npm run catalogue`');
    assert.equal(catalogueText(buildCatalogue(made)), catalogueText(buildCatalogue(made)));
  });
});
