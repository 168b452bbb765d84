import { makeInvitation, makeResetLink } from '../../../shared/accounts/reset-link.ts';
import type { Database } from '../../../shared/database/database.ts';
import { BoundedReads } from '../../bounds/bounded-reads.ts';
import type { Context } from '../../state.ts';
import type { AuthContext, GatewayAuth } from './create-auth.ts';
import type { Session } from './session.ts';
import { SessionTurns } from './session-turns.ts';

/** Timeout for reading whether a user has a password. */
const lookUpMs = 2000;
/** The same for ending sessions there. */
const endMs = 10_000;

interface SessionsOptions extends Omit<AuthContext, 'baseUrl' | 'origins'> {
  readonly origins: readonly string[];
  readonly baseUrls: readonly string[];
}

/**
 * better-auth for one base URL, as cookies and callbacks belong to a host. Created on first use: loading it takes half a
 * second and 20 MB, and many api processes never serve the console.
 */
interface Entrance {
  auth: Promise<GatewayAuth> | undefined;
  /** The same with the identity provider, created when somebody signs in by it, so that the provider delays nobody else. */
  withOidc: Promise<GatewayAuth> | undefined;
  readonly context: AuthContext;
}

/** A user as returned by better-auth, with our own fields. */
interface SignedInUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Session['role'];
  readonly accountId: string;
  readonly twoFactorEnabled: boolean;
  readonly disabled: boolean;
}

/** The signed-in users, and everything that better-auth does with users. */
export class UserSessions {
  readonly #db: Database;
  readonly #requiresTotp: boolean;
  readonly #entrances: ReadonlyMap<string, Entrance>;
  readonly #turns: SessionTurns;
  readonly #lookUps = new BoundedReads(lookUpMs, 'Sessions cannot be checked for now.');
  readonly #ends = new BoundedReads(endMs, 'Sessions cannot be ended for now.');

  constructor({ baseUrls, ...shared }: SessionsOptions) {
    this.#db = shared.db;
    this.#requiresTotp = shared.config.requireTotp;
    this.#turns = new SessionTurns(shared.secret);
    this.#entrances = new Map(
      baseUrls.map((baseUrl) => [baseUrl, { auth: undefined, withOidc: undefined, context: { ...shared, baseUrl } }]),
    );
  }

  /**
   * Returns the valid session of a request's cookie, if any. Reads the database each time, so that an ended session is
   * refused at once.
   * @throws ApiError 503 when the database does not respond in time, 429 when too much of the session waits for it.
   */
  async find(ctx: Context, baseUrl: string): Promise<Session | undefined> {
    const cookie = ctx.get('cookie');
    if (cookie === '') return undefined;
    const auth = await this.#auth(baseUrl);
    const lookUp = () => auth.api.getSession({ headers: new Headers({ cookie }), returnHeaders: true });
    const { headers, response } = await this.#turns.run(cookie, lookUp);
    // Nor does the browser lose its cookie, if only this host's clock is ahead.
    if (response === null) return undefined;
    for (const renewed of headers.getSetCookie()) ctx.append('set-cookie', renewed);
    const { session } = response;
    const user = response.user as typeof response.user & SignedInUser;
    return user.disabled ? undefined : await this.#sessionOf(session.id, user);
  }

  async #sessionOf(id: string, user: SignedInUser): Promise<Session> {
    const { email, name, twoFactorEnabled: hasAuthenticator } = user;
    const isLacking =
      this.#requiresTotp && user.role === 'operator' && !hasAuthenticator && (await this.#hasPassword(user.id));
    return {
      ...{ id, userId: user.id, email, name, account: user.accountId },
      role: isLacking ? 'user' : user.role,
      authenticator: isLacking ? 'required' : hasAuthenticator ? 'on' : 'off',
    };
  }

  /** Users who only sign in by an identity provider show a second factor there. */
  async #hasPassword(userId: string): Promise<boolean> {
    const passwords = this.#db.selectFrom('user_accounts').select('id').where('user_id', '=', userId);
    const found = passwords.where('password', 'is not', null);
    return (await this.#lookUps.read(() => found.executeTakeFirst())) !== undefined;
  }

  /**
   * Returns better-auth's response.
   * @param hasLimit whether calls of its kind are limited; others wait for the session's turn
   * @throws ApiError as of `find`
   */
  async answer(baseUrl: string, request: Request, hasLimit: boolean): Promise<Response> {
    const isByOidc = /\/(sign-in\/social|callback\/\w+)$/.test(new URL(request.url).pathname);
    const auth = await this.#auth(baseUrl, isByOidc);
    if (hasLimit) return auth.handler(request);
    return await this.#turns.run(request.headers.get('cookie') ?? '', () => auth.handler(request));
  }

  /** Makes a link by which a user may choose a new password: once, within the hour. */
  async resetLink(baseUrl: string, userId: string): Promise<string> {
    return await makeResetLink(this.#db, baseUrl, userId);
  }

  /** Makes a link by which a user created by an operator may choose the first password: once, within 7 days. */
  async invitation(baseUrl: string, userId: string): Promise<string> {
    return await makeInvitation(this.#db, baseUrl, userId);
  }

  /** Ends a session of a user, or with `except` all others. Sessions of other users are unaffected. */
  async end(userId: string, sessions: { readonly id: string } | { readonly except: string }): Promise<void> {
    const ended = this.#db.deleteFrom('sessions').where('user_id', '=', userId);
    const meant = 'id' in sessions ? ended.where('id', '=', sessions.id) : ended.where('id', '<>', sessions.except);
    await this.#ends.read(() => meant.execute());
  }

  /**
   * Deletes expired sessions and verifications.
   * @param time ms since 1970
   */
  async removeExpired(time: number): Promise<void> {
    const now = new Date(time).toISOString();
    await this.#db.deleteFrom('sessions').where('expires_at', '<', now).execute();
    await this.#db.deleteFrom('verifications').where('expires_at', '<', now).execute();
  }

  #auth(baseUrl: string, withOidc = false): Promise<GatewayAuth> {
    const entrance = this.#entrance(baseUrl);
    // A failed creation would be kept.
    entrance.context.secret();
    const kind = withOidc ? 'withOidc' : 'auth';
    entrance[kind] ??= import('./create-auth.ts').then(({ createAuth }) => createAuth(entrance.context, withOidc));
    return entrance[kind];
  }

  #entrance(baseUrl: string): Entrance {
    const entrance = this.#entrances.get(baseUrl);
    if (entrance === undefined) throw new Error('not a base URL of this gateway');
    return entrance;
  }
}
