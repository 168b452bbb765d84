import { ConfigError } from '../config/config-error.ts';

/** A node of a Redis, or a Sentinel. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** How to log in, and what to choose once logged in. */
interface RedisLogin {
  readonly username?: string;
  readonly password?: string;
  /** Number of the database. */
  readonly db?: number;
  /** 4 or 6: connect by this version of IP only. */
  readonly family?: number;
}

/** A parsed `REDIS_URL`. */
export interface RedisAddress {
  /** At least one: nodes of which any may answer, or the Sentinels; none with a `path`. */
  readonly nodes: readonly RedisNode[];
  /** A Unix socket. */
  readonly path?: string;
  /** The Sentinels' name for the master, and their own login. */
  readonly sentinel?: { readonly masterName: string; readonly username?: string; readonly password?: string };
  readonly usesTls: boolean;
  readonly login: RedisLogin;
}

const redisPort = 6379;
const sentinelPort = 26_379;

const forms =
  'redis://user:password@host:port/database (rediss:// with TLS; nodes of a Cluster with commas between them), redis+sentinel://user:password@host:port,host:port/master/database or the path of a Unix socket';

/** A Sentinel's address lists hosts with commas, which no other URL has. */
const sentinelForm = /^redis(s?)\+sentinel:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^/?#]+)(?:\/(\d+))?\/?(?:\?([^#]*))?$/i;

/**
 * Parses `REDIS_URL`: `redis://`, `rediss://` (several with commas for the nodes of a Cluster), `redis+sentinel://`,
 * `rediss+sentinel://`, or the path of a Unix socket (`/run/redis.sock?password=…&db=1`, also after `unix://`).
 * @throws ConfigError that shows no part of the address, which may contain passwords.
 */
export function parseRedisUrl(text: string): RedisAddress {
  const url = text.trim();
  if (/^rediss?\+sentinel:/i.test(url)) return parseSentinels(url);
  const socket = /^(?:unix:\/\/)?(\/.*)$/i.exec(url)?.[1];
  if (socket !== undefined) return parseSocket(socket);
  return parseNodes(url.split(',').map((node) => node.trim()));
}

/** Hosts and ports of an address, or its socket, without its passwords: for messages. */
export function describeAddress({ nodes, path, sentinel }: RedisAddress): string {
  const hosts = path ?? nodes.map(nodeName).join(',');
  return sentinel === undefined ? hosts : `${sentinel.masterName} of Sentinel ${hosts}`;
}

/** `host:port`. */
export function nodeName({ host, port }: RedisNode): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function parseNodes(nodes: readonly string[]): RedisAddress {
  const scheme = /^rediss?:/i.exec(nodes[0] ?? '')?.[0].toLowerCase() ?? 'redis:';
  const urls = nodes.map((node) => parseUrl(node.includes('://') ? node : `${scheme}//${node}`));
  const first = urls[0] as URL;
  if (urls.some(({ protocol }) => protocol !== scheme)) {
    throw new ConfigError(
      urls.length === 1
        ? `REDIS_URL must be ${forms}.`
        : 'REDIS_URL lists addresses of different kinds: either all begin with redis:// or all with rediss://.',
    );
  }
  const path = /^\/?(\d*)$/.exec(first.pathname)?.[1];
  if (path === undefined) throw new ConfigError(`REDIS_URL must be ${forms}.`);
  const query = readQuery(first.searchParams, ['db', 'username', 'password', 'family']);
  return {
    nodes: urls.map((url) => nodeOf(url, redisPort)),
    usesTls: scheme === 'rediss:',
    login: readLogin(credentialsOf(first), { ...query, ...(path !== '' && { db: path }) }),
  };
}

function parseSocket(text: string): RedisAddress {
  const [path = '', query = ''] = text.split(/\?(.*)/s);
  const options = readQuery(new URLSearchParams(query), ['db', 'username', 'password']);
  return { nodes: [], path, usesTls: false, login: readLogin({}, options) };
}

function parseSentinels(text: string): RedisAddress {
  const match = sentinelForm.exec(text);
  if (match === null) {
    throw new ConfigError(
      'REDIS_URL must name the Sentinels and their master: redis+sentinel://user:password@host:port,host:port/master/database. Write @ / ? # in a password as %40 %2F %3F %23.',
    );
  }
  const [, tls = '', user = '', hosts = '', master = '', db, query = ''] = match;
  const options = readQuery(new URLSearchParams(query), ['family', 'sentinel_username', 'sentinel_password']);
  const { sentinel_username: username, sentinel_password: password } = options;
  return {
    nodes: hosts.split(',').map((host) => nodeOf(parseUrl(`redis://${host.trim()}`), sentinelPort)),
    sentinel: {
      masterName: decoded(master),
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
    },
    usesTls: tls !== '',
    login: readLogin(credentialsOf(parseUrl(`redis://${user}@host`)), { ...options, ...(db !== undefined && { db }) }),
  };
}

function parseUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw new ConfigError(`REDIS_URL must be ${forms}. Write , @ / ? # in a password as %2C %40 %2F %3F %23.`);
  }
}

function nodeOf({ hostname, port }: URL, defaultPort: number): RedisNode {
  if (hostname === '') throw new ConfigError('REDIS_URL has an address without a host.');
  return { host: decoded(hostname).replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) };
}

function credentialsOf({ username, password }: URL): Record<string, string> {
  return {
    ...(username !== '' && { username: decoded(username) }),
    ...(password !== '' && { password: decoded(password) }),
  };
}

/** Options of other clients would silently do nothing: a certificate that is not read, say. */
function readQuery(query: URLSearchParams, names: readonly string[]): Record<string, string> {
  const name = [...query.keys()].find((given) => !names.includes(given));
  if (name !== undefined) {
    const hint = /ssl|tls|cert/i.test(name) ? ' Certificates are set by REDIS_TLS_CA_CERT_FILE and the like.' : '';
    // Anything else may be a part of a password.
    const not = /^[a-z_]{1,30}$/i.test(name) ? `, not ${name}` : '';
    throw new ConfigError(`REDIS_URL may have ${names.join(', ')} after its question mark${not}.${hint}`);
  }
  return Object.fromEntries(query);
}

function readLogin(credentials: Record<string, string>, options: Record<string, string>): RedisLogin {
  const { username, password } = { ...options, ...credentials };
  const { db, family } = options;
  if (db !== undefined && !/^\d{1,6}$/.test(db)) throw new ConfigError('REDIS_URL must name its database by a number.');
  if (family !== undefined && !/^[046]$/.test(family)) {
    throw new ConfigError('REDIS_URL must have 4, 6 or 0 (both) as its family.');
  }
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(db !== undefined && { db: Number(db) }),
    ...(family !== undefined && { family: Number(family) }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ConfigError('REDIS_URL has a % that is followed by no two hexadecimal digits: write it as %25.');
  }
}
