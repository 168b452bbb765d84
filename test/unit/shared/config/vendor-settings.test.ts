import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCatalogue } from '../../../../shared/catalogue/catalogue.ts';
import { exampleModels } from '../../../../shared/catalogue/example-models.ts';
import { ConfigError, readConfig } from '../../../../shared/config/config.ts';
import { vendorRows } from '../../../../shared/vendors/vendors.ts';

describe('the settings of vendors', () => {
  it('a vendor is turned on by its key, or by its base URL when it needs no key', () => {
    for (const row of vendorRows.filter(({ name }) => name !== 'sandbox')) {
      const { name, baseUrl, needsKey, needsBaseUrl = false } = row;
      const prefix = name.toUpperCase().replaceAll('-', '_');
      const value = row.keyForm === 'pair' ? 'access:secret' : 'a-key';
      const key = { [`${prefix}_API_KEY`]: value };
      const elsewhere = { [`${prefix}_BASE_URL`]: 'https://vendor.example/v1/' };
      const settings = { row, baseUrl: 'https://vendor.example/v1', apiKeys: [value], isOpen: row.isOpen === true };
      assert.deepEqual(readConfig({ ...key, ...elsewhere }).vendors, { [name]: settings });
      const withAddress = readConfig(elsewhere);
      assert.deepEqual(withAddress.vendors, needsKey ? {} : { [name]: { ...settings, apiKeys: ['none'] } });
      if (needsBaseUrl) {
        assert.throws(
          () => readConfig(key),
          (error) => error instanceof ConfigError && error.message.includes(`${prefix}_BASE_URL`),
        );
        continue;
      }
      const withKey = readConfig(key);
      assert.deepEqual(withKey.vendors, needsKey ? { [name]: { ...settings, baseUrl } } : {});
      assert.equal(withKey.sandbox, !needsKey);
    }
  });

  it('every vendor has a base URL and a name that makes valid settings', () => {
    assert.equal(new Set(vendorRows.map(({ name }) => name)).size, vendorRows.length);
    for (const { name, baseUrl } of vendorRows) {
      assert.match(name, /^[a-z][a-z0-9-]*$/);
      assert.match(baseUrl, /^https?:\/\/[^/]+(\/[^/]+)*$/);
    }
  });

  it('an API_KEY setting takes several keys, and rejects empty and malformed ones without showing them', () => {
    assert.deepEqual(readConfig({ OPENAI_API_KEY: 'one, two' }).vendors.openai?.apiKeys, ['one', 'two']);
    for (const environment of [{ OPENAI_API_KEY: 'one,,two' }, { KLING_API_KEY: 'no-pair' }]) {
      assert.throws(
        () => readConfig(environment),
        (error) =>
          error instanceof ConfigError && error.message.includes('_API_KEY') && !/one|no-pair/.test(error.message),
      );
    }
  });

  it('the sandbox is on while no vendor has a key, and SLUICE_SANDBOX turns it on or off', () => {
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

  it('GROQ_API_KEY takes comma-separated keys with spaces, and rejects every list with an empty key', () => {
    const keysOf = (list: string) => readConfig({ GROQ_API_KEY: list }).vendors.groq?.apiKeys;
    assert.deepEqual(keysOf('one'), ['one']);
    assert.deepEqual(keysOf('one, two,three '), ['one', 'two', 'three']);
    for (const list of ['secret-one,', ',secret-one', 'secret-one,,secret-two', ' ']) {
      assert.throws(
        () => keysOf(list),
        ({ message }: Error) => message.includes('GROQ_API_KEY') && !message.includes('secret'),
        list,
      );
    }
  });

  it('exampleModels suggests a chat model of a vendor that is on', () => {
    const chatOf = (environment: Record<string, string>) => {
      const { vendors } = readConfig(environment);
      const { chat } = exampleModels({ vendors });
      return [chat, createCatalogue({ vendors }).find(chat)?.routes[0]?.vendor];
    };
    assert.deepEqual(chatOf({ OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' }), ['gpt-4o-mini', 'openai']);
    for (const vendor of ['groq', 'anthropic', 'gemini']) {
      assert.equal(chatOf({ [`${vendor.toUpperCase()}_API_KEY`]: 'k' })[1], vendor);
    }
    assert.deepEqual(chatOf({ SANDBOX_BASE_URL: 'http://127.0.0.1:8090/v1' }), ['sandbox-chat', 'sandbox']);
  });

  it("an invalid base URL is reported by its setting's name, without its value", () => {
    assert.throws(
      () => readConfig({ LM_STUDIO_BASE_URL: 'secret-nonsense' }),
      (error) =>
        error instanceof ConfigError &&
        error.message.includes('LM_STUDIO_BASE_URL') &&
        !error.message.includes('secret-nonsense'),
    );
  });
});
