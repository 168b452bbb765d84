import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisTlsSettings } from '../../../shared/config/redis-settings.ts';
import { valkeyServer } from '../../valkey/valkey.mjs';
import { type ServerTls, startRedis } from '../redis.ts';
import { startRedisCluster } from '../redis-cluster.ts';
import { type CertificateFiles, TestAuthority } from './certificates.ts';
import { sentinelUser, startSentinel } from './redis-sentinel.ts';

/** A running Redis of one kind. */
export interface StartedRedis {
  /** What `REDIS_URL` takes. */
  readonly url: string;
  readonly tls: RedisTlsSettings;
  stop(): Promise<void>;
}

/** A way to run Redis that a gateway has to work with. */
export interface RedisKind {
  readonly name: string;
  readonly isCluster?: true;
  /** Whether a whole gateway runs on it in every run of the tests; on the others it does in the soak. */
  readonly isAlwaysTried?: true;
  start(): Promise<StartedRedis>;
}

/** The settings by which a gateway uses it. */
export function settingsOf({ url, tls }: StartedRedis): Record<string, string> {
  return {
    REDIS_URL: url,
    ...(tls.caFile !== undefined && { REDIS_TLS_CA_CERT_FILE: tls.caFile }),
    ...(tls.certFile !== undefined && { REDIS_TLS_CERT_FILE: tls.certFile }),
    ...(tls.keyFile !== undefined && { REDIS_TLS_KEY_FILE: tls.keyFile }),
    ...(tls.serverName !== undefined && { REDIS_TLS_SERVER_NAME: tls.serverName }),
  };
}

/** Characters that a URL does not take as they are. */
export const password = 'p@ss/w,ord?#%&';
const encodedPassword = encodeURIComponent(password);

const page = new URL('../../../docs/guides/redis-services.md', import.meta.url);

/**
 * The rule of an ACL user as the documentation gives it, for one Redis or for a Cluster, as the words that follow `ACL SETUSER`.
 * @param password replaces the documented one
 */
export function documentedRule(kind: 'single' | 'cluster', password: string): readonly string[] {
  const rules = [...readFileSync(page, 'utf8').matchAll(/^ACL SETUSER (.+)$/gm)].map(([, rule]) => rule as string);
  const rule = rules.find((text) => text.includes('+cluster|slots') === (kind === 'cluster'));
  if (rule === undefined) throw new Error(`docs/guides/redis-services.md has no rule for ${kind}`);
  return rule.split(' ').map((word) => (word.startsWith('>') ? `>${password}` : word));
}

/** A server's `user` argument from the words of a rule. */
export function userArguments(rule: readonly string[]): string[] {
  return ['--user', ...rule, '--user', 'default', 'off'];
}

const namesOf = { address: ['IP:127.0.0.1'], host: ['DNS:localhost'] };

/** Certificates for a server, by address or by host name, with those of a client. */
async function withCertificates(
  by: keyof typeof namesOf,
  start: (tls: ServerTls, client: CertificateFiles) => Promise<StartedRedis>,
): Promise<StartedRedis> {
  const authority = await TestAuthority.make();
  try {
    const server = await authority.certify('server', namesOf[by]);
    const started = await start({ ca: authority.ca, ...server }, await authority.certify('client'));
    return {
      ...started,
      tls: { caFile: authority.ca, ...started.tls },
      stop: async () => {
        await started.stop();
        await authority.remove();
      },
    };
  } catch (error) {
    await authority.remove();
    throw error;
  }
}

async function startPlain(args: string[], change: (url: string, dir: string) => string): Promise<StartedRedis> {
  const server = await startRedis({ args });
  return { url: change(server.url, server.dir), tls: {}, stop: () => server.stop() };
}

const withUser = (url: string): string => url.replaceAll('://', `://sluice:${encodedPassword}@`);
const withPassword = (url: string): string => url.replaceAll('://', `://:${encodedPassword}@`);

/** Every kind that can be run here. */
export const redisKinds: readonly RedisKind[] = [
  { name: 'one Redis', start: () => startPlain([], (url) => url) },
  { name: 'a Redis with a password', start: () => startPlain(['--requirepass', password], withPassword) },
  { name: 'another database of a Redis', start: () => startPlain([], (url) => `${url}/3`) },
  {
    name: 'a Redis for an ACL user',
    start: () => startPlain(userArguments(documentedRule('single', password)), withUser),
  },
  {
    name: 'the Unix socket of a Redis with a password',
    start: () =>
      startPlain(['--unixsocket', 'redis.sock', '--requirepass', password], (_, dir) => {
        return `${join(dir, 'redis.sock')}?password=${encodedPassword}&db=1`;
      }),
  },
  {
    name: 'a Redis with TLS and a private authority',
    start: () =>
      withCertificates('host', async (tls) => {
        const server = await startRedis({ tls });
        return { url: server.url.replace('127.0.0.1', 'localhost'), tls: {}, stop: () => server.stop() };
      }),
  },
  {
    name: 'a Redis that asks for a client certificate',
    start: () =>
      withCertificates('address', async (tls, client) => {
        const server = await startRedis({ tls: { ...tls, asksForCertificate: true } });
        return { url: server.url, tls: { certFile: client.cert, keyFile: client.key }, stop: () => server.stop() };
      }),
  },
  {
    name: 'a Redis with TLS whose certificate is for another name',
    start: () =>
      withCertificates('host', async (tls) => {
        const server = await startRedis({ tls });
        return { url: server.url, tls: { serverName: 'localhost' }, stop: () => server.stop() };
      }),
  },
  { name: 'a Cluster', isCluster: true, start: async () => ({ ...(await startRedisCluster()), tls: {} }) },
  {
    name: 'a Cluster with TLS and certificates for addresses',
    isCluster: true,
    start: () => withCertificates('address', async (tls) => ({ ...(await startRedisCluster({ tls })), tls: {} })),
  },
  {
    name: 'a Cluster with TLS and certificates for host names, for an ACL user',
    isAlwaysTried: true,
    isCluster: true,
    start: () =>
      withCertificates('host', async (tls) => {
        const args = ['--user', ...documentedRule('cluster', password)];
        const cluster = await startRedisCluster({ tls, announced: 'localhost', args });
        return { url: withUser(cluster.url), tls: {}, stop: () => cluster.stop() };
      }),
  },
  {
    name: 'a master with Sentinels, each with its password, for an ACL user of theirs',
    start: async () => {
      const sentinel = await startSentinel({ sentinels: 1, password: 'server-password', sentinelPassword: 'other' });
      const url = sentinel.url.replace('://', '://:server-password@');
      return {
        url: `${url}/2?sentinel_username=${sentinelUser}&sentinel_password=any`,
        tls: {},
        stop: () => sentinel.stop(),
      };
    },
  },
  {
    name: 'a master with Sentinels and TLS',
    isAlwaysTried: true,
    start: () =>
      withCertificates('address', async (tls) => ({ ...(await startSentinel({ sentinels: 1, tls })), tls: {} })),
  },
  {
    name: 'Valkey for an ACL user',
    isAlwaysTried: true,
    start: async () => {
      const args = userArguments(documentedRule('single', password));
      const server = await startRedis({ program: valkeyServer(), args });
      return { url: withUser(server.url), tls: {}, stop: () => server.stop() };
    },
  },
  {
    name: 'a Cluster of Valkey',
    isCluster: true,
    start: async () => ({ ...(await startRedisCluster({ program: valkeyServer() })), tls: {} }),
  },
  {
    name: 'a master of Valkey with Sentinels',
    start: async () => ({ ...(await startSentinel({ program: valkeyServer(), sentinels: 1 })), tls: {} }),
  },
];
