/** Who is signed in to the console. */
export interface Session {
  /** Id of the session itself, by which it is listed and ended. */
  readonly id: string;
  readonly userId: string;
  readonly email: string;
  readonly name: string;
  /** Operators see every account, and change them. */
  readonly role: 'user' | 'operator';
  /** The account whose keys, usage and jobs the user sees. */
  readonly account: string;
}
