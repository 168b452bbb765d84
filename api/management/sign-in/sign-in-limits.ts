import type { AttemptLimit, AttemptLimits } from './attempt-limits.ts';

const minuteMs = 60_000;

/** In any session of a user, from all networks together. */
const perUser: AttemptLimit = { most: 10, windowMs: 5 * minuteMs };
const perDevice: AttemptLimit = { most: 10, windowMs: 5 * minuteMs };
const perNetwork: AttemptLimit = { most: 30, windowMs: minuteMs };
const perNetworkAndEmail: AttemptLimit = { most: 10, windowMs: 5 * minuteMs };
/** More than the limit of one network, so that no stranger alone locks others out; and short, so that it soon ends. */
const perEmail: AttemptLimit = { most: 20, windowMs: 3 * minuteMs };

/** A sign-in attempt. */
export interface SignInAttempt {
  readonly email: string;
  /** Network of the request; see `networkOf`. */
  readonly network: string;
  /** The browser, if that user has signed in with it before. */
  readonly device: string | undefined;
}

/**
 * Counts sign-ins by password. A browser with an earlier sign-in of its user has a separate counter, so strangers' guesses
 * never lock it out. All others count by network and email address together, by network, and by email address in total,
 * against guesses from many networks.
 * @throws ApiError 429 when there were too many.
 */
export async function takeSignIn(attempts: AttemptLimits, attempt: SignInAttempt): Promise<void> {
  const { email, network, device } = attempt;
  if (device !== undefined) return await attempts.take(deviceOf(email, device), perDevice);
  await attempts.take(`sign-in from ${network}`, perNetwork);
  await attempts.take(pairOf(email, network), perNetworkAndEmail);
  await attempts.take(`sign-in as ${email}`, perEmail);
}

/** Only failures count against a browser, or a network with an address: a success resets the count. */
export async function forgetSignIns(attempts: AttemptLimits, attempt: SignInAttempt): Promise<void> {
  const { email, network, device } = attempt;
  await attempts.forget(device === undefined ? pairOf(email, network) : deviceOf(email, device));
}

/** Counts a password that a signed-in user gives again, before it is checked. @throws ApiError 429 when there were too many. */
export async function takePassword(attempts: AttemptLimits, userId: string): Promise<void> {
  await attempts.take(passwordOf(userId), perUser);
}

/** Only wrong ones count: a right one resets the count. */
export async function forgetPasswords(attempts: AttemptLimits, userId: string): Promise<void> {
  await attempts.forget(passwordOf(userId));
}

const passwordOf = (userId: string): string => `password of ${userId}`;
const deviceOf = (email: string, device: string): string => `sign-in as ${email} by ${device}`;
const pairOf = (email: string, network: string): string => `sign-in as ${email} from ${network}`;
