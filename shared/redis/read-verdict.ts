/**
 * Parses a script's verdict. An unknown one, from a script of another version, is returned as an Error, so that the rest of the
 * batch can still be read.
 */
export function readVerdict<Verdict extends string>(verdicts: readonly Verdict[], text = ''): Verdict | Error {
  const verdict = verdicts.find((known) => known === text);
  return verdict ?? new Error(`a script gave a verdict that this version does not know: ${text}`);
}
