/** What the gateway's clock is ahead of this machine's, in ms. */
let ahead = 0;
/** A smaller difference is that of whole seconds, and of the way. */
const minDifferenceMs = 2000;

/** Learns the gateway's time from a response: the times of jobs are its, and a user's clock may be minutes off. */
export function learnTime({ headers }: Response): void {
  const difference = Date.parse(headers.get('date') ?? '') - Date.now();
  if (!Number.isNaN(difference)) ahead = Math.abs(difference) < minDifferenceMs ? 0 : difference;
}

/** Now, by the gateway's clock; ms since 1970. */
export function gatewayNow(): number {
  return Date.now() + ahead;
}
