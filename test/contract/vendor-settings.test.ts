import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCatalogue } from '../../shared/catalogue/catalogue.ts';
import { exampleModels } from '../../shared/catalogue/example-models.ts';
import { vendorRows } from '../../shared/catalogue/vendors.ts';
import { ConfigError, readConfig } from '../../shared/config.ts';

describe('the settings of vendors', () => {
  it('turn each vendor on by its key, or, where it needs none, by its base URL', () => {
    for (const { name, dialect, baseUrl, needsKey } of vendorRows.filter((row) => row.name !== 'sandbox')) {
      const prefix = name.toUpperCase().replaceAll('-', '_');
      const key = { [`${prefix}_API_KEY`]: 'a-key' };
      const elsewhere = { [`${prefix}_BASE_URL`]: 'https://vendor.example/v1/' };
      const settings = { dialect, baseUrl: 'https://vendor.example/v1', apiKey: 'a-key' };
      assert.deepEqual(readConfig({ ...key, ...elsewhere }).vendors, { [name]: settings });
      const withKey = readConfig(key);
      const withAddress = readConfig(elsewhere);
      assert.deepEqual(withKey.vendors, needsKey ? { [name]: { dialect, baseUrl, apiKey: 'a-key' } } : {});
      assert.deepEqual(withAddress.vendors, needsKey ? {} : { [name]: { ...settings, apiKey: 'none' } });
      assert.equal(withKey.sandbox, !needsKey);
    }
  });

  it('have a base URL of their own for every vendor, and names that make settings', () => {
    assert.equal(new Set(vendorRows.map(({ name }) => name)).size, vendorRows.length);
    for (const { name, baseUrl } of vendorRows) {
      assert.match(name, /^[a-z][a-z0-9-]*$/);
      assert.match(baseUrl, /^https?:\/\/[^/]+(\/[^/]+)*$/);
    }
  });

  it('leave the sandbox on while no vendor has a key, and turn it on or off when they say so', () => {
    const sandbox = { SANDBOX_BASE_URL: 'http://127.0.0.1:8090/v1' };
    const isOn = (environment: Record<string, string>) =>
      'sandbox' in readConfig({ ...sandbox, ...environment }).vendors;
    assert.equal(isOn({}), true);
    assert.equal(isOn({ GROQ_API_KEY: '' }), true);
    assert.equal(isOn({ GROQ_API_KEY: 'k' }), false);
    assert.equal(isOn({ GEMINI_API_KEY: 'k', SLUICE_SANDBOX: 'on' }), true);
    assert.equal(isOn({ SLUICE_SANDBOX: 'off' }), false);
    assert.deepEqual(Object.keys(readConfig({ OPENAI_API_KEY: 'k', ...sandbox, SLUICE_SANDBOX: 'on' }).vendors), [
      'openai',
      'sandbox',
    ]);
  });

  it('give newcomers a chat model that answers', () => {
    const chatOf = (environment: Record<string, string>) => {
      const { vendors } = readConfig(environment);
      const { chat } = exampleModels(vendors);
      return [chat, createCatalogue(new Set(Object.keys(vendors))).find(chat)?.routes[0]?.vendor];
    };
    assert.deepEqual(chatOf({ OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' }), ['gpt-4o-mini', 'openai']);
    for (const vendor of ['groq', 'anthropic', 'gemini']) {
      assert.equal(chatOf({ [`${vendor.toUpperCase()}_API_KEY`]: 'k' })[1], vendor);
    }
    assert.deepEqual(chatOf({ SANDBOX_BASE_URL: 'http://127.0.0.1:8090/v1' }), ['sandbox-chat', 'sandbox']);
  });

  it('that cannot be used are named, and their values are not', () => {
    assert.throws(
      () => readConfig({ LM_STUDIO_BASE_URL: 'secret-nonsense' }),
      (error) =>
        error instanceof ConfigError &&
        error.message.includes('LM_STUDIO_BASE_URL') &&
        !error.message.includes('secret-nonsense'),
    );
  });
});
