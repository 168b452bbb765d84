import { readFileSync } from 'node:fs';
import { passwordLength } from '../../../shared/config/account-settings.ts';

/** Why a password is refused; the code has the format of better-auth's. */
export interface PasswordProblem {
  readonly code: 'PASSWORD_TOO_SHORT' | 'PASSWORD_TOO_LONG' | 'PASSWORD_TOO_COMMON' | 'PASSWORD_TOO_PERSONAL';
  readonly message: string;
}

/** Shorter parts of an address are ignored in passwords. */
const shortestName = 4;

let commonPasswords: ReadonlySet<string> | undefined;

/** Read when the first password is chosen: most processes never need it. */
function common(): ReadonlySet<string> {
  if (commonPasswords === undefined) {
    const text = readFileSync(new URL('./common-passwords.txt', import.meta.url), 'utf8');
    // The first paragraph names the source of the list.
    commonPasswords = new Set(
      text
        .slice(text.indexOf('\n\n') + 2)
        .trimEnd()
        .split('\n'),
    );
  }
  return commonPasswords;
}

/**
 * Why a password is refused: too short, one of the 10,000 most common (also with digits and signs around it), of too few
 * different characters, or derived from the user's own address. Undefined if it is acceptable. As in NIST SP 800-63B, there
 * are no rules on kinds of characters.
 * @param email of the user, if known
 */
export function passwordProblem(password: string, email: string | undefined): PasswordProblem | undefined {
  const length = [...password].length;
  if (length < passwordLength.min) {
    return { code: 'PASSWORD_TOO_SHORT', message: `The password must have at least ${passwordLength.min} characters` };
  }
  if (length > passwordLength.max) {
    return { code: 'PASSWORD_TOO_LONG', message: `The password must have at most ${passwordLength.max} characters` };
  }
  const plain = password.toLowerCase();
  if (isCommon(plain)) {
    return { code: 'PASSWORD_TOO_COMMON', message: 'The password is one of those that are guessed first' };
  }
  if (email !== undefined && isOfAddress(plain, email.toLowerCase())) {
    return { code: 'PASSWORD_TOO_PERSONAL', message: 'The password is made of your email address' };
  }
  return undefined;
}

function isCommon(plain: string): boolean {
  if (new Set(plain).size < 4 || common().has(plain)) return true;
  const core = plain.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '');
  return core === 'sluice' || common().has(core);
}

/** Whether only a few characters remain without the address, or a part of it. */
function isOfAddress(plain: string, email: string): boolean {
  const [name = '', host = ''] = email.split('@');
  const parts = [email, name, host, ...host.split('.')].filter((part) => part.length >= shortestName);
  return parts.some((part) => plain.includes(part) && plain.replaceAll(part, '').length < passwordLength.min / 2);
}
