import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createCatalogue } from '../../../../shared/catalogue/catalogue.ts';
import { models as table } from '../../../../shared/catalogue/models.ts';
import { readConfig } from '../../../../shared/config/config.ts';
import { configurationFile } from '../../../../shared/config/file/configuration-file.ts';
import { limitBounds } from '../../../../shared/config/file/limit-bounds.ts';
import { routingDefaults } from '../../../../shared/config/routing-settings.ts';

const file = fileURLToPath(new URL('../../../../sluice.example.yaml', import.meta.url));
const keys = { OPENAI_API_KEY: 'a', OPENAI_SECOND_API_KEY: 'b', GROQ_API_KEY: 'c', PERPLEXITY_API_KEY: 'd' };

describe('sluice.example.yaml', () => {
  it('sluice.example.yaml is valid and has the vendors, models, aliases and routes of its comments', () => {
    const config = readConfig({ SLUICE_CONFIG: file, ...keys });
    assert.deepEqual(
      Object.entries(config.vendors).map(([name, { apiKeys, isOpen }]) => [name, apiKeys, isOpen]),
      [
        ['openai', ['a', 'b'], false],
        ['groq', ['c'], true],
        ['my-own', ['none'], true],
      ],
    );
    const catalogue = createCatalogue(config);
    for (const gone of ['gpt-4.1', 'gpt-4o']) {
      assert.ok(
        table.some(({ id }) => id === gone),
        gone,
      );
      assert.equal(catalogue.find(gone), undefined);
    }
    for (const id of ['flagship', 'fast', 'llama', 'my-embedding', 'groq/anything']) {
      assert.equal(catalogue.find(id, 'chat')?.id, id);
    }
    const routes = (id: string) =>
      catalogue.routes(id, 'chat').map(({ route, prices }) => [route.vendor, prices?.input]);
    assert.deepEqual(routes('gpt-4o-mini'), [
      ['openai', 200_000],
      ['my-own', 100_000],
      ['groq', 500_000],
    ]);
    assert.deepEqual(config.routing, routingDefaults);
  });

  it('sluice.example.yaml sets limits and routing to their defaults', () => {
    const { SLUICE_CONFIG, ...environment } = { SLUICE_CONFIG: file, ...keys };
    const { vendors: _v, models: _m, ...withFile } = readConfig({ SLUICE_CONFIG, ...environment });
    const { vendors: _w, models: _n, ...without } = readConfig(environment);
    assert.deepEqual(withFile, without);
  });

  it('sluice.example.yaml names every section, limit and routing setting', () => {
    const text = readFileSync(file, 'utf8');
    const names = [
      ...Object.keys(configurationFile.shape),
      ...Object.keys(limitBounds),
      ...['attempts', 'retry_budget_percent', 'longest_retry_after_seconds', 'breaker'],
    ];
    for (const name of names) assert.match(text, new RegExp(`^ *${name}:`, 'm'));
  });
});

describe('docs/guides/switch.md', () => {
  it('the configuration that the guide for users of LiteLLM ends with has the models, routes and limits of the one before it', (t) => {
    const guide = readFileSync(new URL('../../../../docs/guides/switch.md', import.meta.url), 'utf8');
    const [, ours = ''] = [...guide.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, source]) => source);
    const folder = mkdtempSync(join(tmpdir(), 'sluice-test-guide-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const guided = join(folder, 'sluice.yaml');
    writeFileSync(guided, ours);
    const config = readConfig({ SLUICE_CONFIG: guided, ...keys, AZURE_API_KEY: 'e', ANTHROPIC_API_KEY: 'f' });
    assert.equal(config.vendors.azure?.baseUrl, 'https://eu.openai.azure.com');
    assert.deepEqual(config.vendors.azure?.limits?.models, { 'gpt-4o-eu': { rpm: 300 } });
    const catalogue = createCatalogue(config);
    for (const id of ['gpt-4o', 'default']) {
      const routes = catalogue.routes(id, 'chat').map(({ route }) => `${route.vendor}/${route.model}`);
      assert.deepEqual(routes.slice(0, 2).sort(), ['azure/gpt-4o-eu', 'openai/gpt-4o'], id);
      assert.match(routes.slice(2).join(), /^anthropic\/claude-sonnet-5-5/, id);
    }
    assert.equal(catalogue.find('groq/anything', 'chat')?.id, 'groq/anything');
  });
});
