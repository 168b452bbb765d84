/** Who is signed in to the console. */
export interface Session {
  /** Id of the session itself, by which it is listed and ended. */
  readonly id: string;
  readonly userId: string;
  readonly email: string;
  readonly name: string;
  /** Operators see every account, and change them; one who still needs an authenticator is a user until then. */
  readonly role: 'user' | 'operator';
  /** Whether codes of an authenticator are asked for at sign-in: `required` of an operator who has none yet. */
  readonly authenticator: 'on' | 'off' | 'required';
  /** The account whose keys, usage and jobs the user sees. */
  readonly account: string;
}
