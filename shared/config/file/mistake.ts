/** Something in the operator's file that cannot be used. */
export interface Mistake {
  /** Keys and places in lists that lead to it from the top of the file. */
  readonly path: readonly (string | number)[];
  /** What is wrong, as a line ends: `expected a number >= 0`. */
  readonly message: string;
  /** Whether it is the last key of the path that is wrong, and not what stands under it. */
  readonly isKey?: boolean;
  /** Whether what stands there instead is told, too. */
  readonly showsValue?: boolean;
}

/** A mistake that names what should stand there; what does stand there is told by whoever prints it. */
export function expected(path: Mistake['path'], what: string): Mistake {
  return { path, message: `expected ${what}`, showsValue: true };
}
