const words: Record<string, string> = {
  access_denied: 'The identity provider did not let you in.',
  account_not_linked: 'There is already an account with this e-mail address. Sign in with its password.',
  signup_disabled: 'This gateway takes no new accounts. Ask its operator for one.',
  state_mismatch: 'Signing in took too long, or was begun in another window. Please try again.',
};

/** The message for the `error` with which an identity provider redirects back. */
export function oidcProblem(code: string): Error {
  // Anyone who links to this page chooses the code, so no free text is shown.
  const shown = /^[\w.-]{1,40}$/.test(code) ? ` (${code})` : '';
  return new Error(words[code.toLowerCase()] ?? `Signing in with the identity provider failed${shown}.`);
}
