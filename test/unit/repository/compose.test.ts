import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { readConfig, readSettingNotices, settingNames } from '../../../shared/config/config.ts';

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

interface Mount {
  readonly type: string;
  readonly source: string;
  readonly target: string;
  readonly read_only?: boolean;
  readonly bind?: { readonly create_host_path?: boolean };
}

interface Service {
  readonly image?: string;
  readonly build?: { readonly args?: Readonly<Record<string, string>> };
  readonly user?: string;
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly (string | Mount)[];
  readonly env_file?: readonly { readonly path: string; readonly required: boolean }[];
  readonly tmpfs?: readonly string[];
  readonly read_only?: boolean;
  readonly privileged?: boolean;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly mem_limit?: string;
  readonly pids_limit?: number;
  readonly stop_grace_period?: string;
}

/** What a setting of compose comes to with these variables: `${NAME:-default}`, `${NAME:+where it is set}`. */
function resolved(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/(?<!\$)\$\{(\w+)(?::([-+?])([^}]*))?\}/g, (_, name, operator, word) => {
    const value = variables[name] ?? '';
    if (operator === '+') return value === '' ? '' : word;
    return value === '' && operator === '-' ? word : value;
  });
}

/** What it comes to where the operator sets nothing. */
function byDefault(text: string): string {
  return resolved(text, {});
}

/** Bytes of a size as compose and redis.conf write it: 512m, 1gb; NaN where it is none. */
function bytesOf(size: string): number {
  const [, amount, unit = ''] = /^(\d+)([mg])b?$/.exec(size) ?? [];
  return Number(amount) * 1024 ** (unit === 'g' ? 3 : 2);
}

/** A version and a digest, which say exactly what runs: 24.18.0, or 15.14, which is how Postgres counts. */
const exactImage = /^[\w./-]+:\d+\.\d+(\.\d+)?-\w+(-\w+)?@sha256:[0-9a-f]{64}$/;

/** Settings that the image or compose itself has to set. */
const fixed = ['HOST', 'PORT', 'SLUICE_DATA_DIR', 'REDIS_URL', 'SANDBOX_BASE_URL', 'WORKER_PORT'];
/**
 * The sandbox is asked without a key; SLUICE_REDIS_MAXMEMORY is for the Redis service, which has no TLS and evicts nothing; `npm
 * start` alone counts processes; the api does the ledger's work.
 */
const elsewhere = [
  ...['SANDBOX_API_KEY', 'SLUICE_REDIS_MAXMEMORY', 'SLUICE_REDIS_EVICTION', 'REDIS_TLS_CA_CERT_FILE'],
  ...['REDIS_TLS_CERT_FILE', 'REDIS_TLS_KEY_FILE', 'REDIS_TLS_SERVER_NAME'],
  ...['SLUICE_API_PROCESSES', 'SLUICE_WORKER_PROCESSES', 'SLUICE_LEDGER'],
];
/** Read by api processes alone: users, callers, links, the database. What is not listed here every role gets. */
const apisOwn = new Set([
  ...['PUBLIC_URL', 'TRUST_PROXY', 'DATABASE_URL', 'CORS_ORIGINS', 'METRICS_PORT', 'SLUICE_DEFAULT_MODELS'],
  ...['SLUICE_SECRET', 'SLUICE_BOOTSTRAP_KEY', 'SLUICE_API_KEY', 'SLUICE_ADMIN_EMAIL', 'SLUICE_ADMIN_PASSWORD'],
  ...['SLUICE_SIGN_UP', 'SLUICE_SIGN_UP_CREDIT', 'SLUICE_REQUIRE_TOTP', 'SLUICE_CONTACT', 'SMTP_URL', 'MAIL_FROM'],
  ...['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_NAME'],
  ...['SLUICE_MIGRATE_AT_START', 'SLUICE_JOBS_RETENTION_DAYS', 'SLUICE_JOBS_EXPORT'],
  ...['SLUICE_OUTBOX_MEGABYTES', 'SLUICE_SPOOL_MEGABYTES', 'SLUICE_SOCKET_IDLE_SECONDS', 'SLUICE_KEY_SOCKETS'],
  ...['SLUICE_ACCOUNT_UPLOADS_MIB', 'SLUICE_DISK_FLOOR_MIB'],
  ...['SLUICE_MAX_CONNECTIONS', 'SLUICE_ADDRESS_CONNECTIONS', 'SLUICE_WRONG_KEYS_PER_MINUTE'],
  ...['SLUICE_UNREAD_SECONDS', 'SLUICE_UNSENT_MIB', 'SLUICE_LAME_DUCK_SECONDS'],
]);
const ofWorkers = /^WORKER_|^(SLUICE_REGION|HTTPS_PROXY|NO_PROXY)$/;

describe('docker-compose.yml', () => {
  const { services } = parse(read('docker-compose.yml'), { merge: true }) as { services: Record<string, Service> };
  const all = Object.entries(services);

  test('docker-compose.yml gives services no capabilities, no new privileges and a read-only image', () => {
    assert.ok(all.length >= 10);
    for (const [name, service] of all) {
      assert.deepEqual(service.cap_drop, ['ALL'], name);
      assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name);
      assert.equal(service.read_only, true, name);
      assert.ok(service.tmpfs?.includes('/tmp'), name);
      assert.deepEqual([service.cap_add, service.privileged], [undefined, undefined], name);
      // Our own image says it itself.
      if (service.build === undefined) assert.match(service.user ?? 'root', /^(?!root|0)\w+$/, name);
    }
  });

  test('docker-compose.yml limits the memory and the processes of each service', () => {
    for (const [name, service] of all) {
      assert.match(byDefault(service.mem_limit ?? ''), /^\d+[mg]$/, name);
      assert.ok((service.pids_limit ?? 0) > 0, name);
    }
  });

  test('docker-compose.yml pins each image by version and digest, and lets the operator replace it', () => {
    for (const [name, { image = '', build }] of all) {
      const from = build === undefined ? image : (build.args?.NODE_IMAGE ?? '');
      assert.match(byDefault(from), exactImage, name);
      assert.match(from, /^\$\{\w+_IMAGE:-/, name);
    }
  });

  test('docker-compose.yml has no default passwords, and no password on a command line', () => {
    for (const [name, { environment = {}, command = '' }] of all) {
      for (const [setting, value] of Object.entries(environment)) {
        if (/PASSWORD|SECRET|TOKEN|API_KEY|_AUTH$/.test(setting)) {
          assert.equal(byDefault(String(value)), '', `${name}: ${setting}`);
        }
        // Nor inside of a URL.
        assert.doesNotMatch(byDefault(String(value)), /:\/\/[^/@]*:[^/@]+@/, `${name}: ${setting}`);
      }
      assert.doesNotMatch([command].flat().join(' '), /--requirepass|\$\{\w*PASSWORD/, name);
    }
  });

  test('docker-compose.yml starts Redis with the password that all roles use and that the operator must set', () => {
    const { redis, api } = services;
    assert.match(redis?.environment?.REDISCLI_AUTH ?? '', /^\$\{REDIS_PASSWORD:\?/);
    assert.match([redis?.command ?? ''].flat().join('\n'), /^requirepass \$\$\{REDISCLI_AUTH\}$/m);
    for (const [name, { environment, build }] of all) {
      if (build === undefined || name === 'sandbox') continue;
      assert.match(environment?.REDIS_URL ?? '', /^redis:\/\/:\$\{REDIS_PASSWORD:\?[^}]+\}@redis:6379$/, name);
    }
    assert.ok(api !== undefined);
  });

  test("docker-compose.yml sets noeviction and limits Redis to half of its container's memory, since saving may double it", () => {
    const settings = [services.redis?.command ?? ''].flat().join('\n');
    assert.match(settings, /^ *maxmemory-policy noeviction$/m);
    const [, maxMemory = ''] = /^ *maxmemory (\S+)$/m.exec(settings) ?? [];
    const limit = bytesOf(byDefault(maxMemory));
    assert.ok(limit > 0 && 2 * limit <= bytesOf(byDefault(services.redis?.mem_limit ?? '')), maxMemory);
  });

  test('docker-compose.yml publishes no port beyond this machine by default', () => {
    const ports = all.flatMap(([, service]) => service.ports ?? []);
    assert.ok(ports.length > 0);
    for (const port of ports) assert.match(byDefault(port), /^127\.0\.0\.1:/);
  });

  test('docker-compose.yml passes every setting under its own name to each role that reads it, and to no other', () => {
    const roles = all.filter(([, { build }]) => build !== undefined).filter(([name]) => name !== 'sandbox');
    assert.ok(roles.length >= 7);
    for (const [role, { environment = {} }] of roles) {
      const isRead = (name: string) => (role === 'api' ? !ofWorkers.test(name) : !apisOwn.has(name));
      for (const name of settingNames.filter((name) => !fixed.includes(name) && !elsewhere.includes(name))) {
        const said = String(environment[name] ?? '');
        if (!isRead(name)) assert.equal(said, '', `${role} has no use for ${name}`);
        else if (name !== 'SLUICE_CONFIG') assert.match(said, new RegExp(`^\\$\\{${name}:-.*\\}$`), `${role}: ${name}`);
      }
      const unknown = Object.keys(environment).filter((name) => !settingNames.includes(name));
      assert.deepEqual(unknown, [], role);
    }
    for (const name of apisOwn) assert.ok(settingNames.includes(name), name);
  });

  test('docker-compose.yml gives each role valid settings when the operator sets none', () => {
    for (const [role, { environment = {}, build }] of all) {
      if (build === undefined) continue;
      const given = Object.entries(environment).map(([name, value]) => [name, byDefault(String(value))]);
      assert.doesNotThrow(() => readConfig(Object.fromEntries(given)), role);
    }
  });

  test('docker-compose.yml gives each role at least 10 seconds more to stop than it takes at most by its settings', () => {
    const roles = all.filter(([, { build }]) => build !== undefined).filter(([name]) => name !== 'sandbox');
    assert.ok(roles.length >= 7);
    for (const [role, { environment = {}, stop_grace_period: grace = '' }] of roles) {
      const given = Object.entries(environment).map(([name, value]) => [name, byDefault(String(value))]);
      const { lameDuckMs, shutdownMs } = readConfig(Object.fromEntries(given));
      // A worker takes no requests that could be announced to anybody.
      const mostMs = shutdownMs + (role === 'api' ? lameDuckMs : 0);
      const [, seconds] = /^(\d+)s$/.exec(byDefault(grace)) ?? [];
      assert.ok(Number(seconds) * 1000 >= mostMs + 10_000, `${role}: ${byDefault(grace)} for ${mostMs} ms`);
    }
  });

  test('docker-compose.yml mounts the configuration file read-only into each role that reads it, and passes sluice.env', () => {
    for (const [role, { environment = {}, volumes = [], env_file: files = [], build }] of all) {
      if (build === undefined || role === 'sandbox') {
        assert.equal(files.length, 0, role);
        continue;
      }
      const file = volumes.find((volume): volume is Mount => typeof volume !== 'string');
      assert.ok(file !== undefined, role);
      assert.deepEqual([file.type, file.read_only, file.bind], ['bind', true, { create_host_path: false }], role);
      const set = { SLUICE_CONFIG: './sluice.yaml' };
      assert.equal(resolved(file.source, set), './sluice.yaml');
      assert.equal(resolved(String(environment.SLUICE_CONFIG), set), file.target);
      // Nothing is mounted, and nothing is read, where there is none.
      assert.equal(byDefault(file.source), '/dev/null');
      assert.equal(byDefault(String(environment.SLUICE_CONFIG)), '');
      assert.deepEqual(files, [{ path: 'sluice.env', required: false }], role);
    }
  });

  test('the compose files use no variables of their own that look like misspelt settings', () => {
    const texts = ['docker-compose.yml', 'deploy/compose/tls.yml'].map(read).join('\n');
    const names = new Set([...texts.matchAll(/(?<!\$)\$\{(\w+)/g)].map(([, name]) => name as string));
    assert.ok(names.has('SLUICE_DOMAIN') && names.has('SLUICE_BIND'));
    for (const name of names) {
      if (!settingNames.includes(name)) assert.deepEqual(readSettingNotices({ [name]: 'x' }), [], name);
    }
  });

  test('the Dockerfile builds every stage from one pinned base, and does not run as root', () => {
    const dockerfile = read('Dockerfile');
    const base = /^ARG NODE_IMAGE=(.+)$/m.exec(dockerfile)?.[1] ?? '';
    assert.match(base, exactImage);
    for (const [name, { build }] of all) {
      if (build !== undefined) assert.equal(byDefault(build.args?.NODE_IMAGE ?? ''), base, name);
    }
    const stages = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, from]) => from);
    assert.deepEqual(
      stages,
      stages.map(() => ['$', '{NODE_IMAGE}'].join('')),
    );
    assert.match(dockerfile.slice(dockerfile.lastIndexOf('FROM')), /^USER node$/m);
  });
});

describe('deploy/compose/tls.yml', () => {
  const text = read('deploy/compose/tls.yml');
  // Compose's own tag `!reset`, which takes away what the first file says, is not one of YAML's.
  const { services } = parse(text, { logLevel: 'error' }) as { services: Record<string, Service> };
  const { api, proxy } = services;

  test('deploy/compose/tls.yml publishes only the proxy, and moves the metrics to a port that the proxy does not call', () => {
    assert.deepEqual(Object.keys(services).sort(), ['api', 'proxy']);
    assert.match(text, /^ {4}ports: !reset \[\]$/m);
    assert.deepEqual(proxy?.ports, ['80:80', '443:443', '443:443/udp']);
    const set = { SLUICE_DOMAIN: 'ai.example' };
    const environment = Object.entries(api?.environment ?? {}).map(([name, value]) => [name, resolved(value, set)]);
    const config = readConfig({ HOST: '0.0.0.0', ...Object.fromEntries(environment) });
    assert.deepEqual(config.publicUrls, ['https://ai.example']);
    assert.equal(config.trustedProxies, 1);
    assert.ok(config.metricsPort !== undefined && config.metricsPort !== config.port);
  });

  test('deploy/compose/tls.yml gives the proxy no capability except NET_BIND_SERVICE, and pins its image', () => {
    assert.deepEqual([proxy?.cap_drop, proxy?.cap_add], [['ALL'], ['NET_BIND_SERVICE']]);
    assert.deepEqual(proxy?.security_opt, ['no-new-privileges:true']);
    assert.equal(proxy?.read_only, true);
    assert.ok(bytesOf(proxy?.mem_limit ?? '') > 0 && (proxy?.pids_limit ?? 0) > 0);
    assert.match(byDefault(proxy?.image ?? ''), exactImage);
  });
});
