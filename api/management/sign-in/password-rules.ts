import { readFileSync } from 'node:fs';
import { passwordLength } from '../../../shared/config/account-settings.ts';

/** Why a password is refused; the code is in the shape of better-auth's. */
export interface PasswordProblem {
  readonly code: 'PASSWORD_TOO_SHORT' | 'PASSWORD_TOO_LONG' | 'PASSWORD_TOO_COMMON' | 'PASSWORD_TOO_PERSONAL';
  readonly message: string;
}

/** Such a part of an address is too short to say that a password is made of it. */
const shortestName = 4;

let commonPasswords: ReadonlySet<string> | undefined;

/** Read when the first password is chosen: most processes never see one. */
function common(): ReadonlySet<string> {
  if (commonPasswords === undefined) {
    const text = readFileSync(new URL('./common-passwords.txt', import.meta.url), 'utf8');
    // The first paragraph says where the list is from.
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
 * Why nobody may choose a password: too short, one of the commonest 10,000 (with digits and signs around it, too), of hardly
 * any different characters, or made of the user's own address. Undefined: it may be chosen. There are no rules on kinds of
 * characters, as NIST SP 800-63B has it.
 * @param email of the user, where it is known
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

/** Whether nothing but a few characters is left without the address, or a part of it. */
function isOfAddress(plain: string, email: string): boolean {
  const [name = '', host = ''] = email.split('@');
  const parts = [email, name, host, ...host.split('.')].filter((part) => part.length >= shortestName);
  return parts.some((part) => plain.includes(part) && plain.replaceAll(part, '').length < passwordLength.min / 2);
}
