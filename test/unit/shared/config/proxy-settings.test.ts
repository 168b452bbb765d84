import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readConfig } from '../../../../shared/config/config.ts';
import { isProxied, type ProxySettings } from '../../../../shared/config/proxy-settings.ts';
import { settingsComplaint } from '../../../support/settings-complaint.ts';

const proxy = 'http://proxy.example:3128';

describe('the proxy to vendors', () => {
  test('HTTPS_PROXY and NO_PROXY may be in lower case, those in upper case precede, and the scheme may be left out', () => {
    assert.equal(readConfig({}).proxy, undefined);
    assert.deepEqual(readConfig({ https_proxy: 'proxy.example:3128', no_proxy: ' .A.example, 10.0.0.0/8' }).proxy, {
      url: proxy,
      except: ['.a.example', '10.0.0.0/8'],
    });
    const both = { HTTPS_PROXY: proxy, https_proxy: 'http://other', NO_PROXY: 'a', no_proxy: 'b' };
    assert.deepEqual(readConfig(both).proxy, { url: proxy, except: ['a'] });
    assert.equal(readConfig({ HTTPS_PROXY: '', https_proxy: '' }).proxy, undefined);
  });

  test('a proxy of another kind is refused, and its login is not shown', () => {
    const sentence = 'HTTPS_PROXY must be the address of a proxy of http or https, such as http://proxy.example:3128.';
    for (const url of ['socks5://user:secret@proxy:1080', 'http://user:%zz@proxy:3128', 'http://:3128', 'http://a b']) {
      assert.equal(settingsComplaint({ HTTPS_PROXY: url }), sentence);
    }
  });

  test('vendors are called through the proxy by https, unless NO_PROXY or this machine is meant', () => {
    const directs: readonly [rule: string, url: string][] = [
      ['', 'http://vendor.example/v1'],
      ['', 'https://localhost:8443/v1'],
      ['', 'https://127.0.0.1/v1'],
      ['', 'https://[::1]:8443/v1'],
      ['*', 'https://vendor.example/v1'],
      ['vendor.example', 'https://vendor.example/v1'],
      ['vendor.example', 'https://eu.vendor.example/v1'],
      ['.vendor.example', 'https://vendor.example/v1'],
      ['*.vendor.example', 'https://eu.vendor.example/v1'],
      ['vendor.example:8443', 'https://vendor.example:8443/v1'],
      ['other.example vendor.example', 'https://vendor.example/v1'],
      ['10.0.0.5', 'https://10.0.0.5/v1'],
      ['10.0.0.0/8', 'https://10.1.2.3/v1'],
      ['fd00::/8', 'https://[fd12::1]/v1'],
      ['[fd12::1]', 'https://[fd12::1]/v1'],
    ];
    const proxieds: readonly [rule: string, url: string][] = [
      ['', 'https://vendor.example/v1'],
      ['endor.example', 'https://vendor.example/v1'],
      ['vendor.example:444', 'https://vendor.example/v1'],
      ['10.0.0.0/8', 'https://11.1.2.3/v1'],
      ['10.0.0.0/99', 'https://10.1.2.3/v1'],
      ['fd00::/8', 'https://10.1.2.3/v1'],
    ];
    const settings = (rule: string) => readConfig({ HTTPS_PROXY: proxy, NO_PROXY: rule }).proxy as ProxySettings;
    for (const [rule, url] of directs) assert.equal(isProxied(new URL(url), settings(rule)), false, `${rule} ${url}`);
    for (const [rule, url] of proxieds) assert.equal(isProxied(new URL(url), settings(rule)), true, `${rule} ${url}`);
  });
});
