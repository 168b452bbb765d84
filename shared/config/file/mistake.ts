/** An unusable part of the configuration file. */
export interface Mistake {
  /** Keys and list indexes from the top of the file. */
  readonly path: readonly (string | number)[];
  /** The problem, worded as the end of a line: `expected a number >= 0`. */
  readonly message: string;
  /** Whether the last key of the path is wrong, rather than its value. */
  readonly isKey?: boolean;
  /** Whether to report the actual value, too. */
  readonly showsValue?: boolean;
}

/** A mistake that names the expected value; the actual one is added when it is printed. */
export function expected(path: Mistake['path'], what: string): Mistake {
  return { path, message: `expected ${what}`, showsValue: true };
}
