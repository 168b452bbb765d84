import type { Redis } from 'ioredis';
import { ConfigError } from '../config/config-error.ts';
import { rightsKey } from './keys.ts';
import { openOnce, type RedisTarget } from './open-redis.ts';
import { describeAddress } from './redis-address.ts';

/** The oldest version with all commands in use. */
const minVersion = '6.2';
/** Of a Cluster: the oldest whose channels each lie on the node of a slot, as keys do. */
const minClusterVersion = '7.0';

/** What the first node that answers says about itself. */
export interface ProbedRedis {
  readonly isCluster: boolean;
}

/**
 * Connects to the nodes of an address in turn until one answers, and checks that it can be used: its kind, its version, and what
 * the user may run.
 * @throws ConfigError that says what is wrong with it and what to do.
 */
export async function probeRedis(target: RedisTarget): Promise<ProbedRedis> {
  const { address } = target;
  const isList = address.sentinel === undefined && address.nodes.length > 1;
  const targets = isList
    ? address.nodes.map((node) => ({ ...target, address: { ...address, nodes: [node] } }))
    : [target];
  let failure: unknown;
  for (const one of targets) {
    try {
      const probed = await probe(one);
      if (!isList || probed.isCluster) return probed;
      throw new ConfigError(
        `Redis at ${describeAddress(one.address)} is no node of a Cluster, so REDIS_URL must name it alone.`,
      );
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      failure ??= error;
    }
  }
  throw failure;
}

/** A node that does not answer, unlike one that answers that it will not do. */
class UnreachableError extends ConfigError {}

async function probe(target: RedisTarget): Promise<ProbedRedis> {
  const redis = openOnce(target);
  const where = `Redis at ${describeAddress(target.address)}`;
  let connectionError: Error | undefined;
  let sentinelError: Error | undefined;
  redis.on('error', (error) => {
    connectionError ??= error;
  });
  // It says why; the error that follows only that no Sentinel has named a master.
  redis.on('sentinelError', (error) => {
    sentinelError = error;
  });
  try {
    await redis.connect();
    // A refused database is not an error of the connection, which would use another one.
    if (connectionError !== undefined) throw connectionError;
    const info = await redis.info();
    const isCluster = /cluster_enabled:1/.test(info);
    requireServer(info, where, isCluster);
    if (target.address.sentinel === undefined) requireMaster(info, where);
    await requireRights(redis, isCluster);
    return { isCluster };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (isRightsError(error)) throw new ConfigError(`${where} ${rightsSentence(error, target.address.login.username)}`);
    const reason = sentinelError ?? connectionError ?? (error as Error);
    throw explained(reason, where, target.address.usesTls);
  } finally {
    redis.disconnect();
  }
}

/** @throws ConfigError for a Sentinel, and for an old version. */
function requireServer(info: string, where: string, isCluster: boolean): void {
  if (/^redis_mode:sentinel/m.test(info)) {
    throw new ConfigError(
      `${where} is a Sentinel: name it, the others and the master as redis+sentinel://host:port,host:port/master.`,
    );
  }
  // Valkey reports the version of Redis with which it is compatible.
  const [, version] = /^redis_version:(\d+\.\d+)/m.exec(info) ?? [];
  const needed = isCluster ? minClusterVersion : minVersion;
  if (version !== undefined && versionNumber(version) < versionNumber(needed)) {
    const kind = isCluster ? 'a Cluster of version' : 'version';
    throw new ConfigError(`${where} is ${kind} ${version}: ${needed} or later is needed.`);
  }
}

/** A version such as 6.2 as a number that grows with it. */
function versionNumber(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 100 + minor;
}

/** @throws ConfigError for a replica, whose every write is refused. Nodes of a Cluster tell where its masters are. */
function requireMaster(info: string, where: string): void {
  if (/cluster_enabled:1/.test(info) || !/^role:slave/m.test(info) || /^slave_read_only:0/m.test(info)) return;
  throw new ConfigError(
    `${where} is a replica, which takes no writes: name its master in REDIS_URL, or Sentinels, which know it (redis+sentinel://).`,
  );
}

/**
 * Commands without effect: at least one of each category that the documented rule of an ACL user allows, and one for its keys
 * and channels. Redis checks rights before anything else, so any other error means that they suffice.
 */
function rightsInUse(isCluster: boolean): readonly (readonly [string, ...string[]])[] {
  return [
    ['time'],
    ['ping'],
    ['exists', rightsKey],
    ['set', rightsKey, '', 'XX'],
    ['multi'],
    ['discard'],
    ['evalsha', '0'.repeat(40), '1', rightsKey],
    ['eval', 'return 1', '1', rightsKey],
    ['bzpopmin', rightsKey, '0.001'],
    ...(isCluster
      ? ([
          ['cluster', 'SLOTS'],
          ['cluster', 'INFO'],
          ['spublish', rightsKey, ''],
          ['ssubscribe', rightsKey],
        ] as const)
      : ([
          ['publish', rightsKey, ''],
          ['subscribe', rightsKey],
        ] as const)),
  ];
}

/** @throws the error of the first command that the user may not run, with the command. */
async function requireRights(redis: Redis, isCluster: boolean): Promise<void> {
  for (const [command, ...args] of rightsInUse(isCluster)) {
    await redis.call(command, ...args).catch((error) => {
      if (isRightsError(error)) throw error;
    });
  }
}

/** An error of ioredis, with the command that it belongs to. */
interface RightsError extends Error {
  readonly command?: { readonly name: string; readonly args: readonly unknown[] };
}

function isRightsError(error: unknown): error is RightsError {
  return error instanceof Error && /^NOPERM /.test(error.message);
}

function rightsSentence({ command, message }: RightsError, user = 'default'): string {
  const subcommand = command?.name === 'cluster' ? ` ${String(command.args[0])}` : '';
  const name = `${command?.name ?? 'a command'}${subcommand}`.toUpperCase();
  return `refuses ${name} to the user ${user} (${message}): give it the rights that docs/guides/redis-services.md lists.`;
}

const needsCertificate =
  'accepts no client without a certificate that it trusts: set REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE';

/** What is wrong, by the code and the message of the error, and what to do. */
const explanations: readonly (readonly [RegExp, string])[] = [
  [
    /\bNOAUTH /,
    'asks for a password: put it into REDIS_URL (redis://:password@host:port, and for Sentinels ?sentinel_password=…)',
  ],
  [/WRONGPASS|invalid password/, 'refuses the user or the password of REDIS_URL'],
  [/max number of clients/, 'has as many connections as its maxclients allows: raise that'],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'has a certificate for another name: use a name of the certificate in REDIS_URL, or set REDIS_TLS_SERVER_NAME to it',
  ],
  [
    /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/,
    'has a certificate that is not trusted: set REDIS_TLS_CA_CERT_FILE to the certificate of its authority',
  ],
  [/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE|UNKNOWN_CA/, needsCertificate],
  [/WRONG_VERSION_NUMBER|PACKET_LENGTH|RECORD_LAYER/, 'does not speak TLS on this port: begin REDIS_URL with redis://'],
  [/SELECT is not allowed/, 'is a Cluster, which has only database 0: name no database in REDIS_URL'],
  [/DB index is out of range/, 'has no database of the number in REDIS_URL'],
  // The client does not say why it could not connect.
  [
    /failed to connect to sentinel .*(Connection is closed|timed out)/,
    'is named by no Sentinel: they are away, or differ in TLS and certificates (rediss+sentinel://, REDIS_TLS_CA_CERT_FILE)',
  ],
  [/No such master|invalid reply: null/, 'is not known to the Sentinels under this name'],
];

/**
 * An error for the operator: what is wrong with the Redis at `where`, and what to do.
 * @param usesTls the address's
 */
export function explained(reason: Error & { readonly code?: string }, where: string, usesTls: boolean): ConfigError {
  const text = `${reason.code ?? ''} ${reason.message}`;
  const known = explanations.find(([pattern]) => pattern.test(text))?.[1];
  const sentence = known ?? silence(text, usesTls) ?? 'cannot be reached';
  return new UnreachableError(`${where} ${sentence} (${reason.message}).`);
}

/** What an error without a reason probably means. */
function silence(text: string, usesTls: boolean): string | undefined {
  if (/Connection is closed|ECONNRESET|EPIPE|socket disconnected/.test(text)) {
    // With TLS 1.3 a server refuses a client after the handshake, and the close may arrive before the reason.
    // At its maxclients a server closes as soon as it has said so, and a command that is sent meanwhile fails before that is read.
    return usesTls
      ? needsCertificate
      : 'closes the connection: if it expects TLS, begin REDIS_URL with rediss://; else look whether it has reached its maxclients';
  }
  // A Redis without TLS waits for the rest of what it takes for a command.
  return usesTls && /ETIMEDOUT/.test(text) ? 'does not answer, or does not speak TLS on this port' : undefined;
}
