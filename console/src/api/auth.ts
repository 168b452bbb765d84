import { authProblem } from './auth-problem.ts';
import { queryClient } from './query-client.ts';
import { RequestError, request } from './request.ts';
import { tellOtherTabs } from './session.ts';
import { settingsQuery } from './settings.ts';
import { forgetKept } from './tab-storage.ts';

/** One of the user's own sessions, as the sign-in routes list it. */
export interface ListedSession {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAt: string;
  readonly ipAddress?: string | null;
  readonly userAgent?: string | null;
}

async function post<Answer>(path: string, body: unknown = {}): Promise<Answer> {
  try {
    return await request<Answer>('POST', `/auth${path}`, { body });
  } catch (error) {
    if (error instanceof RequestError) error.message = authProblem(error);
    throw error;
  }
}

/** Clears cached data, which belongs to the previously signed-in user, here and in other tabs. */
async function andForget<Answer>(answer: Promise<Answer>): Promise<Answer> {
  const done = await answer;
  forgetUser();
  return done;
}

function forgetUser(): void {
  // What the sign-in page shows belongs to nobody, and may be loading for it now.
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== settingsQuery.queryKey[0] });
  queryClient.getMutationCache().clear();
  tellOtherTabs();
}

/** Result of a correct password: with `twoFactorRedirect` a code is still required. */
export interface SignedIn {
  readonly twoFactorRedirect?: boolean;
}

export const signIn = (values: { email: string; password: string; rememberMe: boolean }): Promise<SignedIn> =>
  andForget(post('/sign-in/email', values));

/** The second step of a sign-in: a code of the authenticator, or one of the backup codes, which are longer. */
export const giveCode = (code: string): Promise<unknown> =>
  andForget(post(isBackupCode(code) ? '/two-factor/verify-backup-code' : '/two-factor/verify-totp', { code }));

const isBackupCode = (code: string): boolean => !/^[\d\s]*$/.test(code);

/** The setup data of an authenticator, and its backup codes. */
export interface NewAuthenticator {
  readonly totpURI: string;
  readonly backupCodes: readonly string[];
}

export const beginAuthenticator = (password: string): Promise<NewAuthenticator> =>
  post('/two-factor/enable', { password });

/** After its first correct code the authenticator is required at each sign-in. */
export const finishAuthenticator = async (code: string): Promise<void> => {
  await post('/two-factor/verify-totp', { code });
  await queryClient.invalidateQueries();
};

export const removeAuthenticator = async (password: string): Promise<void> => {
  await post('/two-factor/disable', { password });
  await queryClient.invalidateQueries();
};

export const newBackupCodes = (password: string): Promise<{ backupCodes: readonly string[] }> =>
  post('/two-factor/generate-backup-codes', { password });

export const confirmEmail = (token: string): Promise<unknown> => post('/confirm-email', { token });

/** The response does not reveal whether the address is known. */
export const signUp = (values: { name: string; email: string; password: string }): Promise<unknown> =>
  post('/sign-up/email', values);

/**
 * Signs out, and forgets what was typed in the playground.
 * @param leave goes to the sign-in page, before the session is forgotten: a page that shows it would ask for it again
 */
export const signOut = async (leave: () => Promise<void>): Promise<void> => {
  await post('/sign-out');
  forgetKept();
  try {
    await leave();
  } finally {
    forgetUser();
  }
};

/** Returns the identity provider's address, to navigate to. */
export const startOidc = (callbackURL: string): Promise<{ url: string }> =>
  post('/sign-in/oauth2', { callbackURL, errorCallbackURL: '/console/sign-in' });

export const requestPasswordReset = (email: string): Promise<unknown> => post('/request-password-reset', { email });

export const resetPassword = (values: { newPassword: string; token: string }): Promise<unknown> =>
  post('/reset-password', values);

/** All other sessions end with the old password. */
export const changePassword = (values: { currentPassword: string; newPassword: string }): Promise<unknown> =>
  post('/change-password', values);

export const changeName = async (name: string): Promise<void> => {
  await post('/update-user', { name });
  await queryClient.invalidateQueries({ queryKey: ['/session'] });
};

export const listSessions = (signal?: AbortSignal): Promise<readonly ListedSession[]> =>
  request('GET', '/auth/list-sessions', { signal });

/** This browser's session. */
export const currentSession = (signal?: AbortSignal): Promise<{ session: { id: string } } | null> =>
  request('GET', '/auth/get-session', { signal });

export const endSession = (id: string): Promise<unknown> => post('/revoke-session', { id });

const endOtherSessions = (): Promise<unknown> => post('/revoke-other-sessions');

/** Ends every session, this one last. @param leave as of `signOut` */
export const signOutEverywhere = async (leave: () => Promise<void>): Promise<void> => {
  await endOtherSessions();
  await signOut(leave);
};
