import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createCatalogue } from '../../../../shared/catalogue/catalogue.ts';
import { type Model, modelsWithFreeSandbox as table } from '../../../../shared/catalogue/models.ts';
import { readConfig } from '../../../../shared/config/config.ts';
import { routingDefaults } from '../../../../shared/config/routing-settings.ts';
import { findVendorRow } from '../../../../shared/vendors/vendors.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-test-configuration-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, 'sluice.yaml');

/** The settings with this file, and this environment. */
function settings(text: string, environment: Record<string, string> = {}) {
  writeFileSync(file, text);
  return readConfig({ SLUICE_CONFIG: file, ...environment });
}

/** A model of the settings with this file. */
function model(id: string, text: string): Model | undefined {
  return settings(text).models.find((each) => each.id === id);
}

/** What is wrong with a text, a line each, without the file's name. */
function mistakes(text: string): string[] {
  try {
    settings(text);
  } catch (error) {
    return (error as Error).message.split('\n').map((line) => line.replace(`${file}:`, ''));
  }
  assert.fail('there is no mistake');
}

/** A model's prices at its standard tier. */
function withoutTiers({ prices = {} }: Model): NonNullable<Model['prices']> {
  const { tiers: _tiers, ...own } = prices;
  return own;
}

function known(id: string): Model {
  const found = table.find((each) => each.id === id);
  assert.ok(found, id);
  return found;
}

const many = table.find(({ capability, routes }) => capability === 'chat' && routes.length > 1) as Model;

describe('vendors of the configuration file', () => {
  it('the configuration file turns vendors of the table on and off, and changes those that are on', () => {
    const text = `vendors:
  openai: { api_keys: [a, b], open: true }
  groq: { base_url: http://127.0.0.1:1/v1 }
  ollama: {}
  mistral: { enabled: false }
`;
    const { vendors, sandbox } = settings(text, { GROQ_API_KEY: 'g', MISTRAL_API_KEY: 'm' });
    assert.deepEqual(vendors, {
      openai: { row: findVendorRow('openai'), baseUrl: 'https://api.openai.com/v1', apiKeys: ['a', 'b'], isOpen: true },
      groq: { row: findVendorRow('groq'), baseUrl: 'http://127.0.0.1:1/v1', apiKeys: ['g'], isOpen: false },
      ollama: { row: findVendorRow('ollama'), baseUrl: 'http://127.0.0.1:11434/v1', apiKeys: ['none'], isOpen: true },
    });
    assert.equal(sandbox, false);
  });

  it('a vendor that the file adds uses the wire of another row, and needs a key when that row does', () => {
    const { vendors } = settings(`vendors:
  plain: { base_url: https://plain.example/v1/ }
  fast: { like: groq, base_url: https://fast.example, api_key: "k1, k2" }
  local: { like: vllm, base_url: http://127.0.0.1:2, open: false }
`);
    assert.deepEqual(vendors, {
      plain: { row: findVendorRow('openai'), baseUrl: 'https://plain.example/v1', apiKeys: ['none'], isOpen: false },
      fast: { row: findVendorRow('groq'), baseUrl: 'https://fast.example', apiKeys: ['k1', 'k2'], isOpen: false },
      local: { row: findVendorRow('vllm'), baseUrl: 'http://127.0.0.1:2', apiKeys: ['none'], isOpen: false },
    });
  });

  it('a vendor with a key in the file keeps the base URL of the environment', () => {
    const { vendors } = settings('vendors: { openai: { api_key: k } }\n', {
      OPENAI_BASE_URL: 'http://proxy.example/v1/',
    });
    assert.equal(vendors.openai?.baseUrl, 'http://proxy.example/v1');
  });

  it('a vendor with a key in the environment uses the base URL of the file', () => {
    const azure = 'vendors: { azure: { base_url: https://mine.example } }\n';
    const { vendors } = settings(azure, { AZURE_API_KEY: 'k' });
    const row = findVendorRow('azure');
    assert.deepEqual(vendors, { azure: { row, baseUrl: 'https://mine.example', apiKeys: ['k'], isOpen: true } });
    const openai = 'vendors: { openai: { base_url: https://mine.example/v1 } }\n';
    const both = settings(openai, { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'https://other.example' });
    assert.equal(both.vendors.openai?.baseUrl, 'https://mine.example/v1');
  });

  it('the file limits a vendor, each of its keys, and its models', () => {
    const text = `vendors:
  groq: { api_key: a, rpm: 10, max_parallel_requests: 2, key_limits: { tpm: 1000 }, model_limits: { llama-3.3-70b-versatile: { rpm: 5 } } }
  openai: { api_key: a }
  mistral: { api_key: a, model_limits: { m: { rpm: 0 } } }
`;
    assert.deepEqual(mistakes(text), [
      '4:52: vendors.mistral.model_limits.m.rpm: expected a whole number from 1 to 1000000000, got another number',
    ]);
    const { vendors } = settings(text.split('\n').slice(0, 3).join('\n'));
    assert.deepEqual(vendors.groq?.limits, {
      vendor: { rpm: 10, tpm: undefined, maxParallelRequests: 2 },
      key: { tpm: 1000 },
      models: { 'llama-3.3-70b-versatile': { rpm: 5 } },
    });
    assert.equal(vendors.openai?.limits, undefined);
  });

  it('the limit of a model that no route of its vendor names is a mistake, unless the vendor is open or off', () => {
    const text = `vendors:
  openai: { api_key: a, model_limits: { gpt-4o-minni: { rpm: 5 }, gpt-4o-mini: { rpm: 5 } } }
  mine: { base_url: http://mine/v1, model_limits: { own: { rpm: 5 }, fast: { rpm: 5 } } }
  groq: { api_key: a, open: true, model_limits: { any: { rpm: 5 } } }
  mistral: { enabled: false, model_limits: { any: { rpm: 5 } } }
models:
  fast: { capability: chat, routes: [{ vendor: mine, model: own }] }
`;
    const message =
      "expected the vendor's name of a model, as a route has it; those of a vendor with open: true may be any";
    assert.deepEqual(mistakes(text), [
      `2:41: vendors.openai.model_limits.gpt-4o-minni: ${message}`,
      `3:70: vendors.mine.model_limits.fast: ${message}`,
    ]);
  });

  it("the file's vendors decide whether SLUICE_SANDBOX=auto turns the sandbox on", () => {
    const runs = { SANDBOX_BASE_URL: 'http://127.0.0.1:8090/v1' };
    const isOn = (text: string, environment: Record<string, string> = {}) =>
      'sandbox' in settings(text, { ...runs, ...environment }).vendors;
    assert.equal(isOn(''), true);
    assert.equal(isOn('vendors: { openai: { api_key: k } }'), false);
    assert.equal(isOn('vendors: { openai: { enabled: false } }'), true);
    assert.equal(isOn('vendors: { openai: { api_key: k } }', { SLUICE_SANDBOX: 'on' }), true);
    assert.equal(isOn('vendors: { sandbox: { enabled: false } }', { SLUICE_SANDBOX: 'on' }), false);
    assert.equal(isOn('vendors: { sandbox: { open: true } }', { SLUICE_SANDBOX: 'off' }), false);
  });

  it('the file may open the sandbox without a base URL, which its launcher knows', () => {
    const text = 'vendors: { sandbox: { open: true } }';
    const unknown = settings(text);
    assert.deepEqual([unknown.sandbox, unknown.vendors], [true, {}]);
    const { vendors } = settings(text, { SANDBOX_BASE_URL: 'http://127.0.0.1:8090/v1' });
    assert.equal(vendors.sandbox?.isOpen, true);
  });

  it('incomplete vendors in the file are reported with their lines', () => {
    const text = `vendors:
  openai: { open: true }
  mine: { api_key: a }
  other: { like: groq, base_url: http://a }
  both: { base_url: http://a, api_key: a, api_keys: [b] }
  xai: { api_key: "," }
  azure: { api_key: a }
`;
    assert.deepEqual(mistakes(text), [
      '2:3: vendors.openai: expected api_key or api_keys, or OPENAI_API_KEY in the environment',
      '3:3: vendors.mine.base_url: expected a URL, but it is missing',
      '4:3: vendors.other: expected api_key or api_keys',
      '5:43: vendors.both.api_keys: expected either api_key or api_keys',
      '6:3: vendors.xai: expected api_key or api_keys, or XAI_API_KEY in the environment',
      '7:3: vendors.azure.base_url: expected a URL such as https://NAME.openai.azure.com, but it is missing',
    ]);
  });
});

describe('models of the configuration file', () => {
  it('an empty configuration file leaves the model table unchanged', () => {
    assert.deepEqual(settings('').models, table);
    assert.deepEqual(settings('models: { gpt-4o: {} }').models, table);
  });

  it('sandbox models are free unless SLUICE_SANDBOX is priced', () => {
    const prices = (environment: Record<string, string>) =>
      settings('', environment).models.find(({ id }) => id === 'sandbox-chat')?.prices;
    assert.deepEqual(prices({}), { input: 0, cachedInput: 0, output: 0 });
    assert.deepEqual(prices({ SLUICE_SANDBOX: 'on' }), { input: 0, cachedInput: 0, output: 0 });
    assert.deepEqual(prices({ SLUICE_SANDBOX: 'priced' }), { input: 10_000, cachedInput: 2500, output: 40_000 });
  });

  it('the file changes a model field by field and price by price, and keeps its position', () => {
    const before = known('gpt-4o');
    const { models } = settings(`models:
  gpt-4o: { prices: { input: 3 }, max_output_tokens: 1000, owned_by: us, deprecated_at: 2027-01-01, chat: { hints: true } }
`);
    const place = table.indexOf(before);
    assert.deepEqual(models[place], {
      ...before,
      ownedBy: 'us',
      maxOutputTokens: 1000,
      deprecatedAt: Date.parse('2027-01-01T00:00:00Z') / 1000,
      prices: { ...withoutTiers(before), input: 3_000_000 },
      chat: { ...before.chat, hints: true },
    });
    assert.deepEqual(models.toSpliced(place, 1), table.toSpliced(place, 1));
  });

  it('the file brings a retired model back by describing it, and an alias of one is retired as well', () => {
    assert.equal(model('dall-e-3', 'models: { art: { alias_of: dall-e-3 } }')?.retired, true);
    assert.equal(model('art', 'models: { art: { alias_of: dall-e-3 } }')?.retired, true);
    const own = model('dall-e-3', 'models: { dall-e-3: { routes: [{ vendor: azure, model: art }] } }');
    assert.deepEqual([own?.retired, own?.deprecatedAt, own?.replacement], [undefined, undefined, undefined]);
    const changed = model('dall-e-3', 'models: { dall-e-3: { owned_by: us } }');
    assert.deepEqual([changed?.retired, changed?.replacement], [undefined, 'gpt-image-2']);
  });

  it('the file sets prices of service tiers, and those of the catalogue do not outlive a change of the others', () => {
    const prices = (text: string, id = 'gpt-5') => model(id, `models: { ${id}: ${text} }`)?.prices;
    const { tiers, ...own } = known('gpt-5').prices ?? {};
    assert.deepEqual(tiers, { flex: 0.5, priority: 2 });
    assert.deepEqual(prices('{ max_output_tokens: 5 }'), known('gpt-5').prices);
    assert.deepEqual(prices('{ prices: { output: 3 } }'), { ...own, output: 3_000_000 });
    assert.deepEqual(prices('{ prices: { tiers: { priority: 3 } } }'), { ...own, tiers: { priority: 3 } });
    assert.deepEqual(prices('{ prices: { tiers: {} } }'), { ...own, tiers: {} });
    const listed = '{ prices: { tiers: { my-tier: { input: 1, cached_input: 0.5, output: 2, above: [] } } } }';
    const mine = { input: 1_000_000, cachedInput: 500_000, output: 2_000_000 };
    assert.deepEqual(prices(listed), { ...own, tiers: { 'my-tier': mine } });
    const routed = model(
      'new',
      `vendors: { mine: { base_url: http://a } }
models:
  new:
    capability: chat
    prices: { input: 1, output: 2, tiers: { flex: 0.5 } }
    routes: [{ vendor: mine, model: a }, { vendor: mine, model: b, prices: { input: 3 } }]
`,
    );
    assert.deepEqual(
      routed?.routes.map((route) => route.prices),
      [
        { input: 1_000_000, output: 2_000_000, tiers: { flex: 0.5 } },
        { input: 3_000_000, output: 2_000_000 },
      ],
    );
  });

  it('a new price in the file applies to every route of the model', () => {
    const changed = model(many.id, `models: { "${many.id}": { prices: { output: 7 }, context_window: 5 } }`);
    assert.ok(changed);
    const { vendors } = settings(
      many.routes
        .map(({ vendor }) => `  ${vendor}: { api_key: k }`)
        .join('\n')
        .replace(/^/, 'vendors:\n'),
    );
    const routed = createCatalogue({ vendors, models: [changed] }).routes(many.id, 'chat');
    assert.equal(routed.length, many.routes.length);
    for (const [place, { prices, contextWindow }] of routed.entries()) {
      assert.deepEqual([prices?.output, contextWindow], [7_000_000, 5]);
      assert.equal(prices?.input, (place === 0 ? many : many.routes[place])?.prices?.input);
    }
  });

  it('empty price steps in the file remove those of the model', () => {
    const stepped = table.find(({ prices }) => prices?.above) as Model;
    const changed = model(stepped.id, `models: { "${stepped.id}": { prices: { above: [] } } }`);
    const { above: _, ...prices } = withoutTiers(stepped);
    assert.deepEqual(changed?.prices, prices);
  });

  it('new models of the file come last, with the default traits of their capability', () => {
    const { models } = settings(`vendors: { mine: { base_url: http://a } }
models:
  new-chat: { capability: chat, created: 500000000, routes: [{ vendor: mine, model: c }] }
  new-embedding: { capability: embedding, owned_by: maker, embedding: { batch: 8 }, routes: [{ vendor: mine, model: e }] }
  new-image: { capability: image, routes: [{ vendor: mine, model: i }] }
  new-video: { capability: video, video: { sizes: [1x1], seconds: [4] }, routes: [{ vendor: mine, model: v }] }
`);
    assert.deepEqual(models.slice(table.length), [
      {
        ...{ id: 'new-chat', created: 500_000_000, ownedBy: 'mine', capability: 'chat' },
        routes: [{ vendor: 'mine', model: 'c', order: 0 }],
      },
      {
        ...{ id: 'new-embedding', created: 0, ownedBy: 'maker', capability: 'embedding' },
        ...{ embedding: { dimensions: true, batch: 8 }, routes: [{ vendor: 'mine', model: 'e', order: 0 }] },
      },
      {
        ...{ id: 'new-image', created: 0, ownedBy: 'mine', capability: 'image' },
        image: { tasks: ['generation', 'edit', 'variation'], most: 10, partial: true, responseFormat: true },
        routes: [{ vendor: 'mine', model: 'i', order: 0 }],
      },
      {
        ...{ id: 'new-video', created: 0, ownedBy: 'mine', capability: 'video' },
        video: { input: false, remix: false, sizes: ['1x1'], seconds: ['4'] },
        routes: [{ vendor: 'mine', model: 'v', order: 0 }],
      },
    ]);
  });

  it('routes of the file replace those of the model, ordered, with its facts unless they have their own', () => {
    const changed = model(
      'gpt-4o-mini',
      `models:
  gpt-4o-mini:
    context_window: 100
    prices: { input: 1, output: 2 }
    routes:
      - { vendor: groq, model: late, order: 2, prices: { output: 9 } }
      - { vendor: openai, model: heavy, weight: 3, region: eu, first_byte_seconds: 2, idle_seconds: 0.5, context_window: 50 }
      - { vendor: xai, model: light }
`,
    );
    const { cachedInput, maxOutputTokens } = { ...known('gpt-4o-mini'), ...known('gpt-4o-mini').prices };
    const prices = { input: 1_000_000, cachedInput, output: 2_000_000 };
    assert.deepEqual(changed, {
      ...known('gpt-4o-mini'),
      contextWindow: 50,
      prices,
      routes: [
        {
          ...{ vendor: 'openai', model: 'heavy', contextWindow: 50, maxOutputTokens, prices },
          ...{ weight: 3, region: 'eu', order: 0, firstByteMs: 2000, idleMs: 500 },
        },
        { vendor: 'xai', model: 'light', contextWindow: 100, maxOutputTokens, prices, order: 0 },
        {
          ...{ vendor: 'groq', model: 'late', contextWindow: 100, maxOutputTokens },
          ...{ prices: { ...prices, output: 9_000_000 }, order: 2 },
        },
      ],
    });
  });

  it('the file hides, renames and aliases models', () => {
    const { models } = settings(`models:
  gpt-4o: { hide: true }
  gpt-4o-mini: { rename: small, prices: { input: 1 } }
  o3: { rename: gpt-4o }
  fast: { alias_of: small }
  gpt-5: { alias_of: gpt-4o }
`);
    const ids = models.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(models.length, table.length);
    assert.ok(!ids.includes('gpt-4o-mini') && !ids.includes('o3'));
    const byId = new Map(models.map((each) => [each.id, each]));
    const small = { ...known('gpt-4o-mini'), prices: { ...withoutTiers(known('gpt-4o-mini')), input: 1_000_000 } };
    assert.deepEqual(byId.get('small'), { ...small, id: 'small' });
    assert.deepEqual(byId.get('fast'), { ...small, id: 'fast', aliasOf: 'small' });
    assert.deepEqual(byId.get('gpt-4o'), { ...known('o3'), id: 'gpt-4o' });
    assert.deepEqual(byId.get('gpt-5'), { ...known('o3'), id: 'gpt-5', aliasOf: 'gpt-4o' });
  });

  it('a hidden model may be known by an alias only', () => {
    const { models } = settings('models:\n  gpt-4o: { hide: true }\n  flagship: { alias_of: gpt-4o }\n');
    assert.equal(
      models.some(({ id }) => id === 'gpt-4o'),
      false,
    );
    assert.deepEqual(models.at(-1), { ...known('gpt-4o'), id: 'flagship', aliasOf: 'gpt-4o' });
  });

  it('the file sets and clears the fallbacks of a model, by the names in the file', () => {
    const text = 'models:\n  gpt-4o: { fallbacks: [small, o3] }\n  gpt-4o-mini: { rename: small, fallbacks: [] }\n';
    assert.deepEqual(model('gpt-4o', text)?.fallbacks, ['small', 'o3']);
    assert.equal('fallbacks' in (model('small', text) ?? {}), false);
  });

  it('unknown and incomplete models in the file are reported with their lines', () => {
    const text = `vendors: { off: { enabled: false } }
models:
  nobody: { hide: true }
  nobody-either: { rename: somebody }
  gpt-4o: { hide: true, prices: { input: 1 } }
  o3: { capability: image, image: { most: 1 } }
  new-one: { prices: { input: 1 } }
  new-video: { capability: video, routes: [{ vendor: off, model: a }] }
  bad-routes:
    capability: chat
    routes:
      - { vendor: groq, model: a }
      - { vendor: gork, model: a }
      - { vendor: groq, model: a }
`;
    assert.deepEqual(mistakes(text), [
      '3:3: models.nobody: expected the id of a model of the catalogue',
      '4:3: models.nobody-either: expected the id of a model of the catalogue',
      '5:19: models.gpt-4o.hide: nothing else may be said of this model then',
      '6:21: models.o3.capability: expected chat, as the catalogue has it, got "image"',
      '6:28: models.o3.image: only models of the capability image have this',
      '7:3: models.new-one.capability: expected one of chat, embedding, image, transcription, speech, video, but it is missing',
      '7:3: models.new-one.routes: expected a list of routes, but it is missing',
      '8:3: models.new-video.video: expected a mapping with sizes and seconds',
      '13:19: models.bad-routes.routes[1].vendor: expected a vendor of the table or of this file, got "gork"',
      '14:9: models.bad-routes.routes[2]: this vendor and model stand in a route before',
    ]);
  });

  it('prices by none of which a model is counted are a mistake, of a model and of a route, unless they are 0', () => {
    const text = `vendors:
  mine: { like: openai, base_url: "http://127.0.0.1:9/v1" }
models:
  mouth: { capability: speech, prices: { second: 0.001 }, routes: [{ vendor: mine, model: a }] }
  camera:
    capability: video
    video: { sizes: [1280x720], seconds: [4] }
    routes:
      - { vendor: mine, model: late, order: 2, prices: { image: 0.5 } }
      - { vendor: mine, model: early, order: 1, prices: { second: 0.1 } }
  painter: { capability: image, prices: { character: 0.001, tiers: { flex: 2 } }, routes: [{ vendor: mine, model: a }] }
  free: { capability: speech, prices: { second: 0 }, routes: [{ vendor: mine, model: a }] }
  each: { capability: transcription, prices: { request: 0.1 }, routes: [{ vendor: mine, model: a }] }
  tts-1: { prices: { second: 0.001 } }
  eleven_v3: { prices: { second: 0.001 } }
  scribe_v2: { prices: { second: 0.001 } }
  vectors: { capability: embedding, prices: { output: 0.02 }, routes: [{ vendor: mine, model: a }] }
  long: { capability: chat, prices: { above: [{ tokens: 1000, input: 2, output: 8 }] }, routes: [{ vendor: mine, model: a }] }
  of-no-kind: { capability: image, prices: { image_kinds: {} }, routes: [{ vendor: mine, model: a }] }
  of-one-kind: { capability: image, prices: { image: 0.02, image_kinds: {} }, routes: [{ vendor: mine, model: a }] }
`;
    const whole = (capability: string) =>
      `expected a price by which models of the capability ${capability} are counted`;
    assert.deepEqual(mistakes(text), [
      `4:32: models.mouth.prices: ${whole('speech')}, got a mapping`,
      `9:48: models.camera.routes[0].prices: ${whole('video')}, got a mapping`,
      `11:33: models.painter.prices: ${whole('image')}, got a mapping`,
      // The catalogue, which has prices of the one before, has none of these.
      `15:16: models.eleven_v3.prices: ${whole('speech')}, got a mapping`,
      `17:37: models.vectors.prices: ${whole('embedding')}, got a mapping`,
      // Steps alone are no prices: what they leave out stays as below them.
      `18:29: models.long.prices: ${whole('chat')}, got a mapping`,
      `19:36: models.of-no-kind.prices: ${whole('image')}, got a mapping`,
    ]);
  });

  it('colliding names and invalid aliases and fallbacks in the file are reported with their lines', () => {
    const text = `models:
  gpt-4o: { rename: o3 }
  gpt-4.1: { rename: same }
  gpt-4.1-mini: { rename: same }
  a: { alias_of: b }
  b: { alias_of: o3 }
  c: { alias_of: nothing }
  gpt-5: { hide: true }
  gpt-4o-mini: { fallbacks: [gpt-5, gpt-4o-mini, sandbox-image, nothing, sandbox-chat] }
`;
    assert.deepEqual(mistakes(text), [
      '2:21: models.gpt-4o.rename: expected an id that no other model has, got "o3"',
      '4:27: models.gpt-4.1-mini.rename: expected an id that no other model has, got "same"',
      '5:18: models.a.alias_of: expected the id of a model, not of an alias, got "b"',
      '7:18: models.c.alias_of: expected the id of a model, not of an alias, got "nothing"',
      '9:30: models.gpt-4o-mini.fallbacks[0]: expected the id of a model that is not hidden, got "gpt-5"',
      '9:37: models.gpt-4o-mini.fallbacks[1]: expected another model than this one, got "gpt-4o-mini"',
      '9:50: models.gpt-4o-mini.fallbacks[2]: expected a model of the capability chat, got "sandbox-image"',
      '9:65: models.gpt-4o-mini.fallbacks[3]: expected the id of a model that is not hidden, got "nothing"',
    ]);
  });

  it('a fallback that its vendor has shut down is reported, unless another vendor or the file offers it', () => {
    const entry = (id: string, capability: string) =>
      `  mine: { fallbacks: [${id}], capability: ${capability}, routes: [{ vendor: openai, model: own }] }`;
    assert.deepEqual(mistakes(`models:\n${entry('dall-e-3', 'image')}`), [
      '2:23: models.mine.fallbacks[0]: expected a model that its vendor has not shut down, such as gpt-image-2, got "dall-e-3"',
    ]);
    const offered = 'claude-sonnet-4-5-20250929';
    assert.deepEqual(model('mine', `models:\n${entry(offered, 'chat')}`)?.fallbacks, [offered]);
    const brought = '  dall-e-3: { routes: [{ vendor: azure, model: dall-e-3 }] }';
    assert.deepEqual(model('mine', `models:\n${brought}\n${entry('dall-e-3', 'image')}`)?.fallbacks, ['dall-e-3']);
  });
});

describe('routing and limits of the configuration file', () => {
  it('routing has its defaults when the file says nothing', () => {
    assert.deepEqual(settings('').routing, routingDefaults);
  });

  it('the file changes only the routing settings that it names', () => {
    const text = `routing:
  attempts: 2
  retry_budget_percent: 20
  longest_retry_after_seconds: 1.5
  breaker: { threshold_percent: 25, calls: 10, pause_seconds: 3 }
`;
    assert.deepEqual(settings(text).routing, {
      ...{ attempts: 2, retryBudget: 0.2, maxRetryAfterMs: 1500 },
      ...{ breakerThreshold: 0.25, breakerCalls: 10, breakerPauseMs: 3000 },
    });
  });

  it('limits of the file yield to the environment', () => {
    const text = `limits:
  queue_limit: 10
  queue_wait_seconds: 11
  key_concurrency: 12
  deadline_seconds: 13
  background_deadline_seconds: 14
  vendor_silence_seconds: 15
`;
    const of = (environment: Record<string, string>) => {
      const { queueLimit, queueWaitMs, keyConcurrency, deadlineMs, ...rest } = settings(text, environment);
      return [queueLimit, queueWaitMs, keyConcurrency, deadlineMs, rest.backgroundDeadlineMs, rest.vendorSilenceMs];
    };
    assert.deepEqual(of({}), [10, 11_000, 12, 13_000, 14_000, 15_000]);
    assert.deepEqual(
      of({ SLUICE_QUEUE_LIMIT: '7', SLUICE_DEADLINE_SECONDS: '' }),
      [7, 11_000, 12, 13_000, 14_000, 15_000],
    );
  });
});
