/** A member of at most one `SwapRemoveSet` at a time. */
export interface SwapRemoveMember {
  /** Its index; managed by the set. */
  index: number;
}

/**
 * An unordered set whose members change thousands of times a second. A `Set` is unsuitable: V8 repeatedly gives a set that
 * loses as many members as it gains a new table, to which the old one points. An old table that survives two young-generation
 * collections retains all later ones, and with them their members (finished requests, their bodies), until the next full
 * collection: that was half of what each collection had to copy.
 */
export class SwapRemoveSet<Member extends SwapRemoveMember> {
  readonly #members: Member[] = [];

  add(member: Member): void {
    member.index = this.#members.length;
    this.#members.push(member);
  }

  /** Removes a member, if present. */
  delete(member: Member): void {
    if (this.#members[member.index] !== member) return;
    const last = this.#members.pop() as Member;
    if (last === member) return;
    this.#members[member.index] = last;
    last.index = member.index;
  }

  get size(): number {
    return this.#members.length;
  }

  /** A snapshot of the members. */
  [Symbol.iterator](): Iterator<Member> {
    return this.#members.slice().values();
  }
}

/** An item that belongs to a job and is found by its id. */
export interface JobItem<Item> {
  readonly jobId: string;
  /** The next item in its list; managed by `JobIdMap`. */
  next: Item | undefined;
}

const lists = 4096;

/** Items by job id; a job may have several. Not a `Map`, for the same reason that `SwapRemoveSet` is not a `Set`. */
export class JobIdMap<Item extends JobItem<Item>> {
  readonly #firsts: (Item | undefined)[] = new Array(lists).fill(undefined);
  #size = 0;

  add(item: Item): void {
    const list = listOf(item.jobId);
    item.next = this.#firsts[list];
    this.#firsts[list] = item;
    this.#size++;
  }

  /** Removes an item, if present. */
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

  /** Calls back with each item of a job; the callback may remove it. */
  forEach(jobId: string, use: (item: Item) => void): void {
    let next = this.#firsts[listOf(jobId)];
    while (next !== undefined) {
      const item = next;
      next = item.next;
      if (item.jobId === jobId) use(item);
    }
  }

  /** A snapshot of all items. */
  [Symbol.iterator](): Iterator<Item> {
    const items: Item[] = [];
    for (const first of this.#firsts) for (let item = first; item !== undefined; item = item.next) items.push(item);
    return items.values();
  }
}

/** Job ids end with random digits: the last three choose the list. (Parsing them as a number takes longer than all the rest.) */
function listOf(jobId: string): number {
  const end = jobId.length;
  const [first, second, third] = [jobId.charCodeAt(end - 3), jobId.charCodeAt(end - 2), jobId.charCodeAt(end - 1)];
  return ((first * 31 + second) * 31 + third) % lists || 0;
}

/** Chunks that are kept as they came. */
const maxRecent = 1024;

/**
 * The chunks of a body that is buffered. Many are joined now and then: a sender may make each byte a chunk of its own, which would
 * take hundreds of times its memory.
 */
export class GatheredChunks {
  readonly #onJoined: (chunk: Buffer) => void;
  readonly #joined: Buffer[] = [];
  #recent: Buffer[] = [];

  /** @param onJoined called with each chunk that was copied */
  constructor(onJoined: (chunk: Buffer) => void = () => undefined) {
    this.#onJoined = onJoined;
  }

  add(chunk: Buffer): void {
    this.#recent.push(chunk);
    if (this.#recent.length < maxRecent) return;
    this.#joined.push(this.#join(this.#recent));
    this.#recent = [];
  }

  /** All of them as one, at the end; a single one is not copied. */
  bytes(): Buffer {
    const [only] = this.#recent;
    if (only !== undefined && this.#recent.length === 1 && this.#joined.length === 0) return only;
    return this.#join([...this.#joined, ...this.#recent]);
  }

  #join(chunks: readonly Buffer[]): Buffer {
    const whole = Buffer.concat(chunks);
    for (const chunk of chunks) this.#onJoined(chunk);
    return whole;
  }
}

/** Makes room for one more entry of a bounded map: the oldest one goes. */
export function makeRoom<Key>(entries: Map<Key, unknown>, max: number): void {
  if (entries.size < max) return;
  const oldest = entries.keys().next();
  if (!oldest.done) entries.delete(oldest.value);
}

/** The accounts that a process serves. Of the two seen last is known when, which tells each whether it has the process to itself. */
export class RecentAccounts {
  #latest = { account: '', at: Number.NEGATIVE_INFINITY };
  #other = { account: '', at: Number.NEGATIVE_INFINITY };

  see(account: string): void {
    if (account !== this.#latest.account) {
      const seen = this.#other;
      this.#other = this.#latest;
      this.#latest = seen;
      seen.account = account;
    }
    this.#latest.at = performance.now();
  }

  /** Whether another account was seen within `ms`. */
  hasOthers(account: string, ms: number): boolean {
    const { at } = account === this.#latest.account ? this.#other : this.#latest;
    return performance.now() - at < ms;
  }
}

/** Whether bytes fill the memory that they lie in: nothing else is lost when it is moved or released. */
export function isAlone(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength;
}

const minReleased = 4096;

/** Whether to release bytes gives memory back: of a few the empty rest takes as much. */
export function isReleasable(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.byteLength >= minReleased && isAlone(bytes);
}

/**
 * Releases the memory of bytes that nobody will read again; they are empty afterwards. Otherwise megabytes of bodies, outside the
 * heap, make V8 collect the whole heap before they fill its young generation (benchmark case `neighbour-2mb`). Node 20 cannot.
 */
export function releaseMemory(bytes: Uint8Array): void {
  if (!isReleasable(bytes)) return;
  const memory: ArrayBuffer & { transfer?: (length: number) => ArrayBuffer } = bytes.buffer;
  memory.transfer?.(0);
}

/**
 * Adds to the list itself: a copy for each token of a long answer would be billions of entries. One after the other: a call with more
 * than a hundred thousand arguments fails.
 */
export function addAll<Item>(list: Item[], more: readonly Item[]): void {
  for (const each of more) list.push(each);
}
