import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { RequestError } from './request.ts';

/** What is done when the session is over: the router sends the reader to the sign-in page. */
let whenSignedOut: () => void = () => {};

/** Says what to do when an answer is 401. */
export function onSignedOut(handler: () => void): void {
  whenSignedOut = handler;
}

function noticeSignedOut(error: Error): void {
  if (error instanceof RequestError && error.status === 401) whenSignedOut();
}

/** A refusal stays one however often it is asked; a fault may pass. */
function isPassing(error: Error): boolean {
  return !(error instanceof RequestError) || error.status === 0 || error.status >= 500;
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noticeSignedOut }),
  mutationCache: new MutationCache({ onError: noticeSignedOut }),
  defaultOptions: {
    queries: { staleTime: 15_000, retry: (failures, error) => failures < 2 && isPassing(error) },
    mutations: { retry: false },
  },
});
