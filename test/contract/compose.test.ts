import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parse } from 'yaml';

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

interface Service {
  readonly image?: string;
  readonly build?: { readonly args?: Readonly<Record<string, string>> };
  readonly user?: string;
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly read_only?: boolean;
  readonly privileged?: boolean;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly mem_limit?: string;
  readonly pids_limit?: number;
}

/** What a setting of compose comes to where the operator sets nothing: `${NAME:-default}`. */
function byDefault(text: string): string {
  return text.replace(/(?<!\$)\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g, (_, _name, fallback) => fallback ?? '');
}

/** Bytes of a size as compose and redis.conf write it: 512m, 1gb; NaN where it is none. */
function bytesOf(size: string): number {
  const [, amount, unit = ''] = /^(\d+)([mg])b?$/.exec(size) ?? [];
  return Number(amount) * 1024 ** (unit === 'g' ? 3 : 2);
}

/** A version and a digest, which say exactly what runs: 24.18.0, or 15.14, which is how Postgres counts. */
const exactImage = /^[\w./-]+:\d+\.\d+(\.\d+)?-\w+(-\w+)?@sha256:[0-9a-f]{64}$/;

describe('docker-compose.yml', () => {
  const { services } = parse(read('docker-compose.yml'), { merge: true }) as { services: Record<string, Service> };
  const all = Object.entries(services);

  test('gives no service more rights than it needs: no capabilities, no new privileges, no writing to its image', () => {
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

  test('bounds the memory and the processes of each service', () => {
    for (const [name, service] of all) {
      assert.match(byDefault(service.mem_limit ?? ''), /^\d+[mg]$/, name);
      assert.ok((service.pids_limit ?? 0) > 0, name);
    }
  });

  test('pins each image by version and digest, which the operator can replace', () => {
    for (const [name, { image = '', build }] of all) {
      const from = build === undefined ? image : (build.args?.NODE_IMAGE ?? '');
      assert.match(byDefault(from), exactImage, name);
      assert.match(from, /^\$\{\w+_IMAGE:-/, name);
    }
  });

  test('has no default passwords, and none on a command line that other processes see', () => {
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

  test('starts Redis with the password that the others have, which has to be set', () => {
    const { redis, api } = services;
    assert.match(redis?.environment?.REDISCLI_AUTH ?? '', /^\$\{REDIS_PASSWORD:\?/);
    assert.match([redis?.command ?? ''].flat().join('\n'), /^requirepass \$\$\{REDISCLI_AUTH\}$/m);
    for (const [name, { environment, build }] of all) {
      if (build === undefined || name === 'sandbox') continue;
      assert.match(environment?.REDIS_URL ?? '', /^redis:\/\/:\$\{REDIS_PASSWORD:\?[^}]+\}@redis:6379$/, name);
    }
    assert.ok(api !== undefined);
  });

  test('lets Redis evict nothing, and take at most half of what its container may have: saving may double it', () => {
    const settings = [services.redis?.command ?? ''].flat().join('\n');
    assert.match(settings, /^ *maxmemory-policy noeviction$/m);
    const [, mostMemory = ''] = /^ *maxmemory (\S+)$/m.exec(settings) ?? [];
    const limit = bytesOf(byDefault(mostMemory));
    assert.ok(limit > 0 && 2 * limit <= bytesOf(byDefault(services.redis?.mem_limit ?? '')), mostMemory);
  });

  test('publishes nothing beyond this machine, unless the operator says so', () => {
    const ports = all.flatMap(([, service]) => service.ports ?? []);
    assert.ok(ports.length > 0);
    for (const port of ports) assert.match(byDefault(port), /^127\.0\.0\.1:/);
  });

  test('builds every stage of the image from one exact base, and does not run as root', () => {
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
