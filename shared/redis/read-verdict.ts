/**
 * One of the verdicts that a script gives. Any other, from a script of another version, is an Error, which is returned: what else
 * its batch has replied can be read on.
 */
export function readVerdict<Verdict extends string>(verdicts: readonly Verdict[], text = ''): Verdict | Error {
  const verdict = verdicts.find((known) => known === text);
  return verdict ?? new Error(`a script gave a verdict that this version does not know: ${text}`);
}
