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
