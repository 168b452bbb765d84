import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ConfigError } from '../../../../shared/config/config-error.ts';
import { readConfiguration } from '../../../../shared/config/file/read-configuration.ts';
import { costOf, type Prices } from '../../../../shared/money/cost.ts';

describe('the configuration file', () => {
  let folder = '';
  let file = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-configuration-'));
    file = join(folder, 'sluice.yaml');
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function read(text: string, environment: Record<string, string> = {}) {
    await writeFile(file, text);
    return readConfiguration(file, environment).file;
  }

  /** What is wrong with a text, without the file's name before each line. */
  async function mistakes(text: string, environment: Record<string, string> = {}): Promise<string[]> {
    let message = '';
    await assert.rejects(read(text, environment), (error) => {
      assert.ok(error instanceof ConfigError);
      ({ message } = error);
      return true;
    });
    return message.split('\n').map((line) => {
      assert.ok(line.startsWith(`${file}:`), line);
      return line.slice(file.length + 1);
    });
  }

  it('the configuration file may be empty, and so may its sections', async () => {
    const nothing = { vendors: {}, models: {}, routing: {}, limits: {} };
    assert.deepEqual(await read(''), nothing);
    assert.deepEqual(await read('# nothing\n'), nothing);
    assert.deepEqual(await read('vendors:\nmodels:\nrouting:\nlimits:\n'), nothing);
  });

  it('the configuration file gives prices in nano-dollars, route times in milliseconds and dates in seconds', async () => {
    const { models } = await read(`models:
  mine:
    created: 2026-11-21
    deprecated_at: 1800000000
    prices: { input: 0.075, cached_input: 0, image: 0.04, second: 0.0001, character: 0.000015, above: [{ tokens: 200000, input: 2.5 }] }
    video: { sizes: [1280x720], seconds: [4, 8] }
    routes: [{ vendor: openai, model: m, first_byte_seconds: 1.5, idle_seconds: 30 }]
`);
    assert.deepEqual(models.mine, {
      created: Date.parse('2026-11-21T00:00:00Z') / 1000,
      deprecatedAt: 1_800_000_000,
      prices: {
        ...{ input: 75_000, cachedInput: 0, image: 40_000_000, second: 100_000, character: 15_000 },
        above: [{ tokens: 200_000, input: 2_500_000 }],
      },
      video: { sizes: ['1280x720'], seconds: ['4', '8'] },
      routes: [{ vendor: 'openai', model: 'm', firstByteSeconds: 1500, idleSeconds: 30_000 }],
    });
  });

  it('the configuration file may price requests by search context, and images by size and quality', async () => {
    const { models } = await read(`models:
  flat: { prices: { request: 0.02 } }
  sized: { prices: { request: { low: 0.005, medium: 0.008, high: 0.012 } } }
  painter: { prices: { image: 0.04, image_kinds: { hd: 0.08, 1792x1024 hd: 0.12 } } }
`);
    const imageKinds = { hd: 80_000_000, '1792x1024 hd': 120_000_000 };
    assert.deepEqual(models.painter, { prices: { image: 40_000_000, imageKinds } });
    assert.deepEqual(models.flat, { prices: { request: 20_000_000 } });
    assert.deepEqual(models.sized, { prices: { request: { low: 5_000_000, medium: 8_000_000, high: 12_000_000 } } });
  });

  it('the configuration file may list the price steps of long requests in any order, and the longest one that is exceeded counts', async () => {
    const steps = '[{ tokens: 200000, input: 5 }, { tokens: 100000, input: 3 }]';
    const { models } = await read(
      `models: { m: { prices: { input: 1, above: ${steps}, tiers: { flex: { input: 1, above: ${steps} } } } } }\n`,
    );
    const { tiers: { flex } = {}, ...prices } = models.m?.prices ?? {};
    for (const listed of [prices, flex as Prices]) {
      const [step, next] = listed.above ?? [];
      assert.deepEqual([step?.tokens, next?.tokens], [100_000, 200_000]);
      const costs = [150_000, 250_000].map((input) => costOf(listed, { prompt_tokens: input, completion_tokens: 0 }));
      assert.deepEqual(costs, [450_000_000, 1_250_000_000]);
    }
  });

  it('the configuration file may use anchors, and ids that look like numbers', async () => {
    const { models } = await read(
      'models:\n  4.1: &same { prices: { input: 1 } }\n  "other/4.1": *same\n  gpt-5: { alias_of: "4.1" }\n',
    );
    assert.deepEqual(Object.keys(models), ['4.1', 'other/4.1', 'gpt-5']);
    assert.deepEqual(models['other/4.1'], { prices: { input: 1_000_000 } });
  });

  it('the configuration file takes vendor addresses and keys from the environment, whole or in part', async () => {
    const text = `vendors:\n  mine:\n    base_url: http://\${PLACE}/v1/\n    api_keys: [ "\${FIRST}", "b-\${SECOND}-\${FIRST}" ]\n`;
    const { vendors } = await read(text, { PLACE: 'host:1', FIRST: 'one', SECOND: 'two' });
    assert.deepEqual(vendors.mine, { baseUrl: 'http://host:1/v1', apiKeys: ['one', 'b-two-one'] });
  });

  const wrong: readonly [what: string, text: string, expected: readonly string[]][] = [
    ['a repeated key', 'models:\n  a: {}\n  a: {}\n', ['3:3: not YAML: this key stands twice']],
    [
      'broken syntax',
      'models: [1,\nlimits: {}\n',
      ['2:1: not YAML: Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ],
    ['two documents', 'models: {}\n---\nlimits: {}\n', ['2:1: not YAML: there may be one document only']],
    ['an unknown tag', 'models: !mine {}\n', ['1:9: not YAML: Unresolved tag']],
    ['a set in the place of a mapping', 'vendors: !!set { openai }\n', ['1:10: not YAML: Unresolved tag']],
    ['a list of pairs in its place', 'models: !!omap [a: {}]\n', ['1:9: not YAML: Unresolved tag']],
    ['a list at the top', '- vendors\n', ['1:1: expected a mapping, got a list']],
    ['a string as a section', 'models: all\n', ['1:9: models: expected a mapping, got "all"']],
    [
      'an unknown section',
      'vendor:\n  openai: {}\n',
      ['1:1: vendor: there is no such key here, only vendors, models, routing, limits'],
    ],
    [
      'an unknown key',
      'routing:\n  attempts: 2\n  breaker:\n    percent: 5\n',
      ['4:5: routing.breaker.percent: there is no such key here, only threshold_percent, calls, pause_seconds'],
    ],
    [
      'a string as a price',
      'models:\n  gpt-5:\n    prices:\n      input: abc\n',
      ['4:14: models.gpt-5.prices.input: expected a number >= 0, got "abc"'],
    ],
    [
      'a negative price',
      'models: { m: { prices: { output: -1 } } }\n',
      ['1:34: models.m.prices.output: expected a number >= 0, got -1'],
    ],
    [
      'a price that is too high',
      'models: { m: { prices: { character: 15 } } }\n',
      ['1:37: models.m.prices.character: expected at most 1 dollars, got 15'],
    ],
    [
      'a price of a request for some sizes only',
      'models: { m: { prices: { request: { low: 1, high: 2 } } } }\n',
      ['1:26: models.m.prices.request: expected dollars, or low, medium and high, got a mapping'],
    ],
    [
      'two price steps of the same length',
      'models: { m: { prices: { above: [{ tokens: 9, input: 1 }, { tokens: 9, input: 2 }] } } }\n',
      ['1:26: models.m.prices.above: expected one step for each number of tokens, got a list'],
    ],
    ...['1792X1024', 'hd 1792x1024'].map((kind): (typeof wrong)[number] => [
      `a price of images that none is asked for by, ${kind}`,
      `models: { m: { prices: { image_kinds: { ${kind}: 1 } } } }\n`,
      [`1:41: models.m.prices.image_kinds.${kind}: expected a size (1792x1024), a quality (hd), or both in this order`],
    ]),
    ...[
      ['models: { "openai/*": { capability: chat, routes: [{ vendor: openai, model: m }] } }', '1:11: models.openai/*'],
      ['vendors: { openai: { model_limits: { "*": { rpm: 1 } } } }', '1:38: vendors.openai.model_limits.*'],
    ].map(([text, at]): (typeof wrong)[number] => [
      `a pattern as the name of a model in ${text}`,
      `${text}\n`,
      [`${at}: expected the id of one model, without a star: a vendor with open: true offers all of its models`],
    ]),
    [
      'a text that begins with a star',
      'vendors:\n  openai: { unbilled: [*all] }\n',
      ['2:24: not YAML: no anchor (&name) of this name stands before, and a text that begins with a star needs quotes'],
    ],
    [
      'a price finer than a nano-dollar',
      'models: { m: { prices: { input: 0.0000005 } } }\n',
      ['1:33: models.m.prices.input: expected a multiple of 0.000001 dollars, got 5e-7'],
    ],
    ...[
      ['0', '1:41', '0'],
      ['-1', '1:41', '-1'],
      ['101', '1:41', '101'],
      ['half', '1:41', '"half"'],
      ['[1]', '1:35', 'a list'],
      ['{ input: -1 }', '1:35', 'a mapping'],
    ].map(([price, at, got], index): (typeof wrong)[number] => [
      `a price of a service tier that is none, ${index}`,
      `models: { m: { prices: { tiers: { flex: ${price} } } } }\n`,
      [`${at}: models.m.prices.tiers.flex: expected a number > 0 and <= 100, or prices of tokens, got ${got}`],
    ]),
    ...['default', 'auto', 'fast', '"a b"'].map((name, index): (typeof wrong)[number] => [
      `a service tier that has no prices of its own, ${index}`,
      `models: { m: { prices: { tiers: { ${name}: 2 } } } }\n`,
      [
        `1:35: models.m.prices.tiers.${name.replaceAll('"', '')}: expected the name of a service tier other than the standard one, such as flex or priority`,
      ],
    ]),
    ['an empty model', 'models:\n  m:\n', ['2:3: models.m: expected a mapping, got nothing']],
    [
      'a route without its vendor',
      'models:\n  m:\n    routes:\n      - model: a\n      - vendor: openai\n        model: 7\n',
      [
        '4:9: models.m.routes[0].vendor: expected the name of a vendor, but it is missing',
        "6:16: models.m.routes[1].model: expected the vendor's name of the model, got 7",
      ],
    ],
    [
      'a list without routes',
      'models:\n  m:\n    routes: []\n',
      ['3:5: models.m.routes: expected a list of routes, got an empty list'],
    ],
    [
      'an unknown capability',
      'models: { m: { capability: chats } }\n',
      ['1:28: models.m.capability: expected one of chat, embedding, image, transcription, speech, video, got "chats"'],
    ],
    ['hide: false', 'models: { m: { hide: false } }\n', ['1:22: models.m.hide: expected true, or nothing, got false']],
    [
      'an impossible date',
      'models: { m: { created: 2026-13-01 } }\n',
      ['1:25: models.m.created: expected a day (2026-11-21) or whole seconds since 1970, got "2026-13-01"'],
    ],
    [
      'a time that is a year',
      'models: { m: { created: 2026 } }\n',
      ['1:25: models.m.created: expected a day (2026-11-21) or whole seconds since 1970, got 2026'],
    ],
    [
      'a time that is a day without hyphens',
      'models: { m: { created: 20261121 } }\n',
      ['1:25: models.m.created: expected a day (2026-11-21) or whole seconds since 1970, got 20261121'],
    ],
    [
      'a time that is in milliseconds',
      'models: { m: { created: 1770000000000 } }\n',
      ['1:25: models.m.created: expected a day (2026-11-21) or whole seconds since 1970, got 1770000000000'],
    ],
    [
      'a limit out of its bounds',
      'limits:\n  queue_limit: 0\n',
      ['2:16: limits.queue_limit: expected a whole number from 1 to 10000000, got 0'],
    ],
    [
      'a fraction instead of a whole number',
      'routing: { attempts: 1.5 }\n',
      ['1:22: routing.attempts: expected a whole number from 1 to 20, got 1.5'],
    ],
    [
      'an invalid vendor name',
      'vendors:\n  My_Own: { base_url: http://a }\n',
      ['2:3: vendors.My_Own: expected a name of lower-case letters, digits and hyphens'],
    ],
    [
      'a variable that is not set',
      `vendors:\n  openai:\n    api_key: \${NO_SUCH_KEY}\n`,
      ['3:14: vendors.openai.api_key: expected the environment variable NO_SUCH_KEY to be set'],
    ],
    [
      'a variable without a name',
      `vendors: { openai: { api_keys: [ok, "\${a-b}"] } }\n`,
      ['1:37: vendors.openai.api_keys[1]: expected the name of an environment variable in the braces'],
    ],
    ...['os.environ/OPENAI_API_KEY', '$OPENAI_API_KEY', 'env:OPENAI_API_KEY'].map((written): (typeof wrong)[number] => [
      `a variable that is written ${written}, as elsewhere`,
      `vendors:\n  openai:\n    api_key: ${written}\n`,
      [`3:14: vendors.openai.api_key: a variable of the environment is written \${OPENAI_API_KEY} here`],
    ]),
    ...['?api-version=preview', '#v1'].map((end): (typeof wrong)[number] => [
      `an address of a vendor that ends in ${end}`,
      `vendors:\n  mine:\n    base_url: http://a/v1${end}\n`,
      [
        '3:15: vendors.mine.base_url: expected an address without a login, and without ? or # behind it, got another text',
      ],
    ]),
    ...[
      ['api_key: 4815162342481516', '1:31: vendors.openai.api_key: expected a text'],
      ['api_key: 0x4815162342', '1:31: vendors.openai.api_key: expected a text'],
      ['api_keys: [4815162342481516]', '1:33: vendors.openai.api_keys[0]: expected a text'],
      ['api_keys: 4815162342481516', '1:32: vendors.openai.api_keys: expected a list of texts'],
    ].map(([field, expected]): (typeof wrong)[number] => [
      `a key without quotes in ${field}`,
      `vendors: { openai: { ${field} } }\n`,
      [`${expected}, got a number: a key of digits needs quotes`],
    ]),
    [
      'a limit of a vendor out of its bounds',
      'vendors: { openai: { rpm: 0 } }\n',
      ['1:27: vendors.openai.rpm: expected a whole number from 1 to 1000000000, got another number'],
    ],
    [
      'a key of a vendor that is true',
      'vendors: { openai: { api_key: true } }\n',
      ['1:31: vendors.openai.api_key: expected a text, got true or false'],
    ],
    [
      'a variable where none is read',
      `vendors:\n  mine:\n    base_url: http://a\n    rpm: \${RPM}\nmodels:\n  m:\n    capability: chat\n    routes: [{ vendor: mine, model: "\${MODEL}" }]\n`,
      [
        '4:10: vendors.mine.rpm: variables of the environment are read in base_url, api_key, api_keys of vendors only',
        '8:37: models.m.routes[0].model: variables of the environment are read in base_url, api_key, api_keys of vendors only',
      ],
    ],
  ];
  for (const [what, text, expected] of wrong) {
    it(`readConfiguration reports file, line and expected shape of ${what}`, async () =>
      assert.deepEqual(await mistakes(text), expected));
  }

  it('readConfiguration reports several mistakes in order, ten at most', async () => {
    const ids = [...'abcdefghijklm'];
    const lines = await mistakes(`limits: 1\nmodels:\n${ids.map((id) => `  ${id}: { hide: no }\n`).join('')}`);
    assert.deepEqual(lines, [
      '1:9: limits: expected a mapping, got 1',
      ...ids.slice(0, 9).map((id, index) => `${index + 3}:14: models.${id}.hide: expected true, or nothing, got "no"`),
      ' and 4 more',
    ]);
  });

  const leaks = (secret: string): readonly [what: string, text: string][] => [
    ['in a list', `vendors: { openai: { api_keys: [[${secret}]] } }\n`],
    ['in the position of a limit', `vendors: { openai: { rpm: ${secret} } }\n`],
    ['in the position of a switch', `vendors: { openai: { enabled: ${secret} } }\n`],
    ['without a space before it', `vendors: { openai: { api_key:${secret} } }\n`],
    ['without a space after its vendor', `vendors: { openai:${secret} }\n`],
    ['of the wrong type', `vendors: { openai: { api_keys: ${secret} } }\n`],
    ['in the position of a vendor', `vendors: { openai: ${secret} }\n`],
    ['in the position of an address', `vendors: { openai: { base_url: ${secret} } }\n`],
    ['under a wrong key', `vendors: { openai: { apikey: ${secret} } }\n`],
    ['in the position of all vendors', `vendors: ${secret}\n`],
    ['after a value', `vendors: { openai: { api_key: "a" ${secret} } }\n`],
    ['as an alias', `vendors: { openai: { api_key: *${secret} } }\n`],
    ['in broken quotes', `vendors:\n  openai:\n    api_key: "${secret}\n    open: true\n`],
    ['as the whole file', `${secret}\n`],
    ['in a file of variables', `OPENAI_API_KEY=${secret}\n`],
    ['as a tag', `vendors: { openai: { api_key: !${secret} a } }\n`],
  ];
  /** Digits are a number without quotes. */
  for (const secret of ['sk-very-secret-0123456789', '4815162342481516']) {
    for (const [what, text] of leaks(secret)) {
      it(`readConfiguration does not show a secret such as ${secret} ${what}`, async () => {
        const lines = await mistakes(text);
        assert.ok(!lines.join('\n').includes(secret), lines.join('\n'));
      });
    }
  }

  it('readConfiguration reports a missing file in one sentence', () => {
    assert.throws(() => readConfiguration(join(folder, 'none.yaml'), {}), {
      name: 'ConfigError',
      message: `The setting SLUICE_CONFIG cannot be used: the file ${join(folder, 'none.yaml')} cannot be read (ENOENT).`,
    });
  });
});
