import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import type { RedisTlsSettings } from '../../../shared/config/redis-settings.ts';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { freePort } from '../../support/free-port.ts';
import { startRedis, type TestRedis, type TestRedisOptions } from '../../support/redis.ts';
import { TestAuthority } from '../../support/redis-kinds/certificates.ts';
import { documentedRule } from '../../support/redis-kinds/redis-kinds.ts';
import { startSentinel } from '../../support/redis-kinds/redis-sentinel.ts';

const { log } = createLogger('silent', 'test');

/** What the operator is told of a Redis that cannot be used; undefined: it can. */
async function refusal(url: string, tls: RedisTlsSettings = {}): Promise<string | undefined> {
  try {
    const handle = await connectRedis(url, log, tls);
    await handle.close();
    return undefined;
  } catch (error) {
    assert.equal((error as Error).name, 'ConfigError', (error as Error).stack);
    return (error as Error).message;
  }
}

async function withRedis(options: TestRedisOptions, use: (server: TestRedis) => Promise<void>): Promise<void> {
  const server = await startRedis(options);
  try {
    await use(server);
  } finally {
    await server.stop();
  }
}

/** Commands that are refused to users whose rule lacks one of the documented words, by that word. */
async function refusedWithout(rule: readonly string[], url: string): Promise<Record<string, string | undefined>> {
  const [, ...words] = rule;
  const admin = new Redis(url);
  const refused: Record<string, string | undefined> = {};
  for (const missing of words.filter((word) => /^[~&+]/.test(word))) {
    const user = `without-${words.indexOf(missing)}`;
    await admin.acl('SETUSER', user, ...words.filter((word) => word !== missing));
    const message = await refusal(url.replace('://', `://${user}:secret@`));
    assert.match(
      message ?? '',
      new RegExp(`^Redis at 127\\.0\\.0\\.1:\\d+ refuses [A-Z ]+ to the user ${user} \\(NOPERM `),
    );
    refused[missing] = /refuses ([A-Z ]+) to/.exec(message ?? '')?.[1];
  }
  admin.disconnect();
  return refused;
}

const refusedOnBoth = {
  '~sluice:*': 'EXISTS',
  '+@read': 'EXISTS',
  '+@write': 'SET',
  '+@scripting': 'EVALSHA',
  '+@connection': 'PING',
  '+@transaction': 'MULTI',
  '+info': 'INFO',
  '+time': 'TIME',
};

/** Of a server of a Cluster; its bus would else be at a port 10,000 higher, which outgoing connections may have. */
async function clusterArguments(): Promise<string[]> {
  return ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())];
}

/** A server that answers as one with these facts about itself would, as far as a start asks. */
async function withFacts(facts: string, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const [, command = ''] of chunk.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
        const isInfo = command.toLowerCase() === 'info';
        socket.write(isInfo ? `$${Buffer.byteLength(facts)}\r\n${facts}\r\n` : '+OK\r\n');
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    await use(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.close();
  }
}

describe('a Redis that cannot be used', { concurrency: 3, timeout: 60_000 }, () => {
  test('a Redis that has as many clients as it allows is refused with the name of that setting', async () => {
    await withRedis({ args: ['--maxclients', '1'] }, async ({ url }) => {
      // It connects again while the one that has waited for the start still counts.
      const only = new Redis(url).on('error', () => {});
      try {
        await only.ping();
        assert.match((await refusal(url)) ?? '', /^Redis at \S+ .*maxclients/);
      } finally {
        only.disconnect();
      }
    });
  });

  test('a Redis of before 6.2, and a Cluster of before 7.0, are refused by their version', async () => {
    const said = { one: 'role:master\r\ncluster_enabled:0', cluster: 'role:master\r\ncluster_enabled:1' };
    for (const [facts, expected] of [
      [`redis_version:6.0.16\r\n${said.one}`, /^Redis at \S+ is version 6\.0: 6\.2 or later is needed\.$/],
      [
        `redis_version:6.2.14\r\n${said.cluster}`,
        /^Redis at \S+ is a Cluster of version 6\.2: 7\.0 or later is needed/,
      ],
    ] as const) {
      await withFacts(facts, async (url) => assert.match((await refusal(url)) ?? '', expected));
    }
    for (const facts of [`redis_version:6.2.14\r\n${said.one}`, `redis_version:7.0.15\r\n${said.one}`]) {
      await withFacts(facts, async (url) => assert.equal(await refusal(url), undefined));
    }
  });

  test('each right of the documented ACL rule is needed: without it the start is refused, with the command', async () => {
    await withRedis({}, async ({ url }) => {
      assert.deepEqual(await refusedWithout(documentedRule('single', 'secret'), url), {
        ...refusedOnBoth,
        '&sluice:*': 'PUBLISH',
        '+@pubsub': 'PUBLISH',
      });
    });
  });

  test('each right of the documented ACL rule for a Cluster is needed there', async () => {
    await withRedis({ args: await clusterArguments() }, async ({ url }) => {
      assert.deepEqual(await refusedWithout(documentedRule('cluster', 'secret'), url), {
        ...refusedOnBoth,
        '&sluice:*': 'SPUBLISH',
        '+@pubsub': 'SPUBLISH',
        '+cluster|slots': 'CLUSTER SLOTS',
        '+cluster|info': 'CLUSTER INFO',
      });
    });
  });

  test('a missing or wrong password is told, and no password is shown', async () => {
    await withRedis({ args: ['--requirepass', 'right'] }, async ({ url }) => {
      assert.match((await refusal(url)) ?? '', /asks for a password: put it into REDIS_URL/);
      const wrong = (await refusal(url.replace('://', '://:not-this-one@'))) ?? '';
      assert.match(wrong, /refuses the user or the password of REDIS_URL/);
      assert.doesNotMatch(wrong, /not-this-one/);
    });
  });

  test('a database that Redis does not have is refused instead of using another', async () => {
    await withRedis({}, async ({ url }) => {
      assert.match((await refusal(`${url}/99`)) ?? '', /has no database of the number in REDIS_URL/);
      assert.equal(await refusal(`${url}/15`), undefined);
    });
    await withRedis({ args: await clusterArguments() }, async ({ url }) => {
      assert.match((await refusal(`${url}/1`)) ?? '', /is a Cluster, which has only database 0/);
    });
  });

  test('Sentinels that are away, or do not answer, are passed over', async () => {
    const silent = createServer(() => undefined);
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const sentinel = await startSentinel({ sentinels: 1 });
    try {
      const { port } = silent.address() as AddressInfo;
      const nobody = `127.0.0.1:${await freePort()}`;
      const url = sentinel.url.replace('://', `://${nobody},127.0.0.1:${port},`);
      assert.equal(await refusal(url), undefined);
      assert.match(
        (await refusal(url.replace(sentinel.hosts, nobody))) ?? '',
        /is named by no Sentinel: they are away, or differ in TLS/,
      );
    } finally {
      await sentinel.stop();
      silent.close();
    }
  });

  test('a Cluster whose slots are not all served is refused', async () => {
    await withRedis({ args: await clusterArguments() }, async ({ url }) => {
      assert.match(
        (await refusal(url)) ?? '',
        /^The Cluster at 127\.0\.0\.1:\d+ cannot be reached \(a part of its slots/,
      );
    });
  });

  test('a list of nodes is tried in turn, and refused if it is no Cluster', async () => {
    await withRedis({}, async ({ url }) => {
      const nobody = `redis://127.0.0.1:${await freePort()}`;
      assert.match((await refusal(nobody)) ?? '', /cannot be reached \(connect ECONNREFUSED/);
      assert.match(
        (await refusal(`${nobody},${url}`)) ?? '',
        /is no node of a Cluster, so REDIS_URL must name it alone/,
      );
    });
  });

  test('certificates that do not fit are told with the setting that helps', async () => {
    const [authority, other] = await Promise.all([TestAuthority.make(), TestAuthority.make()]);
    try {
      const tls = { ca: authority.ca, ...(await authority.certify('server', ['DNS:localhost'])) };
      const stranger = await other.certify('stranger');
      await withRedis({ tls: { ...tls, asksForCertificate: true } }, async ({ port }) => {
        const url = `rediss://localhost:${port}`;
        const caFile = authority.ca;
        const needsCertificate = /accepts no client without a certificate that it trusts: set REDIS_TLS_CERT_FILE/;
        assert.match((await refusal(url)) ?? '', /is not trusted: set REDIS_TLS_CA_CERT_FILE/);
        assert.match((await refusal(`rediss://127.0.0.1:${port}`, { caFile })) ?? '', /set REDIS_TLS_SERVER_NAME/);
        assert.match((await refusal(url, { caFile })) ?? '', needsCertificate);
        const files = { caFile, certFile: stranger.cert, keyFile: stranger.key };
        assert.match((await refusal(url, files)) ?? '', needsCertificate);
        const mixed = { caFile, certFile: tls.cert, keyFile: stranger.key };
        assert.match(
          (await refusal(url, mixed)) ?? '',
          /^REDIS_TLS_CA_CERT_FILE, .* cannot be used \(PEM is expected\)/,
        );
        assert.match(
          (await refusal(url, { caFile: '/nowhere' })) ?? '',
          /^REDIS_TLS_CA_CERT_FILE cannot be read: ENOENT/,
        );
        assert.match((await refusal(`redis://localhost:${port}`)) ?? '', /begin REDIS_URL with rediss:\/\//);
      });
      await withRedis({}, async ({ port }) => {
        assert.match(
          (await refusal(`rediss://localhost:${port}`)) ?? '',
          /does not answer, or does not speak TLS on this port/,
        );
      });
    } finally {
      await Promise.all([authority.remove(), other.remove()]);
    }
  });

  test('Sentinels are told apart from Redis, and from masters that they do not know', async () => {
    const sentinel = await startSentinel({ sentinels: 1, sentinelPassword: 'secret' });
    try {
      const { hosts, url } = sentinel;
      assert.match(
        (await refusal(`redis://:secret@${hosts}`)) ?? '',
        /is a Sentinel: name it, the others and the master/,
      );
      assert.match((await refusal(url)) ?? '', /asks for a password/);
      const unknown = `redis+sentinel://${hosts}/nobody?sentinel_password=secret`;
      assert.match((await refusal(unknown)) ?? '', /^Redis at nobody of Sentinel 127.* is not known to the Sentinels/);
      assert.equal(await refusal(`${url}?sentinel_password=secret`), undefined);
    } finally {
      await sentinel.stop();
    }
  });
});
