/** What belongs to a job, and can be found by its id. */
export interface JobItem<Item> {
  readonly jobId: string;
  /** The next one in its list; the business of `JobIdMap`. */
  next: Item | undefined;
}

const lists = 4096;

/**
 * What belongs to jobs, found by their ids; more than one may belong to a job. Not a `Map`, for the reason that `SwapRemoveSet` is no
 * `Set`.
 */
export class JobIdMap<Item extends JobItem<Item>> {
  readonly #firsts: (Item | undefined)[] = new Array(lists).fill(undefined);
  #size = 0;

  add(item: Item): void {
    const list = listOf(item.jobId);
    item.next = this.#firsts[list];
    this.#firsts[list] = item;
    this.#size++;
  }

  /** Takes an item out; what is not in it stays out. */
  delete(item: Item): void {
    const list = listOf(item.jobId);
    let before: Item | undefined;
    let each = this.#firsts[list];
    while (each !== undefined && each !== item) {
      before = each;
      each = each.next;
    }
    if (each === undefined) return;
    if (before === undefined) this.#firsts[list] = item.next;
    else before.next = item.next;
    item.next = undefined;
    this.#size--;
  }

  get size(): number {
    return this.#size;
  }

  /** Calls back with each item of a job; these may take themselves out. */
  forEach(jobId: string, use: (item: Item) => void): void {
    let next = this.#firsts[listOf(jobId)];
    while (next !== undefined) {
      const item = next;
      next = item.next;
      if (item.jobId === jobId) use(item);
    }
  }

  /** All that are there now, whatever becomes of them meanwhile. */
  [Symbol.iterator](): Iterator<Item> {
    const items: Item[] = [];
    for (const first of this.#firsts) for (let item = first; item !== undefined; item = item.next) items.push(item);
    return items.values();
  }
}

/** Job ids end with random digits: the last three choose the list. (Reading them as a number takes longer than all the rest.) */
function listOf(jobId: string): number {
  const end = jobId.length;
  const [first, second, third] = [jobId.charCodeAt(end - 3), jobId.charCodeAt(end - 2), jobId.charCodeAt(end - 1)];
  return ((first * 31 + second) * 31 + third) % lists || 0;
}
