import { makeRoom } from '../../shared/runtime/collections.ts';

/** Routes that are remembered: names of open vendors' models come from callers. */
const maxRoutes = 1000;
/** Output tokens expected of a route that nothing is known of. */
const usualOutput = 200;
/** No answer is longer, whatever its vendor says, in tokens. */
const maxOutput = 200_000;
/** Share of a new call in the averages. */
const share = 0.1;

interface Averages {
  output: number;
  durationMs: number;
}

/** Expects of a route's calls what the last ones came to. */
export class TokenForecast {
  readonly #routes = new Map<string, Averages>();

  /** Expected output tokens. @param max that the caller allows */
  outputOf(route: string, max = Number.POSITIVE_INFINITY): number {
    return Math.min(max, Math.ceil(this.#routes.get(route)?.output ?? usualOutput));
  }

  /** The interval in ms at which calls end if so many run at a time; 0 if unknown. */
  intervalOf(route: string, parallel: number): number {
    return (this.#routes.get(route)?.durationMs ?? 0) / parallel;
  }

  /** Notes what a call came to. @param output tokens; undefined if unknown */
  note(route: string, output: number | undefined, durationMs: number): void {
    const told = output && Math.min(Math.max(0, output), maxOutput);
    const known = this.#routes.get(route);
    if (known === undefined) {
      makeRoom(this.#routes, maxRoutes);
      this.#routes.set(route, { output: told ?? usualOutput, durationMs });
      return;
    }
    known.durationMs += share * (durationMs - known.durationMs);
    if (told !== undefined) known.output += share * (told - known.output);
  }
}
