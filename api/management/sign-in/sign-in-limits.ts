import type { AttemptLimit, AttemptLimits } from './attempt-limits.ts';

const minuteMs = 60_000;

const perDevice: AttemptLimit = { most: 10, windowMs: 5 * minuteMs };
const perNetwork: AttemptLimit = { most: 30, windowMs: minuteMs };
const perNetworkAndEmail: AttemptLimit = { most: 10, windowMs: 5 * minuteMs };
/** More than one network may take, so that no stranger alone slows others down; and short, so that it is soon over. */
const perEmail: AttemptLimit = { most: 20, windowMs: 3 * minuteMs };

/** Who tries to sign in, and as whom. */
export interface SignInAttempt {
  readonly email: string;
  /** Where the request comes from; see `networkOf`. */
  readonly network: string;
  /** The browser, if that user has signed in with it before. */
  readonly device: string | undefined;
}

/**
 * Counts sign-ins by password. A browser that its user has signed in with before has a counter of its own: no stranger's
 * guesses, wherever they come from, keep it out. Everybody else is counted by network and email address together, by network,
 * and by email address in all, against guesses that come from many networks.
 * @throws ApiError 429 when there were too many.
 */
export async function takeSignIn(attempts: AttemptLimits, attempt: SignInAttempt): Promise<void> {
  const { email, network, device } = attempt;
  if (device !== undefined) return await attempts.take(deviceOf(email, device), perDevice);
  await attempts.take(`sign-in from ${network}`, perNetwork);
  await attempts.take(pairOf(email, network), perNetworkAndEmail);
  await attempts.take(`sign-in as ${email}`, perEmail);
}

/** Only what fails counts against a browser, and against a network and an address: whoever got in begins anew. */
export async function forgetSignIns(attempts: AttemptLimits, attempt: SignInAttempt): Promise<void> {
  const { email, network, device } = attempt;
  await attempts.forget(device === undefined ? pairOf(email, network) : deviceOf(email, device));
}

const deviceOf = (email: string, device: string): string => `sign-in as ${email} by ${device}`;
const pairOf = (email: string, network: string): string => `sign-in as ${email} from ${network}`;
