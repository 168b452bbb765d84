import { randomInt } from 'node:crypto';

/** Random numbers that a seed repeats. */
export class SeededRandom {
  readonly seed: number;
  #state: number;

  /** @param seed 32 bits; left out: another one every time */
  constructor(seed: number = randomInt(2 ** 32 - 1)) {
    this.seed = seed >>> 0;
    this.#state = this.seed;
  }

  /** From 0 up to 1, without 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.int(0, choices.length - 1)] as T;
  }

  /** One of the choices, each as likely as its weight says. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let left = this.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    return (choices.at(-1) as readonly [number, T])[1];
  }

  /** Randomness of its own for one part, so that what another part draws does not change it. */
  fork(part: number): SeededRandom {
    return new SeededRandom(Math.imul(this.seed ^ 0x9e3779b9, part * 2 + 1) ^ part);
  }
}
