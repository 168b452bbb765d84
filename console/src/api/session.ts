import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';
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

export const sessionQuery = queryOptions({
  queryKey: ['/session'],
  queryFn: ({ signal }) => request<Session>('GET', '/session', { signal }),
  staleTime: 30_000,
  // Keeps the balance in the header up to date.
  refetchInterval: 60_000,
});

/** The session of a page inside the shell: always present, as the shell's route has loaded it. */
export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}
