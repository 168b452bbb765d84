import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readConfig } from '../../../../shared/config/config.ts';
import { describeAddress, parseRedisUrl, type RedisAddress } from '../../../../shared/redis/redis-address.ts';

const node = (host: string, port = 6379) => ({ host, port });

const accepted: Readonly<Record<string, RedisAddress>> = {
  'redis://localhost': { nodes: [node('localhost')], usesTls: false, login: {} },
  'redis.example:7000': { nodes: [node('redis.example', 7000)], usesTls: false, login: {} },
  'rediss://me:p%40ss@h:6380/4?family=6': {
    nodes: [node('h', 6380)],
    usesTls: true,
    login: { username: 'me', password: 'p@ss', db: 4, family: 6 },
  },
  'redis://:secret@[::1]:1': { nodes: [node('::1', 1)], usesTls: false, login: { password: 'secret' } },
  'rediss://:pw@a, rediss://b:2,c': {
    nodes: [node('a'), node('b', 2), node('c')],
    usesTls: true,
    login: { password: 'pw' },
  },
  '/run/redis.sock?password=p%2Fw&db=2': {
    nodes: [],
    path: '/run/redis.sock',
    usesTls: false,
    login: { password: 'p/w', db: 2 },
  },
  'unix:///run/redis.sock': { nodes: [], path: '/run/redis.sock', usesTls: false, login: {} },
  'redis+sentinel://one,two:1/main': {
    nodes: [node('one', 26_379), node('two', 1)],
    sentinel: { masterName: 'main' },
    usesTls: false,
    login: {},
  },
  'rediss+sentinel://me:a%3Ab@one/main/3?sentinel_username=you&sentinel_password=c%26d': {
    nodes: [node('one', 26_379)],
    sentinel: { masterName: 'main', username: 'you', password: 'c&d' },
    usesTls: true,
    login: { username: 'me', password: 'a:b', db: 3 },
  },
};

/** Addresses that name no Redis, with a part of what the operator is told. */
const refused: Readonly<Record<string, RegExp>> = {
  'redis://': /has an address without a host/,
  'http://sEcret@host': /must be redis:/,
  'redis://:sEcret,more@host': /Write , @ \/ \? # in a password as %2C/,
  'redis://host/sEcret': /must be redis:/,
  'redis://sEcret@host?db=x': /name its database by a number/,
  'redis://host,rediss://other:sEcret@host': /all begin with redis:\/\/ or all with rediss:\/\//,
  'redis://:sEcret%ZZ@host': /is followed by no two hexadecimal digits/,
  'rediss://:sEcret@host?ssl_ca_certs=/ca.pem': /not ssl_ca_certs\. Certificates are set by REDIS_TLS_CA_CERT_FILE/,
  'redis://host?sEcret@host': /may have db, username, password, family after its question mark\.$/,
  'redis+sentinel://:sEcret@one,two': /must name the Sentinels and their master/,
  'redis+sentinel://:sE/cret@one/main': /must name the Sentinels and their master/,
  'redis+sentinel://one/main?password=sEcret': /not password\.$/,
};

describe('REDIS_URL', () => {
  for (const [url, address] of Object.entries(accepted)) {
    test(`REDIS_URL ${url} names hosts, login and TLS`, () => {
      assert.deepEqual(parseRedisUrl(url), address);
      assert.doesNotMatch(describeAddress(address), /p@ss|secret|pw|p\/w|a:b|c&d/);
    });
  }

  for (const [url, sentence] of Object.entries(refused)) {
    test(`REDIS_URL ${JSON.stringify(url)} is refused by a sentence that shows none of it`, () => {
      assert.throws(() => parseRedisUrl(url), { name: 'ConfigError', message: sentence });
      assert.throws(
        () => parseRedisUrl(url),
        (error: Error) => !error.message.includes('sEcret'),
      );
    });
  }

  test('settings of TLS to Redis are refused without an address that uses TLS, and a certificate without its key', () => {
    const url = { REDIS_URL: 'rediss://host' };
    const refusedBy = (settings: Record<string, string>, message: RegExp) =>
      assert.throws(() => readConfig(settings), { name: 'ConfigError', message });
    refusedBy(
      { REDIS_URL: 'redis://host', REDIS_TLS_CA_CERT_FILE: 'ca.pem' },
      /REDIS_TLS_CA_CERT_FILE needs a REDIS_URL/,
    );
    refusedBy({ REDIS_TLS_SERVER_NAME: 'name' }, /REDIS_TLS_SERVER_NAME needs a REDIS_URL/);
    refusedBy({ ...url, REDIS_TLS_CERT_FILE: 'cert.pem' }, /must be set together/);
    refusedBy({ ...url, REDIS_TLS_KEY_FILE: 'key.pem' }, /must be set together/);
    assert.equal(readConfig({ ...url, REDIS_TLS_CA_CERT_FILE: 'ca.pem' }).redisTls.caFile, 'ca.pem');
  });
});
