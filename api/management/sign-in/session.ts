/** A console session of a user. */
export interface Session {
  /** Id of the session itself, by which it is listed and ended. */
  readonly id: string;
  readonly userId: string;
  readonly email: string;
  readonly name: string;
  /** Operators see and change every account. An operator without a required authenticator is a user until then. */
  readonly role: 'user' | 'operator';
  /** Whether sign-in asks for a code of an authenticator: `required` of an operator who has none yet. */
  readonly authenticator: 'on' | 'off' | 'required';
  /** The account whose keys, usage and jobs the user sees. */
  readonly account: string;
}
