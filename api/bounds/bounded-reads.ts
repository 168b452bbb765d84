import { ApiError, type RefusalReason } from '../../shared/errors.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Late reads in flight at which further ones are refused at once. */
const maxLate = 16;

/**
 * Bounds the time of reads from a storage that may stop responding. A late read continues in the background. While many do,
 * new reads are refused: they would only queue behind them and fill the memory.
 */
export class BoundedReads {
  readonly #patienceMs: number;
  readonly #message: string;
  readonly #reason: RefusalReason;
  #late = 0;

  /**
   * @param message for a caller whose read timed out or failed
   * @param reason what is short then, for operators: the database, unless the storage is another one
   */
  constructor(patienceMs: number, message: string, reason: RefusalReason = 'database') {
    this.#patienceMs = patienceMs;
    this.#message = message;
    this.#reason = reason;
  }

  /** Returns the result of `begin`. @throws ApiError 503 when it fails or times out. */
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
    return new ApiError('service_unavailable', `${this.#message} Try again later.`, {
      reason: this.#reason,
      retryAfterMs: 2000,
      cause,
    });
  }
}
