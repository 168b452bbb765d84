import { fromNow } from '../format/time.ts';
import type { RequestError } from './request.ts';

/** What to tell a reader for the codes of the sign-in routes, whose own words are for programs. */
const words: Readonly<Record<string, string>> = {
  invalid_email_or_password: 'The e-mail address or the password is wrong.',
  invalid_password: 'The current password is wrong.',
  invalid_email: 'This is not an e-mail address.',
  invalid_token: 'This link does not work any more.',
  user_already_exists: 'There is an account with this e-mail address already. Sign in with it, or use another address.',
  password_too_short: 'The password is too short. Take at least 8 characters.',
  password_too_long: 'The password is too long. Take at most 128 characters.',
  email_password_sign_up_disabled: 'This gateway takes no new accounts by itself. Ask its operator for one.',
  session_not_fresh: 'You signed in long ago. Sign out and in again to do this.',
};
const sameWords: Readonly<Record<string, string>> = {
  user_already_exists_use_another_email: 'user_already_exists',
};

/** An error of the sign-in routes in words for a reader. */
export function authProblem({ message, status, code = '', retryAfterMs }: RequestError): string {
  if (status !== 429) return words[sameWords[code] ?? code] ?? message;
  const wait = retryAfterMs === undefined ? 'later' : fromNow(Date.now() + retryAfterMs);
  return `There were too many attempts. Try again ${wait}.`;
}
