import { z } from 'zod';
import type { AttemptLimit } from './attempt-limits.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A call of better-auth's that the gateway offers; its path is a key of `authCalls`. */
export interface AuthCall {
  readonly method: 'GET' | 'POST';
  /** The fields it takes; others are left out. Undefined: no body. */
  readonly fields?: z.ZodType<Record<string, unknown>>;
  /** Whether it takes a query; of all others none is passed on. */
  readonly hasQuery?: true;
  /** Whether better-auth takes the fields in the query of a GET: a link that a mail program opens by itself must do nothing. */
  readonly asQuery?: true;
  /** What is said when it is done, in place of what better-auth says. */
  readonly answer?: object;
  /** Where better-auth offers it, if not under the same path. */
  readonly path?: string;
  /** Which sessions it ends. better-auth ends them by tokens, which nobody is told: the gateway does it by their ids. */
  readonly end?: 'one' | 'others';
  /** Whether it takes a password: see sign-in-limits.ts. */
  readonly isSignIn?: true;
  /** How often one address may call it. */
  readonly perAddress?: AttemptLimit;
  /** How often it may be called for one email address. */
  readonly perEmail?: AttemptLimit;
}

const email = z.string().trim().toLowerCase().max(254).pipe(z.email());
const name = z.string().trim().min(1).max(100);
/** What better-auth says of it says more; this only bounds what is hashed. */
const password = z.string().max(1000);
/** Of an authenticator, or one of those that stand in for it; people write them with spaces. */
const code = z
  .string()
  .max(40)
  .transform((text) => text.replace(/\s/g, ''));
/** A page of our own; better-auth looks at it again. */
const page = z.string().max(500).startsWith('/console');

/** What of better-auth is reachable: no more than the console needs, with the fields that it needs. */
export const authCalls: Readonly<Record<string, AuthCall>> = {
  '/sign-up/email': {
    method: 'POST',
    fields: z.object({ name, email, password }),
    perAddress: { most: 20, windowMs: hourMs },
    perEmail: { most: 5, windowMs: hourMs },
    answer: { status: true },
  },
  '/sign-in/email': {
    method: 'POST',
    fields: z.object({ email, password, rememberMe: z.boolean().optional() }),
    isSignIn: true,
  },
  '/sign-in/oauth2': {
    method: 'POST',
    path: '/sign-in/social',
    fields: z
      .object({ callbackURL: page.default('/console'), errorCallbackURL: page.default('/console/sign-in') })
      .transform((pages) => ({ ...pages, provider: 'oidc' })),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/callback/oidc': { method: 'GET', hasQuery: true, perAddress: { most: 30, windowMs: minuteMs } },
  '/sign-out': { method: 'POST' },
  '/get-session': { method: 'GET' },
  '/list-sessions': { method: 'GET' },
  '/revoke-session': { method: 'POST', fields: z.object({ id: z.string().max(200) }), end: 'one' },
  '/revoke-other-sessions': { method: 'POST', end: 'others' },
  '/update-user': { method: 'POST', fields: z.object({ name }) },
  '/change-password': {
    method: 'POST',
    // Whoever knew the old password is signed out with it.
    fields: z
      .object({ currentPassword: password, newPassword: password })
      .transform((passwords) => ({ ...passwords, revokeOtherSessions: true })),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  // The secret of a new authenticator; it counts from its first right code on.
  '/two-factor/enable': {
    method: 'POST',
    fields: z.object({ password }),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/two-factor/disable': {
    method: 'POST',
    fields: z.object({ password }),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/two-factor/generate-backup-codes': {
    method: 'POST',
    fields: z.object({ password }),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/two-factor/verify-totp': {
    method: 'POST',
    fields: z.object({ code }),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/two-factor/verify-backup-code': {
    method: 'POST',
    fields: z.object({ code }),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/request-password-reset': {
    method: 'POST',
    fields: z.object({ email }),
    perAddress: { most: 20, windowMs: hourMs },
    perEmail: { most: 5, windowMs: hourMs },
  },
  '/confirm-email': {
    method: 'POST',
    path: '/verify-email',
    fields: z.object({ token: z.string().max(2000) }),
    asQuery: true,
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/reset-password': {
    method: 'POST',
    fields: z.object({ token: z.string().max(200), newPassword: password }),
    perAddress: { most: 30, windowMs: minuteMs },
  },
};
