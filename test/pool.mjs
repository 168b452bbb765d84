// Runs processes of the suites beside each other.

/**
 * Starts the first task of the list that fits beside those under way, until none is left: what is listed first begins first, and no
 * core waits for the end of a group. Returns whether all succeeded.
 * @param tasks each with its `kind` and `run`, which resolves to whether it succeeded and rejects never
 * @param rooms what is under way at a time: `all` places, of which a task takes one, or as many as `places` has for its kind; and at
 *   most as many of a kind as `most` says
 */
export async function runPool(tasks, { all, places = {}, most = {} }) {
  const waiting = [...tasks];
  const underWay = new Map();
  let passed = true;
  const placesOf = ({ kind }) => places[kind] ?? 1;
  const fits = (task) => {
    const others = [...underWay.keys()];
    const taken = others.reduce((sum, other) => sum + placesOf(other), 0);
    const ofKind = others.filter(({ kind }) => kind === task.kind).length;
    return taken + placesOf(task) <= all && ofKind < (most[task.kind] ?? all);
  };
  while (waiting.length > 0 || underWay.size > 0) {
    const next = waiting.findIndex(fits);
    if (next === -1) {
      await Promise.race(underWay.values());
      continue;
    }
    const [task] = waiting.splice(next, 1);
    const end = (succeeded) => {
      underWay.delete(task);
      passed &&= succeeded;
    };
    underWay.set(task, task.run().then(end));
  }
  return passed;
}
