const words: ReadonlyMap<string, string> = new Map(
  Object.entries({
    access_denied: 'The identity provider did not let you in.',
    account_not_linked: 'There is already an account with this email address. Sign in with its password.',
    signup_disabled: 'This gateway takes no new accounts. Ask its operator for one.',
    user_disabled: 'This user is disabled. Ask an operator of this gateway.',
    state_mismatch: 'Signing in took too long, or was begun in another window. Please try again.',
  }),
);

/** The message for the `error` with which an identity provider redirects back. */
export function oidcProblem(code: string): Error {
  // Anyone who links to this page chooses the code, so no free text is shown.
  const shown = /^[\w.-]{1,40}$/.test(code) ? ` (${code})` : '';
  return new Error(words.get(code.toLowerCase()) ?? `Signing in with the identity provider failed${shown}.`);
}
