import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { cacheName } from '../../../../api/pipeline/answer-cache.ts';
import { SeededRandom } from '../../../support/seeded-random.ts';

/** Cases of each property; a soak runs a million in all. */
const count = process.env.SLUICE_SOAK ? 250_000 : 2000;

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Fields = { readonly [name: string]: Json };

/** A request as its caller wrote it: the same fields may be written in many ways. */
interface Asked {
  readonly account: string;
  readonly endpoint: 'chat' | 'embeddings';
  readonly model: string;
  readonly drops: boolean;
  readonly body: Fields;
}

const accounts = ['default', 'neighbour-4', 'a', 'b', 'a\n', '', 'default\nchat', 'ä'];
/** The last ones have characters without a form of their own in UTF-8. */
const models = ['m', 'm\n', 'm\ndrop', 'vendor/m', 'M', 'ｍ', '__proto__', '\ud800', '\udc00', '\ufffd'];
const names = [
  'messages',
  'a',
  'b',
  'A',
  '1',
  '2',
  '10',
  '',
  '__proto__',
  'constructor',
  'toJSON',
  'é',
  'e\u0301',
  '\ud800',
  'stream',
];
const texts = [
  '',
  'a',
  'b',
  'A',
  '1',
  'null',
  'é',
  'e\u0301',
  '\ud83d\ude00',
  '\ud83d',
  '\ude00',
  '\ufffd',
  'a\nb',
  'a\\nb',
  '"',
  '\u2028',
];
const numbers = [0, 1, -1, 0.1, 0.5, 1.5, 10, 100, 1e21, 1e-7, 2 ** 53, 123456789.125];

/** Makes requests from few words, so that equal and nearly equal ones come together. */
class Maker {
  readonly random: () => number;

  constructor(seed: number) {
    const random = new SeededRandom(seed);
    this.random = () => random.next();
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random() * items.length)] as Item;
  }

  value(depth: number): Json {
    const kind = this.random();
    if (depth > 0 && kind < 0.2) return Array.from({ length: this.pick([0, 1, 2, 3]) }, () => this.value(depth - 1));
    if (depth > 0 && kind < 0.5) return this.fields(depth - 1);
    if (kind < 0.7) return this.pick(texts);
    return kind < 0.9 ? this.pick(numbers) : this.pick([null, true, false]);
  }

  fields(depth: number): Fields {
    return Object.fromEntries(
      Array.from({ length: this.pick([0, 1, 2, 3]) }, () => [this.pick(names), this.value(depth)]),
    );
  }

  asked(): Asked {
    return {
      account: this.pick(accounts),
      endpoint: this.pick(['chat', 'embeddings']),
      model: this.pick(models),
      drops: this.random() < 0.3,
      body: this.fields(3),
    };
  }

  /** JSON text of a value, with fields in any order, and whitespace, escapes and numbers in any form. */
  write(value: Json): string {
    const gap = this.pick(['', '', '', ' ', '\n\t']);
    if (Array.isArray(value)) return `[${gap}${value.map((item: Json) => this.write(item)).join(`,${gap}`)}]`;
    if (typeof value === 'object' && value !== null) {
      const fields = Object.entries(value).map((field) => ({ field, order: this.random() }));
      fields.sort((one, other) => one.order - other.order);
      const written = fields.map(({ field: [name, of] }) => `${this.#text(name)}${gap}:${gap}${this.write(of)}`);
      return `{${gap}${written.join(`${gap},`)}${gap}}`;
    }
    if (typeof value === 'string') return this.#text(value);
    return typeof value === 'number' ? this.#number(value) : String(value);
  }

  #text(text: string): string {
    const written = JSON.stringify(text);
    if (this.random() < 0.8) return written;
    const escaped = Array.from({ length: text.length }, (_, index) =>
      text.charCodeAt(index).toString(16).padStart(4, '0'),
    );
    return `"${escaped.map((code) => `\\u${code}`).join('')}"`;
  }

  #number(number: number): string {
    const forms = [String(number), number.toExponential(), `${number.toExponential()}`.replace('e', '.0e')];
    return this.pick(
      Number.isInteger(number) && number < 1e6 ? [...forms.slice(0, 2), `${number}.00`] : forms.slice(0, 2),
    );
  }
}

/** The name of a request that was written as this text. */
function nameOf({ account, endpoint, model, drops }: Omit<Asked, 'body'>, text: string): string {
  const caller = { account, ...(drops && { unsupportedParameters: 'drop' }) };
  const name = cacheName(
    { state: { caller } } as never,
    { name: endpoint, capability: endpoint === 'chat' ? 'chat' : 'embedding' },
    { model, request: text } as never,
    { idempotencyKey: undefined, respondAsync: false },
  );
  assert.ok(name !== undefined, 'it is cached');
  return name;
}

/** What a request is, written by other means than those under test: kinds by letters, lengths before texts, fields in order. */
function identityOf({ account, endpoint, model, drops, body }: Asked): string {
  const parts: string[] = [];
  const text = (value: string): void => {
    parts.push(`${value.length}:`);
    for (let index = 0; index < value.length; index++) parts.push(value.charCodeAt(index).toString(36), ' ');
  };
  const value = (of: Json): void => {
    if (typeof of === 'string') text(of);
    else if (Array.isArray(of)) {
      parts.push(`[${of.length}`);
      for (const item of of) value(item);
    } else if (typeof of === 'object' && of !== null) {
      parts.push(`{${Object.keys(of).length}`);
      for (const name of Object.keys(of).sort()) {
        text(name);
        value((of as Fields)[name] as Json);
      }
    } else parts.push(typeof of === 'number' ? `n${of};` : `${of};`);
  };
  for (const each of [account, endpoint, model, String(drops)]) text(each);
  value(body);
  return createHash('sha256').update(parts.join('')).digest('base64');
}

test('no two different requests share a cached answer: not of two accounts, models, endpoints, or bodies', () => {
  const maker = new Maker(1);
  const identities = new Map<string, string>();
  let repeats = 0;
  for (let index = 0; index < count; index++) {
    const asked = maker.asked();
    const [name, identity] = [nameOf(asked, maker.write(asked.body)), identityOf(asked)];
    const known = identities.get(name);
    if (known !== undefined) repeats += 1;
    assert.equal(known ?? identity, identity, JSON.stringify(asked));
    identities.set(name, identity);
  }
  assert.equal(new Set(identities.values()).size, identities.size, 'equal requests have one name');
  assert.ok(repeats > count / 100, `equal requests came ${repeats} times`);
});

test('the same body of another account, model or endpoint, or of a key that leaves out fields, has another name', () => {
  const maker = new Maker(2);
  for (let index = 0; index < count; index++) {
    const [asked, text] = [maker.asked(), maker.write(maker.value(0) === null ? {} : maker.fields(3))];
    const own = nameOf(asked, text);
    const others: Partial<Asked>[] = [
      { account: maker.pick(accounts.filter((account) => account !== asked.account)) },
      { model: maker.pick(models.filter((model) => model !== asked.model)) },
      { endpoint: asked.endpoint === 'chat' ? 'embeddings' : 'chat' },
      { drops: !asked.drops },
    ];
    for (const other of others)
      assert.notEqual(nameOf({ ...asked, ...other }, text), own, JSON.stringify([asked, other]));
  }
});

test('one request has one name, however its caller writes its fields, texts and numbers', () => {
  const maker = new Maker(3);
  for (let index = 0; index < count; index++) {
    const asked = maker.asked();
    const [one, other] = [maker.write(asked.body), maker.write(asked.body)];
    assert.equal(nameOf(asked, one), nameOf(asked, other), `${one} and ${other}`);
    const streamed = maker.write({ ...asked.body, stream_options: { include_usage: true } });
    assert.equal(nameOf(asked, streamed), nameOf(asked, one), 'how it is streamed makes no difference');
  }
});

test('a body in which one value is another has another name', () => {
  const maker = new Maker(4);
  for (let index = 0; index < count; index++) {
    const asked = maker.asked();
    const name = maker.pick(names);
    const [before, after] = [maker.value(2), maker.value(2)];
    const bodies = [before, after].map((value) => ({ ...asked.body, messages: { [name]: [value] } }));
    const isSame =
      identityOf({ ...asked, body: bodies[0] as Fields }) === identityOf({ ...asked, body: bodies[1] as Fields });
    const [one, other] = bodies.map((body) => nameOf(asked, maker.write(body)));
    assert.equal(one === other, isSame, JSON.stringify(bodies));
  }
});

test('whole numbers that differ in digits beyond those that a parsed number keeps make different requests', () => {
  const asked = { account: 'a', endpoint: 'chat', model: 'm', drops: false } as const;
  const seeds = ['9007199254740992', '9007199254740993', '9223372036854775807', '9223372036854775806', '9'.repeat(400)];
  const names = seeds.map((seed) => nameOf(asked, `{"seed":${seed},"user":"u"}`));
  assert.equal(new Set(names).size, seeds.length);
  assert.equal(nameOf(asked, '{"user":"u","seed":9007199254740993}'), names[1]);
  assert.equal(nameOf(asked, '{"user":"u","seed":9.007199254740992e15}'), names[0]);
});

test('numbers that parsing makes equal make different requests, wherever they stand and however they are written', () => {
  const asked = { account: 'a', endpoint: 'chat', model: 'm', drops: false } as const;
  const different = [
    ['{"a":9007199254740993,"b":9007199254740992}', '{"a":9007199254740992,"b":9007199254740993}'],
    ['{"a":9007199254740993,"b":9007199254740992}', '{"b":9007199254740993,"a":9007199254740992}'],
    ['{"a":1e400}', '{"a":null}'],
    ['{"a":1e400}', '{"a":"\\u00001e400"}'],
    ['{"a":1e400,"b":null}', '{"a":null,"b":1e400}'],
    ['{"a":1e400,"b":null}', '{"b":1e400,"a":null}'],
    ['{"a":1e400,"b":"\\u00001e400"}', '{"a":"\\u00001e400","b":1e400}'],
    ['{"a":1e400}', '{"a":1e500}'],
    ['{"a":1e-400}', '{"a":0}'],
    ['{"a":123456789.123456789}', '{"a":123456789.12345679}'],
    ['{"a":9.007199254740993e15}', '{"a":9.007199254740992e15}'],
  ];
  for (const [one = '', other = ''] of different)
    assert.notEqual(nameOf(asked, one), nameOf(asked, other), `${one} and ${other}`);
  const equal = [
    ['{"a":0.10,"b":1e3}', '{"b":1000.0,"a":0.1}'],
    ['{"a":0.30000000000000004,"b":-1e21}', '{"b":-1000000000000000000000,"a":3.0000000000000004e-1}'],
    ['{"a":9007199254740993,"b":1}', '{"b":1.0,"a":9007199254740993}'],
    ['{"text":"9007199254740993, \\"1e400\\"","b":2}', '{"b":2,"text":"9007199254740993, \\"1e400\\""}'],
  ];
  for (const [one = '', other = ''] of equal)
    assert.equal(nameOf(asked, one), nameOf(asked, other), `${one} and ${other}`);
});
