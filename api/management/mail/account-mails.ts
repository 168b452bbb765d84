import type { Mail } from './mailer.ts';

/** The mail with a link to choose a new password. */
export function resetMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Choose a new password',
    text: `Somebody, probably you, has asked for a new password for your account with this address.

To choose one, open this link within the hour. It works once:

${link}

If it was not you, there is nothing to do: your password stays as it is.
`,
  };
}

/** The mail that verifies a new user's address. */
export function confirmationMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Confirm your email address',
    text: `Somebody, probably you, signs in with this address. To confirm that it is yours, open this link within the hour:

${link}

If it was not you, do not open it: without it nobody can use your address.
`,
  };
}

/** The mail to a user whose address was used for another sign-up. */
export function knownAddressMail(to: string, baseUrl: string): Mail {
  return {
    to,
    subject: 'You have an account already',
    text: `Somebody, probably you, has tried to sign up with this address, which has an account already.

To sign in: ${baseUrl}/console/sign-in
If you have forgotten your password: ${baseUrl}/console/forgot-password

If it was not you, there is nothing to do.
`,
  };
}
