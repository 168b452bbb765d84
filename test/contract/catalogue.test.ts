import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCatalogue } from '../../shared/catalogue/catalogue.ts';
import { type Model, models } from '../../shared/catalogue/models.ts';

const everyVendor = new Set(['openai', 'sandbox']);

describe('the catalogue', () => {
  it('names every model once, with a label in lower case and a time in seconds', () => {
    const ids = models.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    for (const model of models) {
      assert.equal(model.ownedBy, model.ownedBy.toLowerCase());
      assert.ok(model.created > 1_600_000_000 && model.created < 2_000_000_000, model.id);
    }
  });

  it('lists and finds only models of vendors that are on', () => {
    const sandbox = createCatalogue(new Set(['sandbox']));
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
    const openai = createCatalogue(new Set(['openai']));
    assert.equal(openai.find('sandbox-chat'), undefined);
    assert.deepEqual(openai.find('gpt-4o-mini')?.routes, [{ vendor: 'openai', model: 'gpt-4o-mini' }]);
    assert.deepEqual(createCatalogue(new Set()).list(), []);
    assert.equal(createCatalogue(everyVendor).list().length, models.length);
  });

  it('leaves out routes to vendors that are off', () => {
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
    const catalogue = createCatalogue(new Set(['second']), [model]);
    assert.deepEqual(catalogue.find('family/model')?.routes, [{ vendor: 'second', model: 'b' }]);
  });

  it('finds nothing under the names of built-in properties', () => {
    const catalogue = createCatalogue(everyVendor);
    for (const id of ['constructor', '__proto__', 'toString', '']) assert.equal(catalogue.find(id), undefined);
  });

  it('suggests up to three near names, the nearest first, and none for what is like nothing', () => {
    const catalogue = createCatalogue(everyVendor);
    assert.equal(catalogue.nearest('gpt-4o-mimi')[0], 'gpt-4o-mini');
    assert.equal(catalogue.nearest('openai/gpt-4o')[0], 'gpt-4o');
    assert.equal(catalogue.nearest('GPT-4O-MINI')[0], 'gpt-4o-mini');
    assert.equal(catalogue.nearest('sandbox-chta')[0], 'sandbox-chat');
    assert.ok(catalogue.nearest('gpt-4').length <= 3);
    for (const id of ['claude', 'x'.repeat(256), 'ab', 'vendor/', '']) assert.deepEqual(catalogue.nearest(id), []);
  });
});
