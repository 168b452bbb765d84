import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { passwordProblem } from '../../../../api/management/sign-in/password-rules.ts';
import { ConfigError, readConfig } from '../../../../shared/config/config.ts';

describe('password rules', () => {
  const codeOf = (password: string, email?: string): string | undefined => passwordProblem(password, email)?.code;

  test('a new password must have 10 to 128 characters of any kind', () => {
    assert.equal(codeOf('short one'), 'PASSWORD_TOO_SHORT');
    assert.equal(codeOf('quite fine'), undefined);
    assert.equal(codeOf('🐢🐢🐢🐢🐢'), 'PASSWORD_TOO_SHORT', 'characters are counted, not their bytes');
    assert.equal(codeOf(`${'abcdefgh '.repeat(14)}yz`), undefined);
    assert.equal(codeOf(`${'abcdefgh '.repeat(14)}yzx`), 'PASSWORD_TOO_LONG');
    assert.equal(codeOf('nur kleine buchstaben'), undefined, 'no kinds of characters are asked for');
  });

  test('a new password must be none of the commonest 10,000, also with capitals, digits or signs around it', () => {
    for (const password of [
      '1234567890',
      'password1234',
      'qwertyuiop',
      'Password2026!',
      'DRAGON123456',
      '!!!sluice!!!',
    ]) {
      assert.equal(codeOf(password), 'PASSWORD_TOO_COMMON', password);
    }
    for (const password of ['aaaaaaaaaa', 'ababababab', '0101010101'])
      assert.equal(codeOf(password), 'PASSWORD_TOO_COMMON');
    assert.equal(codeOf('dragon of the north'), undefined);
  });

  test("a new password must not be derived from the user's own address", () => {
    const email = 'Lovelace@engines.example';
    for (const password of ['lovelace@engines.example', 'Lovelace1843', 'engines.example', 'xLOVELACEx1']) {
      assert.equal(codeOf(password, email), 'PASSWORD_TOO_PERSONAL', password);
    }
    assert.equal(codeOf('lovelace wrote notes', email), undefined);
    assert.equal(codeOf('ab likes chess', 'ab@x.example'), undefined);
  });
});

describe('sign-up settings', () => {
  const isOpen = (settings: Record<string, string>): boolean => readConfig(settings).isSignUpOpen;

  test('sign-up is open by default when only this machine reaches the gateway', () => {
    for (const settings of [{}, { HOST: 'localhost' }, { HOST: '::1' }, { PUBLIC_URL: 'http://localhost:8080' }]) {
      assert.equal(isOpen(settings), true, JSON.stringify(settings));
    }
  });

  test('sign-up is closed by default when others reach the gateway, unless the operator opens it', () => {
    for (const settings of [
      { HOST: '0.0.0.0' },
      { HOST: '::' },
      { HOST: '192.168.1.5' },
      { PUBLIC_URL: 'https://gateway.example' },
      { TRUST_PROXY: '1' },
    ]) {
      assert.equal(isOpen(settings), false, JSON.stringify(settings));
      assert.equal(isOpen({ ...settings, SLUICE_SIGN_UP: 'open' }), true);
    }
    assert.equal(isOpen({ SLUICE_SIGN_UP: 'closed' }), false);
  });

  test('readConfig rejects incomplete mail settings, a short secret and an unknown SLUICE_REQUIRE_TOTP', () => {
    for (const settings of [
      { SMTP_URL: 'smtp://mail.example' },
      { MAIL_FROM: 'a@example.com' },
      { SMTP_URL: 'http://mail.example', MAIL_FROM: 'a@example.com' },
      { SLUICE_SECRET: 'too short' },
      { SLUICE_REQUIRE_TOTP: 'all' },
    ]) {
      assert.throws(() => readConfig(settings), ConfigError, JSON.stringify(settings));
    }
  });
});
