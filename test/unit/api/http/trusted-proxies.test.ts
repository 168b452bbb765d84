import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { BaseUrls } from '../../../../api/http/request-address.ts';
import { ForwardedHeaders } from '../../../../api/http/trusted-proxies.ts';
import { ConfigError, readConfig } from '../../../../shared/config/config.ts';

/** As much of a request as is looked at. */
function requestFrom(remoteAddress: string | undefined, headers: IncomingHttpHeaders): IncomingMessage {
  return { socket: { remoteAddress }, headers } as IncomingMessage;
}

const forwarded = (trust: string): ForwardedHeaders =>
  new ForwardedHeaders(readConfig({ TRUST_PROXY: trust }).trustedProxies);

describe('the client address', () => {
  const chain = { 'x-forwarded-for': '1.1.1.1, 2.2.2.2,10.0.0.9' };
  for (const [trust, remote, headers, client] of [
    ['', '10.0.0.1', chain, '10.0.0.1'],
    ['false', '10.0.0.1', chain, '10.0.0.1'],
    ['0', '10.0.0.1', chain, '10.0.0.1'],
    ['1', '10.0.0.1', chain, '10.0.0.9'],
    ['2', '10.0.0.1', chain, '2.2.2.2'],
    ['9', '10.0.0.1', chain, '1.1.1.1'],
    ['true', '10.0.0.1', chain, '1.1.1.1'],
    ['true', '10.0.0.1', {}, '10.0.0.1'],
    ['10.0.0.0/8', '10.0.0.1', chain, '2.2.2.2'],
    ['10.0.0.0/8', '::ffff:10.0.0.1', chain, '2.2.2.2'],
    ['10.0.0.1', '10.0.0.1', chain, '10.0.0.9'],
    ['10.0.0.2', '10.0.0.1', chain, '10.0.0.1'],
    ['10.0.0.0/8, 2.2.2.2', '10.0.0.1', chain, '1.1.1.1'],
    ['fd00::/8', 'fd00::1', { 'x-forwarded-for': '2001:db8::7' }, '2001:db8::7'],
    ['fd00::/8', '2001:db8::9', { 'x-forwarded-for': '2001:db8::7' }, '2001:db8::9'],
    ['true', '10.0.0.1', { 'x-forwarded-for': '[2001:db8::7]:443' }, '2001:db8::7'],
    ['true', '10.0.0.1', { 'x-forwarded-for': '3.3.3.3:8080' }, '3.3.3.3'],
    ['true', '10.0.0.1', { 'x-forwarded-for': '3.3.3.3, unknown' }, '10.0.0.1'],
    ['true', '10.0.0.1', { 'x-forwarded-for': '' }, '10.0.0.1'],
    ['true', undefined, {}, ''],
  ] as const) {
    it(`TRUST_PROXY=${trust} with a call from ${remote} for ${JSON.stringify(headers)} gives the client ${client}`, () => {
      assert.equal(forwarded(trust).clientAddress(requestFrom(remote, headers)), client);
    });
  }

  it('TRUST_PROXY rejects every other value', () => {
    for (const wrong of [
      'yes',
      '-1',
      '101',
      '10.0.0.0/33',
      '10.0.0.0/',
      'fd00::/129',
      'a.example',
      '10.0.0.1,',
      '1.5',
    ]) {
      assert.throws(
        () => readConfig({ TRUST_PROXY: wrong }),
        (error) => error instanceof ConfigError && error.message.includes('TRUST_PROXY'),
        wrong,
      );
    }
  });
});

describe('the base URL of a request', () => {
  const list = 'https://a.example, https://b.example:8443,http://c.example/sluice/,https://c.example';
  const baseUrls = (trust: string): BaseUrls => {
    const [main, ...others] = readConfig({ PUBLIC_URL: list }).publicUrls as [string, ...string[]];
    return new BaseUrls([main, ...others], forwarded(trust));
  };
  for (const [trust, headers, url] of [
    ['false', { host: 'a.example' }, 'https://a.example'],
    ['false', { host: 'B.example:8443' }, 'https://b.example:8443'],
    ['false', { host: 'b.example' }, 'https://a.example'],
    ['false', { host: 'a.example:443' }, 'https://a.example'],
    ['false', { host: 'evil.example' }, 'https://a.example'],
    ['false', {}, 'https://a.example'],
    ['false', { host: 'evil.example', 'x-forwarded-host': 'b.example:8443' }, 'https://a.example'],
    ['false', { host: 'c.example', 'x-forwarded-proto': 'https' }, 'http://c.example/sluice'],
    ['true', { host: 'api:8080', 'x-forwarded-host': 'b.example:8443' }, 'https://b.example:8443'],
    ['true', { host: 'api:8080', 'x-forwarded-host': 'evil.example' }, 'https://a.example'],
    ['true', { host: 'c.example', 'x-forwarded-proto': 'https' }, 'https://c.example'],
    ['true', { host: 'c.example', 'x-forwarded-proto': 'http' }, 'http://c.example/sluice'],
    ['true', { host: 'c.example', 'x-forwarded-proto': 'javascript' }, 'http://c.example/sluice'],
    ['10.9.9.9', { host: 'a.example', 'x-forwarded-host': 'b.example:8443' }, 'https://a.example'],
  ] as const) {
    it(`TRUST_PROXY=${trust} with ${JSON.stringify(headers)} gives the base URL ${url}`, () => {
      assert.equal(baseUrls(trust).of(requestFrom('10.0.0.1', headers)), url);
    });
  }

  it('BaseUrls returns the only base URL whatever the request says', () => {
    const only = new BaseUrls(['https://a.example'], forwarded('true'));
    assert.equal(only.of(requestFrom('10.0.0.1', { host: 'b.example' })), 'https://a.example');
  });

  it('PUBLIC_URL accepts only web addresses', () => {
    for (const wrong of ['a.example', 'https://a.example,', 'ftp://a.example', 'https://a.example b']) {
      assert.throws(
        () => readConfig({ PUBLIC_URL: wrong }),
        (error) => error instanceof ConfigError && error.message.includes('PUBLIC_URL'),
        wrong,
      );
    }
  });
});
