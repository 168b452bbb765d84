import { fromNow } from '../format/time.ts';
import type { RequestError } from './request.ts';

/** Messages for the codes of the sign-in routes, whose own are meant for programs. */
const messages: Readonly<Record<string, string>> = {
  invalid_email_or_password: 'The email address or the password is wrong.',
  invalid_password: 'The current password is wrong.',
  invalid_email: 'This is not an email address.',
  invalid_token: 'This link no longer works.',
  invalid_code: 'The code is wrong. Codes change every 30 seconds.',
  code_used: 'This code has been used already. Sign in again, and enter the next one that the app shows.',
  invalid_backup_code: 'The backup code is wrong, or was used already.',
  too_many_attempts_request_new_code:
    'There were too many wrong codes. Go back, sign in again, and enter the next code.',
  account_temporarily_locked:
    'There were ten wrong codes in a row: for 15 minutes none is taken, backup codes neither. Sign in again after that.',
  invalid_two_factor_cookie: 'This took too long. Sign in again.',
  email_not_verified: 'Your address is not confirmed yet. Open the link in the mail that was just sent to you.',
  token_expired: 'This link no longer works. Sign in to get another one.',
  password_too_short: 'The password is too short. Take at least 10 characters.',
  password_too_common: 'This password is one of those that are guessed first. Take another one.',
  password_too_personal: 'This password is made of your email address. Take another one.',
  password_too_long: 'The password is too long. Take at most 128 characters.',
  email_password_sign_up_disabled: 'This gateway takes no new accounts by itself. Ask its operator for one.',
  session_not_fresh: 'You signed in long ago. Sign out and in again to do this.',
};

/** A sign-in route's error as a message for the user. */
export function authProblem({ message, status, code = '', retryAfterMs }: RequestError): string {
  const known = messages[code];
  if (status !== 429 || known !== undefined) return known ?? message;
  const wait = retryAfterMs === undefined ? 'later' : fromNow(Date.now() + retryAfterMs);
  return `There were too many attempts. Try again ${wait}.`;
}
