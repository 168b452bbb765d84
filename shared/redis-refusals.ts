/**
 * What Redis says while it cannot do anything for now, and has not begun to: a replica that was made of a master, one that
 * loads its data, one without its replicas, a full disk or memory, a Cluster that is changing.
 */
const refusals = /^(READONLY|NOREPLICAS|MISCONF|OOM|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY)\b/;

/** Whether Redis has refused a command for now: nothing was done, and the same command may be taken in a moment. */
export function isRefusedForNow(error: unknown): boolean {
  return error instanceof Error && refusals.test(error.message);
}
