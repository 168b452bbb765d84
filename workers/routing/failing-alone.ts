/** A call that its vendor has answered, or that has failed by its route. */
export interface RecentCall {
  /** The account whose job it was. */
  readonly owner: string;
  readonly hasFailed: boolean;
}

/**
 * The account without whose calls a route would not count as failing, which may be due to its requests: others find out with calls of
 * their own. Null if the calls of the others fail as often.
 * @param recent calls, at least one of which has failed
 * @param threshold share of failed calls above which a route counts as failing
 */
export function failingAlone(recent: readonly RecentCall[], threshold: number): string | null {
  const failures = new Map<string, number>();
  for (const { owner, hasFailed } of recent) if (hasFailed) failures.set(owner, (failures.get(owner) ?? 0) + 1);
  const [worst] = [...failures].reduce((one, other) => (other[1] > one[1] ? other : one));
  const others = recent.filter(({ owner }) => owner !== worst);
  const failed = others.filter(({ hasFailed }) => hasFailed).length;
  return failed > threshold * others.length ? null : worst;
}
