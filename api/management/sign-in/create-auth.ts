import { type Auth, type BetterAuthOptions, betterAuth, type GenericEndpointContext } from 'better-auth';
import { APIError, createAuthMiddleware } from 'better-auth/api';
import { genericOAuth, twoFactor } from 'better-auth/plugins';
import { ensureAccount, newAccountId } from '../../../shared/accounts/accounts.ts';
import { forgetResetLinks, resetLinkOf } from '../../../shared/accounts/reset-link.ts';
import { type OidcSettings, passwordLength } from '../../../shared/config/account-settings.ts';
import type { Config } from '../../../shared/config/config.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import { confirmationMail, knownAddressMail, resetMail } from '../mail/account-mails.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { AttemptLimits } from './attempt-limits.ts';
import { authPath, clientAddressHeader } from './auth-path.ts';
import { refuseWeakPassword } from './refuse-weak-password.ts';
import { hashedSessionTokens } from './session-tokens.ts';

/** Id of the identity provider, in its callback's path. */
const oidcProvider = 'oidc';

const day = 86_400;

/** Sign-ins by one code, in a time that is longer than it is right. */
const codeUses = { most: 1, windowMs: 120_000 };

/** Mails that ask to confirm one address: whoever signed up with it can have one sent by each sign-in. */
const confirmations = { most: 5, windowMs: 3_600_000 };

export interface AuthContext {
  readonly db: Database;
  readonly config: Config;
  readonly log: Logger;
  /** Returns the secret that signs cookies. @throws ApiError 503 while it is not known */
  readonly secret: () => Buffer;
  /** The base URL of its requests. */
  readonly baseUrl: string;
  /** Origins of all base URLs. */
  readonly origins: readonly string[];
  /** Undefined if no mail is sent. */
  readonly mailer: Mailer | undefined;
  readonly attempts: AttemptLimits;
}

/** The part of better-auth that is used. */
export type GatewayAuth = Auth<BetterAuthOptions>;

/**
 * Creates better-auth over our tables: users, passwords and sessions. Origin (CSRF), fields and rate of its requests are
 * checked beforehand.
 * @param withOidc whether to include the identity provider, whose addresses are then requested at creation
 */
export function createAuth(context: AuthContext, withOidc: boolean): GatewayAuth {
  const { config, baseUrl, mailer, origins, secret } = context;
  const { oidc, isSignUpOpen } = config;
  return betterAuth({
    appName: 'Sluice',
    baseURL: new URL(baseUrl).origin,
    basePath: authPath,
    secret: secret().toString('hex'),
    trustedOrigins: [...origins],
    // `sqlite` selects how values are written, also on Postgres: dates as text, booleans as numbers.
    database: { db: context.db, type: 'sqlite', transaction: true },
    ...tables,
    session: {
      ...tables.session,
      // Counted from the sign-in, regardless of use: then the user has to sign in again.
      expiresIn: 30 * day,
      disableSessionRefresh: true,
      // Looking at a session that is over by this host's clock does not delete it: the clock may be wrong.
      deferSessionRefresh: true,
      // A session of any age may list and end the others.
      freshAge: 0,
    },
    account: { ...tables.account, encryptOAuthTokens: true },
    // Hashed, so that a reader of the database cannot use a reset link. What has expired by this host's clock is not deleted: the
    // clock may be wrong, and all links of all users would go.
    verification: { ...tables.verification, storeIdentifier: 'hashed', disableCleanup: true },
    emailAndPassword: {
      enabled: true,
      disableSignUp: !isSignUpOpen,
      // A sign-up has the same response for known addresses, so the session only starts with the first sign-in.
      autoSignIn: false,
      requireEmailVerification: mailer !== undefined,
      minPasswordLength: passwordLength.min,
      maxPasswordLength: passwordLength.max,
      revokeSessionsOnPasswordReset: true,
      sendResetPassword: async ({ user, token }) => mailResetLink(context, user, token),
      onExistingUserSignUp: async ({ user }) => mailer?.send(knownAddressMail(user.email, baseUrl)),
      // Somebody else may have requested or read the others.
      onPasswordReset: ({ user }) => forgetResetLinks(context.db, user.id),
    },
    emailVerification: {
      sendOnSignUp: mailer !== undefined,
      sendOnSignIn: mailer !== undefined,
      sendVerificationEmail: async ({ user, token }) => mailConfirmation(context, user.email, token),
    },
    hooks: {
      before: createAuthMiddleware(refuseWeakPassword),
      after: createAuthMiddleware(async ({ path, context: { newSession, session } }) => {
        if (newSession === null) return;
        if (path === '/change-password') await forgetResetLinks(context.db, newSession.user.id);
        // With a session, the authenticator is new, and other sessions may be signed in by the password alone.
        if (path === '/two-factor/verify-totp' && session !== null) {
          await endOthers(context.db, newSession.user.id, newSession.session.id);
        }
        // Who has come by the provider needs no invitation: it may still lie where others can read it.
        if (path === '/callback/:id') await forgetResetLinks(context.db, newSession.user.id);
      }),
    },
    plugins: [
      hashedSessionTokens(),
      authenticators,
      ...(oidc !== undefined && withOidc ? [identityProvider(oidc, baseUrl, isSignUpOpen)] : []),
    ],
    databaseHooks: accountHooks(context),
    advanced: {
      cookiePrefix: 'sluice',
      useSecureCookies: baseUrl.startsWith('https:'),
      disableCSRFCheck: true,
      ipAddress: { ipAddressHeaders: [clientAddressHeader] },
      database: { validateSchema: false },
    },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: quietLogger(context.log),
    onAPIError: { errorURL: `${baseUrl}/console/sign-in` },
  } satisfies BetterAuthOptions) as unknown as GatewayAuth;
}

/** Only operators or the command line make the link of an operator or of a disabled user: nobody can have it sent. */
function mailResetLink({ mailer, baseUrl }: AuthContext, user: object, token: string): void {
  const { email, role, disabled } = user as { email: string; role: string; disabled: boolean };
  if (role !== 'operator' && !disabled) mailer?.send(resetMail(email, resetLinkOf(baseUrl, token)));
}

async function mailConfirmation({ mailer, attempts, baseUrl }: AuthContext, email: string, token: string) {
  if (!(await attempts.allows(`confirmation for ${email}`, confirmations))) return;
  mailer?.send(confirmationMail(email, `${baseUrl}/console/confirm-email?token=${token}`));
}

/** A second factor: codes of an authenticator (TOTP), or one of its backup codes. */
const authenticators = twoFactor({
  issuer: 'Sluice',
  schema: {
    user: { fields: { twoFactorEnabled: 'two_factor_enabled' } },
    twoFactor: {
      modelName: 'two_factors',
      fields: {
        userId: 'user_id',
        backupCodes: 'backup_codes',
        failedVerificationCount: 'failed_verification_count',
        lockedUntil: 'locked_until',
      },
    },
  },
});

async function endOthers(db: Database, userId: string, except: string): Promise<void> {
  await db.deleteFrom('sessions').where('user_id', '=', userId).where('id', '<>', except).execute();
}

/** better-auth's models as our tables. */
const tables = {
  user: {
    modelName: 'users',
    fields: { emailVerified: 'email_verified', createdAt: 'created_at', updatedAt: 'updated_at' },
    additionalFields: {
      role: { type: 'string', input: false, defaultValue: 'user' },
      accountId: { type: 'string', input: false, fieldName: 'account_id' },
      disabled: { type: 'boolean', input: false, defaultValue: false },
    },
  },
  session: {
    modelName: 'sessions',
    fields: {
      userId: 'user_id',
      expiresAt: 'expires_at',
      ipAddress: 'ip_address',
      userAgent: 'user_agent',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
    },
  },
  account: {
    modelName: 'user_accounts',
    fields: {
      userId: 'user_id',
      providerId: 'provider_id',
      accountId: 'provider_account_id',
      accessToken: 'access_token',
      refreshToken: 'refresh_token',
      idToken: 'id_token',
      accessTokenExpiresAt: 'access_token_expires_at',
      refreshTokenExpiresAt: 'refresh_token_expires_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
    },
  },
  verification: {
    modelName: 'verifications',
    fields: { expiresAt: 'expires_at', createdAt: 'created_at', updatedAt: 'updated_at' },
  },
} as const satisfies BetterAuthOptions;

/**
 * A new user gets the id of an account. The account itself is created before the user's first session, by any kind of
 * sign-in, so a crash in between leaves a user who has not signed in yet. It cannot be earlier: the user is created in a
 * transaction, and on SQLite, which has one connection, a second one would deadlock.
 */
function accountHooks({ db, config, attempts }: AuthContext): BetterAuthOptions['databaseHooks'] {
  return {
    user: { create: { before: async (user) => ({ data: { ...user, accountId: newAccountId() } }) } },
    session: {
      create: {
        before: async ({ userId }, call) => {
          await refuseDisabled(userId, call);
          await refuseUsedCode(attempts, userId, call);
        },
        after: async ({ userId }) => {
          const user = await db
            .selectFrom('users')
            .leftJoin('accounts', 'accounts.id', 'users.account_id')
            .select(['users.email', 'users.account_id', 'accounts.id as known_account'])
            .where('users.id', '=', userId)
            .executeTakeFirstOrThrow();
          if (user.known_account !== null) return;
          const credit = { amount: config.signUpCredit, note: 'sign-up', createdBy: userId };
          await ensureAccount(db, { id: user.account_id, name: user.email }, credit);
        },
      },
    },
  };
}

/**
 * Checked before each session, by any kind of sign-in. Uses better-auth's own connection, which may be in a transaction. A
 * session that is created nevertheless is useless (see UserSessions).
 * @throws APIError 403
 */
async function refuseDisabled(userId: string, call: GenericEndpointContext | null): Promise<void> {
  const user = await call?.context.internalAdapter.findUserById(userId);
  if ((user as { disabled?: boolean } | null | undefined)?.disabled !== true) return;
  const message = 'This user is disabled. Ask an operator of this gateway';
  throw APIError.from('FORBIDDEN', { code: 'USER_DISABLED', message });
}

/**
 * Checked before the session of a sign-in by a code of an authenticator: somebody may have seen the code, and it is right
 * for up to 90 s.
 * @throws APIError 400
 */
async function refuseUsedCode(attempts: AttemptLimits, userId: string, call: GenericEndpointContext | null) {
  // With a session it is the first code of a new authenticator.
  if (call?.path !== '/two-factor/verify-totp' || call.context.session !== null) return;
  if (await attempts.allows(`sign-in of ${userId} by code ${call.body.code}`, codeUses)) return;
  const message = 'This code has been used already. Sign in again with the next one';
  throw APIError.from('BAD_REQUEST', { code: 'CODE_USED', message });
}

function identityProvider({ issuer, clientId, clientSecret, name }: OidcSettings, baseUrl: string, isOpen: boolean) {
  return genericOAuth({
    config: [
      {
        providerId: oidcProvider,
        name,
        discoveryUrl: `${issuer}/.well-known/openid-configuration`,
        requireIdTokenVerification: true,
        clientId,
        clientSecret,
        scopes: ['openid', 'email', 'profile'],
        redirectURI: `${baseUrl}${authPath}/callback/${oidcProvider}`,
        disableSignUp: !isOpen,
      },
    ],
  });
}

/** Logs errors without their values, which may be tokens. */
function quietLogger(log: Logger): NonNullable<BetterAuthOptions['logger']> {
  return {
    level: 'error',
    disableColors: true,
    log: (_level, message, ...details) => {
      const error = details.find((detail) => detail instanceof Error);
      log.warn({ ...(error === undefined ? {} : { err: error }) }, `sign-in: ${message}`);
    },
  };
}
