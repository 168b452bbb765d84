import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';
import { request } from './request.ts';

interface SessionUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: 'user' | 'operator';
  /** Whether codes are asked for at sign-in; `required`: an operator who has no rights before that. */
  readonly authenticator: 'on' | 'off' | 'required';
}

/** Who is signed in, and the account whose keys and usage are shown. */
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
  // The balance in the header keeps up with what is spent.
  refetchInterval: 60_000,
});

/** The session of a page inside the shell: there is always one, the shell's route has read it. */
export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}
