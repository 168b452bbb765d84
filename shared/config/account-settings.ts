import { z } from 'zod';
import { parseDollars } from '../money/dollars.ts';
import { ConfigError } from './config-error.ts';
import { address } from './vendor-settings.ts';

const mailServer = z.url({ protocol: /^smtps?$/, error: 'must begin with smtp:// or smtps://' });

/** How long a password may be. */
export const passwordLength = { min: 10, max: 128 };

/** The settings of users and their accounts, as the environment names them. */
export const accountSettings = {
  SLUICE_ADMIN_EMAIL: z.email('must be an email address').toLowerCase().optional(),
  SLUICE_ADMIN_PASSWORD: z.string().min(8, 'must have at least 8 characters').max(128).optional(),
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
  OIDC_CLIENT_ID: z.string().optional(),
  OIDC_CLIENT_SECRET: z.string().optional(),
  OIDC_NAME: z.string().max(100).default('single sign-on'),
};

type Given = z.output<z.ZodObject<typeof accountSettings>>;

/** The identity provider by which users may sign in, besides a password. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** What the button says: "Sign in with NAME". */
  readonly name: string;
}

/** Where mails to users go, and whom they are from. */
export interface MailSettings {
  /** `smtp://` or `smtps://`; holds a password, perhaps. */
  readonly url: string;
  readonly from: string;
}

/** How users come to be. */
export interface AccountSettings {
  /** An operator that is there from the first start on. */
  readonly admin: { readonly email: string; readonly password: string } | undefined;
  /** Whether strangers may make themselves a user and an account. */
  readonly isSignUpOpen: boolean;
  /** What such an account begins with, in nano-dollars. */
  readonly signUpCredit: number;
  /** A sentence that says whom to ask: for credit, or why an account is suspended. */
  readonly contact: string;
  readonly oidc: OidcSettings | undefined;
  /** Undefined: nobody is sent a mail. */
  readonly mail: MailSettings | undefined;
  /** Whether operators who sign in by a password need an authenticator, too. */
  readonly requireTotp: boolean;
}

/**
 * @param isLocal whether only this machine reaches the gateway: elsewhere strangers are let in only where that is said
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
