import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';
import { queryClient } from './query-client.ts';
import { request } from './request.ts';

interface SessionUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: 'user' | 'operator';
  /** Whether sign-in requires codes; `required`: an operator without rights until one is set up. */
  readonly authenticator: 'on' | 'off' | 'required';
}

/** The signed-in user, and the account whose keys and usage are shown. */
export interface Session {
  readonly user: SessionUser;
  /** `balance` in dollars; null: unlimited. */
  readonly account: {
    readonly id: string;
    readonly name: string;
    readonly balance: number | null;
    readonly suspended: boolean;
  };
}

/** Reads the session. @throws RequestError 401 if nobody is signed in */
export async function readSession({ signal }: { readonly signal: AbortSignal }): Promise<Session> {
  const session = await request<Session>('GET', '/session', { signal });
  // A sign-in by an identity provider ends in a new page, which does not know that it is one.
  tellOtherTabs(session.user.id);
  return session;
}

export const sessionQuery = queryOptions({
  queryKey: ['/session'],
  queryFn: readSession,
  staleTime: 30_000,
  // Keeps the balance in the header up to date.
  refetchInterval: 60_000,
});

/** The other tabs of this browser, which have the same session. */
const otherTabs = new BroadcastChannel('sluice-session');
otherTabs.onmessage = ({ data: user }) => {
  const shown = queryClient.getQueryData(sessionQuery.queryKey)?.user.id;
  if (user !== undefined && (shown === undefined || shown === user)) return;
  // What is shown is read anew, by whoever is signed in now; without a session that leads to the sign-in.
  queryClient.removeQueries({ type: 'inactive' });
  void queryClient.invalidateQueries();
};

/** Makes the other tabs show who is signed in now. @param user if known: tabs that show this user stay as they are */
export function tellOtherTabs(user?: string): void {
  otherTabs.postMessage(user);
}

/** The session of a page inside the shell: always present, as the shell's route has loaded it. */
export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}
