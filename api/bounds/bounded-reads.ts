import { ApiError } from '../../shared/errors.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Late reads that may be under way before further ones are refused at once. */
const maxLate = 16;

/**
 * Reads that callers wait for, of a storage that may stop to answer: each for a bounded time. One that is late goes on by
 * itself, and while many do, no more are begun: they would only wait behind them, and fill the memory.
 */
export class BoundedReads {
  readonly #patienceMs: number;
  readonly #message: string;
  #late = 0;

  /** @param message what a caller is told whose read was not answered in time, or failed */
  constructor(patienceMs: number, message: string) {
    this.#patienceMs = patienceMs;
    this.#message = message;
  }

  /** What `begin` answers. @throws ApiError 503 when that fails, or takes too long. */
  async read<Row>(begin: () => Promise<Row>): Promise<Row> {
    if (this.#late >= maxLate) throw this.#unavailable();
    const reading = begin();
    let answer: { readonly row: Row } | undefined;
    try {
      answer = await withTimeout(
        reading.then((row) => ({ row })),
        this.#patienceMs,
      );
    } catch (error) {
      throw this.#unavailable(error);
    }
    if (answer !== undefined) return answer.row;
    this.#late++;
    const settled = (): void => {
      this.#late--;
    };
    reading.then(settled, settled);
    throw this.#unavailable();
  }

  #unavailable(cause?: unknown): ApiError {
    return new ApiError('service_unavailable', `${this.#message} Try again later.`, { retryAfterMs: 2000, cause });
  }
}
