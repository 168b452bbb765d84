/** What can be in one crowd at a time. */
export interface SwapRemoveMember {
  /** Where it stands; the crowd's own business. */
  place: number;
}

/**
 * A set of what comes and goes by the thousand a second, in no order. A `Set` would not do: V8 gives one that loses as many as
 * it takes a new table again and again, to which the old one points. An old table that has once outlived two collections of
 * young objects keeps all later ones, and with them whatever stood in them (finished requests, their bodies), until the next
 * full collection: that was half of what each collection had to copy.
 */
export class SwapRemoveSet<Member extends SwapRemoveMember> {
  readonly #members: Member[] = [];

  add(member: Member): void {
    member.place = this.#members.length;
    this.#members.push(member);
  }

  /** Takes a member out; what is not in it stays out. */
  delete(member: Member): void {
    if (this.#members[member.place] !== member) return;
    const last = this.#members.pop() as Member;
    if (last === member) return;
    this.#members[member.place] = last;
    last.place = member.place;
  }

  get size(): number {
    return this.#members.length;
  }

  /** Those that are in it now, whatever becomes of it meanwhile. */
  [Symbol.iterator](): Iterator<Member> {
    return this.#members.slice().values();
  }
}
