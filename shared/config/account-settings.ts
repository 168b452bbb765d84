import { z } from 'zod';
import { parseDollars } from '../money/cost.ts';
import { ConfigError } from './config-error.ts';
import { address } from './vendor-settings.ts';

const mailServer = z.url({ protocol: /^smtps?$/, error: 'must begin with smtp:// or smtps://' });

/** Allowed length of a password. */
export const passwordLength = { min: 10, max: 128 };

/** Settings of users and their accounts, as environment variables. */
export const accountSettings = {
  SLUICE_ADMIN_EMAIL: z.email('must be an email address').toLowerCase().optional(),
  // The rules of passwords are checked where it is used: an operator who exists keeps another one. It is trimmed, as what follows is,
  // for files of which Secrets are made end with a line feed.
  SLUICE_ADMIN_PASSWORD: z.string().trim().max(128).optional(),
  SLUICE_SIGN_UP: z.enum(['open', 'closed']).optional(),
  SLUICE_REQUIRE_TOTP: z.enum(['nobody', 'operators']).default('nobody'),
  SMTP_URL: mailServer.optional(),
  MAIL_FROM: z.string().max(300).regex(/@/, 'must be an email address').optional(),
  SLUICE_SIGN_UP_CREDIT: z
    .string()
    .transform((text, context): number => {
      const amount = parseDollars(text);
      if (amount !== undefined && amount >= 0) return amount;
      context.addIssue({ code: 'custom', message: 'expected dollars, such as 5 or 0.50' });
      return z.NEVER;
    })
    .default(0),
  SLUICE_CONTACT: z
    .string()
    .max(200)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line')
    .default('Ask the operator of this service.'),
  OIDC_ISSUER: address.optional(),
  OIDC_CLIENT_ID: z.string().trim().optional(),
  OIDC_CLIENT_SECRET: z.string().trim().optional(),
  OIDC_NAME: z.string().max(100).default('single sign-on'),
};

type Given = z.output<z.ZodObject<typeof accountSettings>>;

/** The identity provider for signing in, in addition to passwords. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Label of the button: "Sign in with NAME". */
  readonly name: string;
}

/** The mail server and the sender of mails to users. */
export interface MailSettings {
  /** `smtp://` or `smtps://`; may contain a password. */
  readonly url: string;
  readonly from: string;
}

/** How users and accounts are created. */
export interface AccountSettings {
  /** An operator created at the first start. */
  readonly admin: { readonly email: string; readonly password: string } | undefined;
  /** Whether strangers may register a user and an account. */
  readonly isSignUpOpen: boolean;
  /** Initial credit of such an account, in nano-dollars. */
  readonly signUpCredit: number;
  /** A sentence naming the contact for credit, or for a suspended account. */
  readonly contact: string;
  readonly oidc: OidcSettings | undefined;
  /** Undefined: no mails are sent. */
  readonly mail: MailSettings | undefined;
  /** Whether operators who sign in by a password also need an authenticator. */
  readonly requireTotp: boolean;
}

/**
 * Validates the account settings.
 * @param isLocal whether only this machine can reach the gateway: elsewhere sign-up must be opened explicitly
 * @throws ConfigError naming the settings that belong together.
 */
export function readAccountSettings(given: Given, isLocal: boolean): AccountSettings {
  return {
    admin: readAdmin(given),
    isSignUpOpen: (given.SLUICE_SIGN_UP ?? (isLocal ? 'open' : 'closed')) === 'open',
    signUpCredit: given.SLUICE_SIGN_UP_CREDIT,
    contact: given.SLUICE_CONTACT,
    oidc: readOidc(given),
    mail: readMail(given),
    requireTotp: given.SLUICE_REQUIRE_TOTP === 'operators',
  };
}

function readAdmin({ SLUICE_ADMIN_EMAIL: email, SLUICE_ADMIN_PASSWORD: password }: Given): AccountSettings['admin'] {
  if (email === undefined && password === undefined) return undefined;
  if (email !== undefined && password !== undefined) return { email, password };
  throw new ConfigError('SLUICE_ADMIN_EMAIL and SLUICE_ADMIN_PASSWORD belong together: set both, or none of them.');
}

function readMail({ SMTP_URL: url, MAIL_FROM: from }: Given): MailSettings | undefined {
  if (url === undefined && from === undefined) return undefined;
  if (url !== undefined && from !== undefined) return { url, from };
  throw new ConfigError('SMTP_URL and MAIL_FROM belong together: set both, or none of them.');
}

function readOidc(given: Given): OidcSettings | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret, OIDC_NAME: name } = given;
  if (issuer === undefined && clientId === undefined && clientSecret === undefined) return undefined;
  if (issuer !== undefined && clientId !== undefined && clientSecret !== undefined) {
    return { issuer, clientId, clientSecret, name };
  }
  throw new ConfigError(
    'OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET belong together: set all, or none of them.',
  );
}
