import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readConfig, readSettingNotices, settingNames } from '../../../../shared/config/config.ts';
import { everyAddressNotice, isEveryAddress, ownBaseUrls } from '../../../../shared/config/own-addresses.ts';
import { settingsComplaint } from '../../../support/settings-complaint.ts';

const sentences = (environment: Record<string, string>) =>
  readSettingNotices(environment).map(({ sentence }) => sentence);

describe('invalid settings', () => {
  it('an invalid setting is reported in one plain sentence with the values it takes', () => {
    const cases: [Record<string, string>, string][] = [
      [{ PORT: 'abc' }, 'PORT must be a whole number from 0 to 65535, not "abc".'],
      [{ PORT: '70000' }, 'PORT must be a whole number from 0 to 65535, not "70000".'],
      [{ PORT: '1.5' }, 'PORT must be a whole number from 0 to 65535, not "1.5".'],
      [{ SLUICE_ACCOUNT_QUEUE_SHARE: '7' }, 'SLUICE_ACCOUNT_QUEUE_SHARE must be a number from 0.001 to 1, not "7".'],
      [{ SLUICE_SANDBOX: 'maybe' }, 'SLUICE_SANDBOX must be auto, on, priced or off, not "maybe".'],
      [{ SLUICE_SIGN_UP: 'yes' }, 'SLUICE_SIGN_UP must be open or closed, not "yes".'],
      [{ SLUICE_SECRET: 'short' }, 'SLUICE_SECRET must have at least 32 characters.'],
      [{ DATABASE_URL: 'mysql://u:p@h/d' }, 'DATABASE_URL must begin with postgres://.'],
      [{ PUBLIC_URL: 'gateway' }, 'PUBLIC_URL must be an address that begins with http:// or https://.'],
      [{ OPENAI_BASE_URL: 'ftp://h' }, 'OPENAI_BASE_URL must be an address that begins with http:// or https://.'],
      [{ OPENAI_API_KEY: 'sk-secret,,' }, 'OPENAI_API_KEY must not have an empty key among its keys.'],
      [{ KLING_API_KEY: 'sk-secret' }, 'KLING_API_KEY must be ACCESS_KEY:SECRET_KEY.'],
      [
        { SLUICE_JOBS_RETENTION_DAYS: '-1' },
        'SLUICE_JOBS_RETENTION_DAYS must be a whole number from 0 to 36500, not "-1".',
      ],
      [
        { SLUICE_JOBS_RETENTION_DAYS: '29' },
        'SLUICE_JOBS_RETENTION_DAYS must be at least SLUICE_RETENTION_DAYS, 30: kept answers need their jobs.',
      ],
      [{ SLUICE_SIGN_UP_CREDIT: '-5' }, 'SLUICE_SIGN_UP_CREDIT must be dollars, such as 5 or 0.50.'],
    ];
    for (const [environment, sentence] of cases) assert.equal(settingsComplaint(environment), sentence);
  });

  it("every invalid setting is reported in the gateway's own words and without its value", () => {
    const secret = 'sk secret/with spaces';
    const refused = settingNames.filter((name) => {
      for (const value of [secret, '-1', 'x'.repeat(1000), ',', '1e999']) {
        const sentence = settingsComplaint({ [name]: value });
        if (sentence === undefined || !sentence.startsWith(name)) continue;
        assert.doesNotMatch(sentence, /invalid|received|too (big|small)|pattern|regex|[<>]=|cannot be used\.$/i, name);
        assert.doesNotMatch(sentence, /secret\/|xxxx/, name);
        assert.match(sentence, /^[A-Z0-9_]+ [^\n]+\.$/, name);
        return true;
      }
      return false;
    });
    assert.ok(refused.length > 60, `only ${refused.length} are refused`);
  });
});

describe('the samplers of OpenTelemetry', () => {
  it('each sampler of the standard is understood, its default too, which ended the start', () => {
    const read = (sampler: string) => {
      const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://h:4318', OTEL_TRACES_SAMPLER: sampler };
      const { tracing } = readConfig({ ...environment, OTEL_TRACES_SAMPLER_ARG: '0.25' });
      return [tracing?.ratio, tracing?.followsCallers];
    };
    assert.deepEqual(read('parentbased_always_on'), [1, true]);
    assert.deepEqual(read('parentbased_always_off'), [0, true]);
    assert.deepEqual(read('parentbased_traceidratio'), [0.25, true]);
    assert.deepEqual(read('always_on'), [1, false]);
    assert.deepEqual(read('always_off'), [0, false]);
    assert.deepEqual(read('traceidratio'), [0.25, false]);
  });
});

describe('names in the environment', () => {
  it("a setting of OpenTelemetry's standard that is not heeded is named, with what to do, where its value asks for something else", () => {
    const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
    const cases: [Record<string, string>, RegExp][] = [
      [
        { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' },
        /^OTEL_EXPORTER_OTLP_TRACES_ENDPOINT has no effect: set OTEL_EXPORTER_OTLP_ENDPOINT, without/,
      ],
      [{ ...traced, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /^OTEL_EXPORTER_OTLP_PROTOCOL has no effect: .* HTTP/],
      [{ ...traced, OTEL_SDK_DISABLED: 'true' }, /^OTEL_SDK_DISABLED has no effect: without OTEL_EXPORTER_OTLP_END/],
      [{ ...traced, OTEL_TRACES_EXPORTER: 'none' }, /^OTEL_TRACES_EXPORTER has no effect: without/],
      [{ ...traced, OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=a' }, /^OTEL_RESOURCE_ATTRIBUTES has no effect/],
    ];
    for (const [environment, expected] of cases) {
      const [sentence = '', ...more] = sentences(environment);
      assert.match(sentence, expected);
      assert.deepEqual(more, []);
    }
    const harmless = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_SDK_DISABLED: 'false',
      OTEL_TRACES_EXPORTER: 'otlp',
    };
    assert.deepEqual(sentences({ ...traced, ...harmless, OTEL_BSP_MAX_QUEUE_SIZE: '100' }), []);
    // Without traces they belong to other programs of the machine.
    assert.deepEqual(sentences({ OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }), []);
  });

  it('a misspelt setting is reported with the nearest valid name', () => {
    const nearest: Record<string, string> = {
      SLUICE_SIGNUP: 'SLUICE_SIGN_UP',
      SLUICE_QUEUE_LIMITS: 'SLUICE_QUEUE_LIMIT',
      SLUICE_DATADIR: 'SLUICE_DATA_DIR',
      WORKER_CONCURENCY_CHAT: 'WORKER_CONCURRENCY_CHAT',
      OPENAI_APIKEY: 'OPENAI_API_KEY',
      OPEN_AI_API_KEY: 'OPENAI_API_KEY',
      OPENAI_BASEURL: 'OPENAI_BASE_URL',
      ANTROPIC_API_KEY: 'ANTHROPIC_API_KEY',
      FAL_APIKEY: 'FAL_API_KEY',
      REDIS_URI: 'REDIS_URL',
      PUBLICURL: 'PUBLIC_URL',
      SLUICE_HOST: 'HOST',
      SLUICE_LOG_LEVEL: 'LOG_LEVEL',
      SLUICE_DATABASE_URL: 'DATABASE_URL',
      SLUICE_OPENAI_API_KEY: 'OPENAI_API_KEY',
    };
    for (const [name, right] of Object.entries(nearest)) {
      const expected = `${name} is not a setting, so it has no effect. Did you mean ${right}?`;
      assert.deepEqual(sentences({ [name]: 'value' }), [expected]);
    }
    // Of a service named sluice Kubernetes has an address here, and never a number.
    assert.deepEqual(sentences({ SLUICE_PORT: '9000' }), [
      'SLUICE_PORT is not a setting, so it has no effect. Did you mean PORT?',
    ]);
    assert.deepEqual(sentences({ SLUICE_NOTHING_LIKE_IT: '1' }), [
      'SLUICE_NOTHING_LIKE_IT is not a setting, so it has no effect.',
    ]);
  });

  it("a vendor's key or address under the name that other programs have for it is reported with the name here", () => {
    const here: Record<string, string> = {
      OPENAI_KEY: 'OPENAI_API_KEY',
      OPENAI_API_BASE: 'OPENAI_BASE_URL',
      ANTHROPIC_TOKEN: 'ANTHROPIC_API_KEY',
      GEMINI_KEY: 'GEMINI_API_KEY',
      FAL_KEY: 'FAL_API_KEY',
      REPLICATE_API_TOKEN: 'REPLICATE_API_KEY',
      RUNWAYML_API_SECRET: 'RUNWAY_API_KEY',
      KLING_ACCESS_KEY: 'KLING_API_KEY',
      AZURE_OPENAI_API_KEY: 'AZURE_API_KEY',
      AZURE_OPENAI_ENDPOINT: 'AZURE_BASE_URL',
      OLLAMA_URL: 'OLLAMA_BASE_URL',
      SLUICE_OPENAI_KEY: 'OPENAI_API_KEY',
    };
    for (const [name, right] of Object.entries(here)) {
      const expected = `${name} is not a setting, so it has no effect. Did you mean ${right}?`;
      assert.deepEqual(sentences({ [name]: 'value' }), [expected]);
      if (!name.startsWith('SLUICE_')) assert.deepEqual(sentences({ [name]: 'value', [right]: 'value' }), []);
    }
    // No vendor of these is here.
    const others = { COHERE_KEY: 'k', GITHUB_TOKEN: 'k', HF_TOKEN: 'k', SENTRY_URL: 'u', AWS_SECRET_ACCESS_KEY: 'k' };
    assert.deepEqual(sentences({ ...others, AZURE_CLIENT_SECRET: 'k', OLLAMA_HOST: '0.0.0.0' }), []);
  });

  it('valid, empty and foreign names in the environment are not reported', () => {
    const all = Object.fromEntries(settingNames.map((name) => [name, 'value']));
    assert.deepEqual(sentences(all), []);
    const others = {
      ...{ PATH: '/bin', HOME: '/root', HOSTNAME: 'h', SHELL: 'sh', TERM: 'x', PWD: '/', USER: 'u', LANG: 'C' },
      ...{ NODE_ENV: 'production', NODE_OPTIONS: '', npm_config_port: '1', AWS_PROFILE: 'p', AWS_DEFAULT_REGION: 'r' },
      ...{ COHERE_API_KEY: 'k', GROK_API_KEY: 'k', GOOGLE_API_KEY: 'k', HOSTS: 'h', PORTS: '1' },
      ...{ http_proxy: 'p', HTTP_PROXY: 'p', https_proxy: 'p', no_proxy: 'p', ALL_PROXY: 'p' },
      ...{ SLUICE_SERVICE_HOST: '10.0.0.1', SLUICE_SERVICE_PORT: '8080', SLUICE_PORT: 'tcp://10.0.0.1:8080' },
      ...{ SLUICE_SERVICE_PORT_HTTP: '8080', SLUICE_PORT_8080_TCP_PORT: '8080', SLUICE_PORT_8080_TCP_ADDR: '10.0.0.1' },
      ...{ SLUICE_PORT_8080_TCP_PROTO: 'tcp', SLUICE_BIND: '0.0.0.0' },
      ...{ SLUICE_TEST_NODE: '22', SLUICE_UNKNOWN_BUT_EMPTY: '' },
    };
    assert.deepEqual(sentences(others), []);
    // The right one is there, too.
    assert.deepEqual(sentences({ OPENAI_API_KEY: 'k', OPENAI_APIKEY: 'k' }), []);
  });

  it('variables that the configuration file uses are not reported', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-test-notices-'));
    try {
      const file = join(folder, 'sluice.yaml');
      writeFileSync(file, 'vendors: { openai: { api_keys: ["$'.concat('{OPENAI_APIKEY}"] } }'));
      assert.deepEqual(sentences({ SLUICE_CONFIG: file, OPENAI_APIKEY: 'k', OPENAI_API_KEYS: 'k' }), [
        'OPENAI_API_KEYS is not a setting, so it has no effect. Did you mean OPENAI_API_KEY?',
      ]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('docs/configuration.md lists every setting', () => {
    const table = readFileSync(new URL('../../../../docs/configuration.md', import.meta.url), 'utf8');
    const missing = settingNames.filter((name) => !/_(API_KEY|BASE_URL)$/.test(name) && !table.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });
});

describe('a gateway that listens on every address', () => {
  it('a gateway on every address has loopback base URLs, and none that nobody can open', () => {
    for (const host of ['0.0.0.0', '::', '0', '::0', '0:0:0:0:0:0:0:0']) {
      const urls = ownBaseUrls({ publicUrls: [], host, port: 8080 });
      assert.ok(urls.includes('http://127.0.0.1:8080') && urls.includes('http://localhost:8080'), host);
      assert.equal(urls.includes('http://[::1]:8080'), host.includes(':'));
      for (const url of urls) assert.equal(isEveryAddress(new URL(url).hostname.replace(/^\[|\]$/g, '')), false, url);
      assert.match(everyAddressNotice({ publicUrls: [], host, port: 8080 }) ?? '', /127\.0\.0\.1:8080.*Set PUBLIC_URL/);
    }
  });

  it('a gateway with PUBLIC_URL or a single address uses only that', () => {
    const publicUrls = ['https://a.example', 'https://b.example'];
    assert.deepEqual(ownBaseUrls({ publicUrls, host: '0.0.0.0', port: 1 }), publicUrls);
    assert.equal(everyAddressNotice({ publicUrls, host: '0.0.0.0', port: 1 }), undefined);
    for (const [host, url] of [
      ['127.0.0.1', 'http://127.0.0.1:1'],
      ['::1', 'http://[::1]:1'],
      ['gateway.example', 'http://gateway.example:1'],
    ] as const) {
      assert.deepEqual(ownBaseUrls({ publicUrls: [], host, port: 1 }), [url]);
      assert.equal(everyAddressNotice({ publicUrls: [], host, port: 1 }), undefined);
    }
  });
});
