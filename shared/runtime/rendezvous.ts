/** Draws a number above 0 and below 1 for a candidate, by its name. */
export type Draw = (name: string) => number;

/**
 * Rendezvous hashing: jobs with one affinity draw the same number for a candidate in every process, so whoever orders candidates
 * by it comes to the same order, and a candidate that comes or goes moves only the jobs that it gets or had.
 * @param affinity of the job, with its account
 */
export function rendezvous(affinity: string): Draw {
  return (name) => (mixed(`${affinity} ${name}`) + 0.5) / 2 ** 32;
}

/** FNV-1a, 32 bits, with the last step of MurmurHash3: names that differ in their last characters alone get far numbers. */
function mixed(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
