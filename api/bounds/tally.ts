/** Amounts by name. Names with zero take no memory. */
export class Tally {
  readonly #amounts = new Map<string, number>();

  of(name: string): number {
    return this.#amounts.get(name) ?? 0;
  }

  add(name: string, amount: number): void {
    const sum = this.of(name) + amount;
    if (sum === 0) this.#amounts.delete(name);
    else this.#amounts.set(name, sum);
  }

  /** Number of names with an amount. */
  get size(): number {
    return this.#amounts.size;
  }
}
