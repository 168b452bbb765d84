import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { ConfigError, readConfig, settingNames } from '../../../../shared/config/config.ts';
import { ownBaseUrls } from '../../../../shared/config/own-addresses.ts';
import { settingsComplaint } from '../../../support/settings-complaint.ts';

describe('values of settings that are no values', () => {
  test('a setting of spaces only is refused by its name, and never means 0 or its default', () => {
    for (const name of settingNames) {
      for (const value of [' ', '\t \n', ' '.repeat(40)]) {
        const sentence = `${name} consists of spaces only: give it a value, or leave it empty.`;
        assert.equal(settingsComplaint({ [name]: value }), sentence);
      }
    }
  });

  test('a setting in quotes, which Docker passes on as they stand, is refused by its name, and never means another folder or key', () => {
    for (const name of settingNames) {
      for (const value of [
        '"a value that is long enough for each"',
        "'a value that is long enough for each'\n",
        '""',
      ]) {
        const sentence = `${name} stands in quotes, which would be a part of it: leave them out.`;
        assert.equal(settingsComplaint({ [name]: value }), sentence);
      }
    }
    const [from, contact] = ['"The gateway" <gateway@a.example>', 'Ask "Bob"'];
    const config = readConfig({ SMTP_URL: 'smtp://mail', MAIL_FROM: from, SLUICE_CONTACT: contact });
    assert.deepEqual([config.mail?.from, config.contact], [from, contact]);
  });

  test('the name of a variable that nothing has replaced is refused in any setting, and is shown', () => {
    for (const name of settingNames) {
      for (const variable of [`\${HOME}`, '$(DB_PASSWORD)']) {
        const sentence = `${name} contains ${variable}, which nothing has replaced: write the value of that variable.`;
        assert.equal(settingsComplaint({ [name]: `postgres://u:${variable}@h/db` }), sentence);
      }
    }
    const contact = `$5 (or \${a}), $(b)`;
    assert.equal(readConfig({ SLUICE_CONTACT: contact }).contact, contact);
  });

  test('white space around a folder is refused, and around what Secrets of files hold it does no harm', () => {
    for (const folder of [' /data', '/data ', '/data\r'])
      assert.equal(
        settingsComplaint({ SLUICE_DATA_DIR: folder }),
        'SLUICE_DATA_DIR must not begin or end with white space.',
      );
    assert.equal(readConfig({ SLUICE_DATA_DIR: '/my data' }).dataDir, '/my data');
    const { admin, oidc } = readConfig({
      SLUICE_ADMIN_EMAIL: 'ada@a.example',
      SLUICE_ADMIN_PASSWORD: 'a long password\n',
      OIDC_ISSUER: 'https://id.example',
      OIDC_CLIENT_ID: 'gateway\n',
      OIDC_CLIENT_SECRET: 'a-secret\r\n',
    });
    assert.deepEqual([admin?.password, oidc?.clientId, oidc?.clientSecret], ['a long password', 'gateway', 'a-secret']);
  });

  test('a key or token that no header can carry is refused by its name, and is not shown', () => {
    const sentence = 'must consist of letters, digits and signs of ASCII, without spaces.';
    for (const name of ['SLUICE_BOOTSTRAP_KEY', 'SLUICE_API_KEY', 'METRICS_TOKEN']) {
      for (const value of ['a-key-that-is-long-enough\n', 'a key that is long enough', '“a-key-that-is-long-enough”']) {
        assert.equal(settingsComplaint({ [name]: value }), `${name} ${sentence}`);
      }
    }
    const ofVendors = 'must be printable characters of ASCII, without spaces, and without quotes around them.';
    const wrong = ['“sk-secret”', 'sk-one,sk-two\u200b', 'sk-one\nsk-two', 'sk-ключ'];
    for (const value of [...wrong, 'sk-one # mine', 'Bearer sk-one', 'sk-one sk-two', 'sk-one,"sk-two"']) {
      assert.equal(settingsComplaint({ OPENAI_API_KEY: value }), `OPENAI_API_KEY ${ofVendors}`);
    }
  });

  test('a setting that may hold a secret is refused without a part of its value, also where that is digits alone', () => {
    const digits = '4815162342481516';
    const secrets = settingNames.filter((name) =>
      /(_KEY|_URL|SECRET|TOKEN|PASSWORD|_ID|ISSUER|PROXY|HEADERS)$/i.test(name),
    );
    for (const name of ['DATABASE_URL', 'REDIS_URL', 'OIDC_CLIENT_SECRET', 'SMTP_URL', 'SLUICE_ADMIN_PASSWORD']) {
      assert.ok(secrets.includes(name), name);
    }
    const forms = ['', 'redis://u:', 'postgres://u:', 'smtp://u:', 'https://u:', 's3://u:'];
    for (const name of secrets) {
      for (const form of forms) {
        for (const end of ['', '@', '@host:x', '@host/?sslmode=x']) {
          const sentence = settingsComplaint({ [name]: `${form}${digits}${end}` });
          assert.doesNotMatch(sentence ?? '', /4815/, name);
        }
      }
    }
  });

  test('a key that is listed twice is one key', () => {
    assert.deepEqual(readConfig({ OPENAI_API_KEY: 'one, two,one' }).vendors.openai?.apiKeys, ['one', 'two']);
  });

  test('a base URL of links has neither a login nor anything behind its path', () => {
    const sentence = 'PUBLIC_URL must be an address without a login, and without ? or # behind it.';
    for (const url of ['https://user:pw@a.example', 'https://a.example/?x=1', 'https://a.example/#top']) {
      assert.equal(settingsComplaint({ PUBLIC_URL: url }), sentence);
      assert.equal(settingsComplaint({ PUBLIC_URL: `https://b.example, ${url}` }), sentence);
    }
  });

  test('a base URL of links is no address that only means all those of the machine', () => {
    const sentence =
      'PUBLIC_URL must be the address that callers use: 0.0.0.0 and :: are only for HOST, and links with them lead nowhere.';
    for (const url of ['http://0.0.0.0:8080', 'http://[::]:8080', 'https://b.example, http://0']) {
      assert.equal(settingsComplaint({ PUBLIC_URL: url }), sentence);
    }
    assert.deepEqual(readConfig({ PUBLIC_URL: 'http://10.0.0.0:8080' }).publicUrls, ['http://10.0.0.0:8080']);
  });

  test('a star in the name of an origin, which stands for no other name here, is refused', () => {
    const sentence = 'CORS_ORIGINS must be *, or origins such as https://a.example with commas between them.';
    for (const origins of ['https://*.a.example', 'https://a.example, http://*', 'https://*:3000'])
      assert.equal(settingsComplaint({ CORS_ORIGINS: origins }), sentence);
    assert.deepEqual(readConfig({ CORS_ORIGINS: 'https://a.example/, *' }).corsOrigins, ['https://a.example', '*']);
  });

  test("a vendor's base URL has neither a login nor anything behind its path, which its calls would be sent without", () => {
    const sentence = 'AZURE_BASE_URL must be an address without a login, and without ? or # behind it.';
    for (const url of [
      'https://mine.openai.azure.com/openai/v1?api-version=preview',
      'https://user:secret@mine.openai.azure.com',
      'https://mine.openai.azure.com/#v1',
    ]) {
      assert.equal(settingsComplaint({ AZURE_API_KEY: 'a-key', AZURE_BASE_URL: url }), sentence);
    }
  });

  test('a vendor that is the gateway itself is refused, under whatever name clients know it, and another one on its host is not', () => {
    const own = { PUBLIC_URL: 'https://a.example/ai,http://localhost:8080', OPENAI_API_KEY: 'a-key' };
    for (const url of ['https://a.example/ai', 'https://a.example/ai/v1/', 'http://127.0.0.1:8080/v1']) {
      assert.equal(
        settingsComplaint({ ...own, OPENAI_BASE_URL: url }),
        `The vendor openai has an address of this gateway, ${url.replace(/\/$/, '')}: each request would come back to it without end. Correct OPENAI_BASE_URL, or its base_url in the configuration file.`,
      );
    }
    for (const url of [
      'https://a.example/v1',
      'https://a.example/ai/vllm/v1',
      'http://127.0.0.1:8081/v1',
      'http://a.example/ai',
    ])
      assert.equal(settingsComplaint({ ...own, OPENAI_BASE_URL: url }), undefined);
  });

  test('a bucket whose prefix or endpoint is no part of a URL is refused in a sentence', () => {
    const prefix = 'The setting BLOBS_URL cannot be used: ';
    for (const endpoint of ['http://:99x', 'http://a b', 'https://h:99999999']) {
      const url = `s3://bucket/?endpoint=${encodeURIComponent(endpoint)}`;
      assert.equal(settingsComplaint({ BLOBS_URL: url }), `${prefix}its endpoint must be an http or https URL.`);
    }
    for (const url of ['s3://bucket/%zz', 's3://id%zz:secret@bucket', 's3://id:secret%@bucket']) {
      const sentence = `${prefix}it has a % that is followed by no two hexadecimal digits: write it as %25.`;
      assert.equal(settingsComplaint({ BLOBS_URL: url }), sentence);
    }
  });

  test('an option of TLS that DATABASE_URL does not have is refused, as it would silently do nothing', () => {
    const refused = ['sslmod=require', 'sslmode=verify_full', 'sslcrl=/crl.pem', 'SSLMODE=require', 'sslmode=Require'];
    for (const option of refused) {
      const sentence = settingsComplaint({ DATABASE_URL: `postgres://u:secret@db/name?application_name=x&${option}` });
      assert.match(
        sentence ?? '',
        /^DATABASE_URL must have of TLS only ssl, sslmode, .* as sslmode one of disable, .*\.$/,
      );
      assert.doesNotMatch(sentence ?? '', /secret|crl/);
    }
    const taken = [
      '',
      '?sslmode=verify-full&sslrootcert=/ca.pem',
      '?host=/run/postgresql',
      '?pgbouncer=true&channel_binding=require',
    ];
    for (const options of taken)
      assert.equal(settingsComplaint({ DATABASE_URL: `postgres://u:p@db/name${options}` }), undefined);
  });

  test('an address to listen on with a scheme, a port or brackets is refused by the name of its setting', () => {
    const sentence =
      'HOST must be an address or a name of this machine, without a scheme, a port or brackets: 0.0.0.0 or ::, say.';
    for (const host of ['http://0.0.0.0', '0.0.0.0:8080', '[::]', '::1]', 'a b', '*', '0.0.0.0/0']) {
      assert.equal(settingsComplaint({ HOST: host }), sentence);
    }
    for (const host of ['0.0.0.0', '::', '::1', 'localhost', 'a-host.example'])
      assert.equal(readConfig({ HOST: host }).host, host);
    assert.equal(readConfig({ HOST: ' 127.0.0.1\n' }).host, '127.0.0.1');
  });

  test('an address of one interface needs PUBLIC_URL, as no URL can name the interface', () => {
    const config = readConfig({ HOST: 'fe80::1%eth0' });
    const sentence =
      'HOST fe80::1%eth0 names an interface, which no URL can: set PUBLIC_URL to the address that callers use.';
    assert.throws(() => ownBaseUrls(config), new ConfigError(sentence));
    const publicUrl = 'http://gateway.local';
    assert.deepEqual(ownBaseUrls(readConfig({ HOST: 'fe80::1%eth0', PUBLIC_URL: publicUrl })), [publicUrl]);
  });

  test("a bucket's credentials are taken without the line feed at the end of their files, and refused if no header can carry them", () => {
    const keys = { BLOBS_URL: 's3://bucket', AWS_ACCESS_KEY_ID: 'AKIA\n', AWS_SECRET_ACCESS_KEY: 'secret\r\n' };
    const { bucket } = readConfig(keys);
    assert.deepEqual(bucket?.credentials, { accessKeyId: 'AKIA', secretAccessKey: 'secret' });
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN']) {
      const sentence = `${name} must be printable characters of ASCII, without spaces.`;
      assert.equal(settingsComplaint({ ...keys, [name]: '“secret”' }), sentence);
    }
  });

  test('spaces around the name of a region do not make another one of it', () => {
    assert.equal(readConfig({ SLUICE_REGION: ' eu ' }).region, 'eu');
  });

  test('the configuration file refuses keys that no header can carry, and has a key that is listed twice once', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-test-values-'));
    try {
      const file = join(folder, 'sluice.yaml');
      const read = (keys: string[]) => {
        writeFileSync(file, JSON.stringify({ vendors: { openai: { api_keys: keys } } }));
        return settingsComplaint({ SLUICE_CONFIG: file });
      };
      assert.match(read(['sk-ключ']) ?? '', /vendors\.openai\.api_keys: expected printable characters of ASCII/);
      assert.doesNotMatch(read(['sk-ключ']) ?? '', /sk-/);
      assert.match(read(['"sk-one"']) ?? '', /without quotes around them/);
      assert.equal(read(['one', 'two', 'one']), undefined);
      assert.deepEqual(readConfig({ SLUICE_CONFIG: file }).vendors.openai?.apiKeys, ['one', 'two']);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
