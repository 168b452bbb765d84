import { MutationCache, notifyManager, QueryCache, QueryClient } from '@tanstack/react-query';
import { RequestError } from './request.ts';

/** Handler for an ended session: the router redirects to the sign-in page. */
let whenSignedOut: () => void = () => {};

/** Sets the handler for a response of 401. */
export function onSignedOut(handler: () => void): void {
  whenSignedOut = handler;
}

/** Codes of a 401 for something else that was given, and is wrong, than the session. */
const wrongCodes: ReadonlySet<string | undefined> = new Set(['invalid_code', 'invalid_backup_code']);

/** Leads to the sign-in page if an error says that the session has ended. */
export function noticeSignedOut(error: Error): void {
  if (error instanceof RequestError && error.status === 401 && !wrongCodes.has(error.code)) whenSignedOut();
}

/** Reads the session again after a refusal for want of rights: what is shown of it, as the pages for operators, is out of date then. */
function noticeLostRights(error: Error): void {
  if (error instanceof RequestError && error.status === 403)
    void queryClient.invalidateQueries({ queryKey: ['/session'] });
}

/** Whether a retry may succeed: after a failure, but not after a refusal. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof RequestError) || error.status === 0 || error.status >= 500;
}

// Shown before the next click or key is handled, which a busy browser does before it runs timers (the default): a button
// that has begun something is off by then.
notifyManager.setScheduler(queueMicrotask);

/**
 * Sends calls, and has them fail, also where the browser says that it is offline (the default holds them): the gateway may be
 * on this machine, and what was held would be done by itself later, when nobody expects it.
 */
const anyNetwork = { networkMode: 'always' } as const;

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey: [path] }) => {
      noticeSignedOut(error);
      // Refused itself, it would be read for ever.
      if (path !== '/session') noticeLostRights(error);
    },
  }),
  mutationCache: new MutationCache({
    onError: (error) => {
      noticeSignedOut(error);
      noticeLostRights(error);
    },
  }),
  defaultOptions: {
    queries: {
      ...anyNetwork,
      staleTime: 15_000,
      refetchOnReconnect: true,
      retry: (failures, error) => failures < 2 && isPassing(error),
    },
    mutations: { ...anyNetwork, retry: false },
  },
});
