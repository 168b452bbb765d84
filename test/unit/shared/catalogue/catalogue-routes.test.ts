import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCatalogue, routeName } from '../../../../shared/catalogue/catalogue.ts';
import type { Model, ModelRoute } from '../../../../shared/catalogue/models.ts';
import { everyVendor, vendorSettings, vendorsOn } from '../../../support/vendor-settings.ts';

const names = ['first', 'second', 'third'];

function chatModel(id: string, routes: readonly ModelRoute[], more: Partial<Model> = {}): Model {
  return { id, created: 1, ownedBy: 'maker', capability: 'chat', routes: [...routes], ...more };
}

/** The route of each vendor, which calls the model by the name of its own. */
const routesTo = (...vendors: readonly string[]): ModelRoute[] =>
  vendors.map((vendor) => ({ vendor, model: `m-${vendor}` }));

/** Names of the routes of a model, in their order. */
function namesOf(models: readonly Model[], id: string, vendors: readonly string[] = names): string[] {
  const catalogue = createCatalogue({ vendors: vendorsOn(...vendors), models });
  return catalogue.routes(id, 'chat').map(({ route }) => routeName(route));
}

describe('the routes of a model', () => {
  it('routes come in the order of the list, or in their own, without those of vendors that are off', () => {
    const listed = [chatModel('model', routesTo('first', 'second', 'third'))];
    assert.deepEqual(namesOf(listed, 'model'), ['first/m-first', 'second/m-second', 'third/m-third']);
    assert.deepEqual(namesOf(listed, 'model', ['first', 'third']), ['first/m-first', 'third/m-third']);
    assert.deepEqual(namesOf(listed, 'model', []), []);
    const [first, second, third] = routesTo('first', 'second', 'third') as [ModelRoute, ModelRoute, ModelRoute];
    const ordered = [
      { ...first, order: 2 },
      { ...second, order: 1 },
      { ...third, order: 2 },
    ];
    assert.deepEqual(namesOf([chatModel('model', ordered)], 'model'), [
      'second/m-second',
      'first/m-first',
      'third/m-third',
    ]);
    assert.deepEqual(namesOf(listed, 'unknown'), []);
  });

  it("routes end with those of the model's fallbacks, whose own fallbacks do not follow", () => {
    const models = [
      chatModel('model', routesTo('first', 'second'), { fallbacks: ['other', 'missing', 'painter', 'cheap'] }),
      chatModel('cheap', [{ vendor: 'third', model: 'c' }]),
      chatModel('other', [{ vendor: 'first', model: 'o', order: 0 }], { fallbacks: ['last'] }),
      chatModel('last', [{ vendor: 'first', model: 'l' }]),
      chatModel('painter', [{ vendor: 'first', model: 'p' }], { capability: 'image' }),
    ];
    assert.deepEqual(namesOf(models, 'model'), ['first/m-first', 'second/m-second', 'first/o', 'third/c']);
    const catalogue = createCatalogue({ vendors: vendorsOn(...names), models });
    assert.deepEqual(
      catalogue.routes('model', 'chat').map(({ id }) => id),
      ['model', 'model', 'other', 'cheap'],
    );
    // None of its own is on: it is not in the catalogue at all.
    assert.deepEqual(namesOf(models, 'model', ['third']), []);
    assert.deepEqual(namesOf(models, 'model', ['second', 'third']), ['second/m-second', 'third/c']);
  });

  it('each route has its own limits and prices and the row of its vendor, and holds no other route', () => {
    const facts = { contextWindow: 1000, maxOutputTokens: 100, prices: { input: 5 } };
    const routes: ModelRoute[] = [
      { vendor: 'first', model: 'a', order: 1 },
      { vendor: 'groq', model: 'b', order: 0, contextWindow: 500, prices: { input: 3 } },
      { vendor: 'third', model: 'c' },
    ];
    const vendors = { ...vendorsOn('first', 'groq'), third: vendorSettings('mistral') };
    const models = [chatModel('model', routes, { ...facts, reasoning: true })];
    const shown = createCatalogue({ vendors, models })
      .routes('model', 'chat')
      .map(({ route, routes: only, contextWindow, maxOutputTokens, prices, reasoning, vendorRow }) => {
        assert.deepEqual(only, [route]);
        return [vendorRow.name, route.vendor, contextWindow, maxOutputTokens, prices?.input, reasoning];
      });
    assert.deepEqual(shown, [
      ['groq', 'groq', 500, undefined, 3, true],
      ['first', 'first', 1000, 100, 5, true],
      ['mistral', 'third', undefined, undefined, undefined, true],
    ]);
  });

  it('every model of the catalogue has its routes, the first with the facts of its row', () => {
    const catalogue = createCatalogue({ vendors: everyVendor });
    for (const model of catalogue.list()) {
      const routes = catalogue.routes(model.id, model.capability);
      assert.deepEqual(
        routes.map(({ route }) => route),
        model.routes,
        model.id,
      );
      const { route, vendorRow, routes: only, ...rest } = routes[0] ?? assert.fail(model.id);
      const { routes: _all, ...row } = model;
      assert.deepEqual(rest, row, model.id);
      assert.deepEqual([only, vendorRow.name], [[route], route.vendor], model.id);
    }
  });
});

describe('models outside the list', () => {
  const facts = { contextWindow: 1000 };
  const listed = chatModel(
    'listed',
    [
      { vendor: 'first', model: 'maker/a' },
      { vendor: 'vllm', model: 'maker/b', contextWindow: 500 },
    ],
    { ...facts, fallbacks: ['other'], reasoning: true },
  );
  const models = [listed, chatModel('other', [{ vendor: 'first', model: 'o' }])];
  const catalogue = createCatalogue({ vendors: vendorsOn('first', 'vllm', 'azure', 'groq'), models });

  it('an unlisted model passes through to an open vendor, with the requested capability', () => {
    for (const id of ['vllm/meta-llama/Llama-3.3-70B', 'azure/my deployment']) {
      const slash = id.indexOf('/');
      const route = { vendor: id.slice(0, slash), model: id.slice(slash + 1) };
      const [only, ...others] = catalogue.routes(id, 'chat');
      assert.deepEqual(others, []);
      assert.deepEqual([only?.id, only?.capability, only?.route], [id, 'chat', route]);
      assert.equal(only?.vendorRow.name, route.vendor);
      // Nothing is known of it, so nothing is refused.
      assert.deepEqual(
        [only?.input, only?.contextWindow, only?.maxOutputTokens, only?.prices],
        Array(4).fill(undefined),
      );
      assert.equal(catalogue.find(id), undefined, 'without a capability');
      assert.equal(catalogue.find(id, 'embedding')?.capability, 'embedding');
    }
    assert.ok((catalogue.routes('vllm/embedder', 'embedding')[0]?.embedding?.batch ?? 0) > 1);
    assert.deepEqual(catalogue.routes('vllm/painter', 'image')[0]?.image?.tasks, ['generation', 'edit', 'variation']);
    assert.ok(catalogue.routes('vllm/scribe', 'transcription')[0]?.transcription);
    assert.ok(catalogue.routes('vllm/speaker', 'speech')[0]?.speech?.formats.includes('mp3'));
  });

  it('an unlisted model is unknown when its vendor is not open, not on or not named, and always for videos', () => {
    const longest = `vllm/${'m'.repeat(251)}`;
    assert.equal(catalogue.routes(longest, 'chat').length, 1);
    const others = ['groq/some-model', 'ollama/llama', '/model', 'vllm/', 'vllm', '', `${longest}m`];
    for (const id of [...others, 'constructor/model', '__proto__/model', 'VLLM/model']) {
      assert.deepEqual(catalogue.routes(id, 'chat'), [], id);
      assert.equal(catalogue.find(id, 'chat'), undefined, id);
    }
    assert.deepEqual(catalogue.routes('vllm/film', 'video'), []);
    const opened = { ...vendorsOn('first'), groq: { ...vendorSettings('groq'), isOpen: true } };
    assert.equal(createCatalogue({ vendors: opened, models }).routes('groq/some-model', 'chat').length, 1);
  });

  it('vendor/model finds the listed model by that route alone, without fallbacks', () => {
    const [only, ...others] = catalogue.routes('vllm/maker/b', 'chat');
    assert.deepEqual(others, []);
    assert.deepEqual([only?.id, only?.route.model, only?.contextWindow], ['vllm/maker/b', 'maker/b', 500]);
    assert.equal(only?.reasoning, true);
    assert.equal(catalogue.routes('vllm/maker/b', 'embedding')[0]?.contextWindow, undefined, 'of another capability');
  });

  it('a model listed under the name vendor/model takes precedence over the route of that name', () => {
    const named = chatModel('vllm/maker/b', [{ vendor: 'first', model: 'elsewhere' }]);
    assert.deepEqual(namesOf([...models, named], 'vllm/maker/b', ['first', 'vllm']), ['first/elsewhere']);
  });
});

describe('Catalogue.replace', () => {
  it('a catalogue with replaced vendors and models knows nothing of the former ones', () => {
    const before = chatModel('before', routesTo('first', 'second'), { fallbacks: ['both'] });
    const both = chatModel('both', routesTo('first'));
    const catalogue = createCatalogue({ vendors: vendorsOn('first', 'second', 'vllm'), models: [before, both] });
    const routesOf = (id: string) => catalogue.routes(id, 'chat').map(({ route }) => routeName(route));
    assert.deepEqual(routesOf('before'), ['first/m-first', 'second/m-second', 'first/m-first']);
    assert.deepEqual(routesOf('both'), ['first/m-first']);
    assert.deepEqual(routesOf('vllm/any'), ['vllm/any']);

    const after = chatModel('after', routesTo('second'));
    catalogue.replace({ vendors: vendorsOn('second', 'third'), models: [chatModel('both', routesTo('third')), after] });
    assert.deepEqual(
      catalogue.list().map(({ id }) => id),
      ['both', 'after'],
    );
    assert.deepEqual([routesOf('before'), catalogue.find('before')], [[], undefined]);
    assert.deepEqual(routesOf('both'), ['third/m-third']);
    assert.deepEqual(routesOf('after'), ['second/m-second']);
    assert.deepEqual(routesOf('vllm/any'), []);
    assert.deepEqual([catalogue.nearest('befor'), catalogue.nearest('aftr')], [[], ['after']]);
  });

  it('an id of an open vendor with characters that no one sees, or that a terminal obeys, is no model', () => {
    const opened = { groq: { ...vendorSettings('groq'), isOpen: true } };
    const catalogue = createCatalogue({ vendors: opened, models: [] });
    assert.equal(catalogue.routes('groq/modèle-一', 'chat').length, 1);
    for (const sign of ['\u009b31m', '\u001b[2J', '\n', '\u202e', '\u200b']) {
      assert.deepEqual(catalogue.routes(`groq/a${sign}b`, 'chat'), [], JSON.stringify(sign));
    }
  });
});
