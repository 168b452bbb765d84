import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { test } from 'node:test';
import { connectRedis, type RedisHandle } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { startRedis } from '../../support/redis.ts';
import { TestAuthority } from '../../support/redis-kinds/certificates.ts';

const { log } = createLogger('silent', 'test');

/** Resolves when it is connected again; the attempts before fail. */
function isReady({ client }: RedisHandle): Promise<void> {
  return new Promise((resolve) => client.once('ready', () => resolve()));
}

test('certificates of Redis and of its clients are renewed without a restart, and half a renewal does no harm', {
  timeout: 30_000,
}, async () => {
  const [before, after] = await Promise.all([TestAuthority.make(), TestAuthority.make()]);
  const client = await before.certify('client');
  const tls = { ca: before.ca, ...(await before.certify('server', ['IP:127.0.0.1'])), asksForCertificate: true };
  const server = await startRedis({ tls });
  let handle: RedisHandle | undefined;
  try {
    const files = { caFile: before.ca, certFile: client.cert, keyFile: client.key };
    handle = await connectRedis(server.url, log, files);
    assert.equal(await handle.client.ping(), 'PONG');
    const renewed = await after.certify('client');
    const renewedServer = await after.certify('server', ['IP:127.0.0.1']);
    // The certificate is there before its key: the last pair stays in use.
    await copyFile(renewed.cert, client.cert);
    const again = isReady(handle);
    await server.restart();
    await again;
    assert.equal(await handle.client.ping(), 'PONG');
    await copyFile(renewed.key, client.key);
    for (const [from, to] of [
      [after.ca, before.ca],
      [renewedServer.cert, tls.cert],
      [renewedServer.key, tls.key],
    ] as const) {
      await copyFile(from, to);
    }
    const third = isReady(handle);
    await server.restart();
    await third;
    assert.equal(await handle.client.ping(), 'PONG');
  } finally {
    await handle?.close();
    await server.stop();
    await Promise.all([before.remove(), after.remove()]);
  }
});
