import { z } from 'zod';
import type { AttemptLimit } from './attempt-limits.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A call of better-auth that the gateway offers; its path is a key of `authCalls`. */
export interface AuthCall {
  readonly method: 'GET' | 'POST';
  /** Accepted fields; others are dropped. Undefined: no body. */
  readonly fields?: z.ZodType<Record<string, unknown>>;
  /** Whether it accepts a query; otherwise the query is dropped. */
  readonly hasQuery?: true;
  /** Whether better-auth reads the fields from the query of a GET: a link that a mail program prefetches must do nothing. */
  readonly asQuery?: true;
  /** The response on success, instead of better-auth's. */
  readonly answer?: object;
  /** Path in better-auth, if different. */
  readonly path?: string;
  /** Which sessions it ends. better-auth ends them by tokens, which are never sent out: the gateway ends them by id. */
  readonly end?: 'one' | 'others';
  /** Whether it takes a password: see sign-in-limits.ts. */
  readonly isSignIn?: true;
  /** Whether it asks the identity provider, whose failures and own times are not those of the database. */
  readonly asksProvider?: true;
  /** Limit per network address. */
  readonly perAddress?: AttemptLimit;
  /** Limit per email address. */
  readonly perEmail?: AttemptLimit;
  /** Whether it takes the password of the signed-in user: whoever has a stolen session must not guess it. */
  readonly asksPassword?: true;
}

const email = z.string().trim().toLowerCase().max(254).pipe(z.email());
const name = z.string().trim().min(1).max(100);
/** better-auth has stricter rules; this only bounds what is hashed. */
const password = z.string().max(1000);
/** A code of an authenticator, or a backup code; people type them with spaces. */
const code = z
  .string()
  .max(40)
  .transform((text) => text.replace(/\s/g, ''));
/** A page of our own; better-auth checks it again. */
const page = z.string().max(500).startsWith('/console');

/** The calls of better-auth that are reachable: only those that the console needs, with the fields that it needs. */
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
    asksProvider: true,
    fields: z
      .object({ callbackURL: page.default('/console'), errorCallbackURL: page.default('/console/sign-in') })
      .transform((pages) => ({ ...pages, provider: 'oidc' })),
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/callback/oidc': {
    method: 'GET',
    hasQuery: true,
    asksProvider: true,
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/sign-out': { method: 'POST' },
  '/get-session': { method: 'GET' },
  '/list-sessions': { method: 'GET' },
  '/revoke-session': { method: 'POST', fields: z.object({ id: z.string().max(200) }), end: 'one' },
  '/revoke-other-sessions': { method: 'POST', end: 'others' },
  '/update-user': { method: 'POST', fields: z.object({ name }) },
  '/change-password': {
    method: 'POST',
    // Sessions opened with the old password end with it.
    fields: z
      .object({ currentPassword: password, newPassword: password })
      .transform((passwords) => ({ ...passwords, revokeOtherSessions: true })),
    asksPassword: true,
    perAddress: { most: 30, windowMs: minuteMs },
  },
  // The secret of a new authenticator, which is effective from its first valid code on.
  '/two-factor/enable': {
    method: 'POST',
    fields: z.object({ password }),
    asksPassword: true,
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/two-factor/disable': {
    method: 'POST',
    fields: z.object({ password }),
    asksPassword: true,
    perAddress: { most: 30, windowMs: minuteMs },
  },
  '/two-factor/generate-backup-codes': {
    method: 'POST',
    fields: z.object({ password }),
    asksPassword: true,
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
