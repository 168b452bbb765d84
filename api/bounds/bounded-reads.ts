import { ApiError, type RefusalReason } from '../../shared/errors.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** How long Redis, the database and the blobs may take to show or change what a caller waits for, who gets a 503 then. */
export const readMs = 5000;
/** Late reads in flight at which further ones are refused at once. */
const maxLate = 16;

/**
 * Bounds the time of reads from a storage that may stop responding, and of changes there. A late one continues in the background.
 * While many do, new ones are refused: they would only queue behind them and fill the memory.
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

  /** Returns the result of `begin`, or throws its API error. @throws ApiError 503 when it fails otherwise, or times out. */
  async read<Row>(begin: () => Promise<Row>): Promise<Row> {
    return await this.#inTime(begin, () => this.#unavailable());
  }

  /**
   * The same for a change that must not be made twice. One that has not come to its first write in time is not made later, so that
   * its caller can repeat it.
   * @param begin calls `beforeWrite` ahead of its first write; what that throws ends it
   * @throws ApiError 500 `outcome_unknown` when it times out later
   */
  async change<Row>(begin: (beforeWrite: () => void) => Promise<Row>): Promise<Row> {
    let [isLate, isWriting] = [false, false];
    const beforeWrite = (): void => {
      if (isLate) throw this.#unavailable();
      isWriting = true;
    };
    return await this.#inTime(
      () => begin(beforeWrite),
      () => {
        isLate = true;
        return isWriting ? outcomeUnknown() : this.#unavailable();
      },
    );
  }

  async #inTime<Row>(begin: () => Promise<Row>, late: () => ApiError): Promise<Row> {
    if (this.#late >= maxLate) throw this.#unavailable();
    const reading = begin();
    let answer: { readonly row: Row } | undefined;
    try {
      answer = await withTimeout(
        reading.then((row) => ({ row })),
        this.#patienceMs,
      );
    } catch (error) {
      throw error instanceof ApiError ? error : this.#unavailable(error);
    }
    if (answer !== undefined) return answer.row;
    this.#late++;
    const settled = (): void => {
      this.#late--;
    };
    reading.then(settled, settled);
    throw late();
  }

  #unavailable(cause?: unknown): ApiError {
    return new ApiError('service_unavailable', `${this.#message} Try again later.`, {
      reason: this.#reason,
      retryAfterMs: 2000,
      cause,
    });
  }
}

function outcomeUnknown(): ApiError {
  const message = 'The database did not say in time whether the change was made. Look before you repeat it.';
  return new ApiError('outcome_unknown', message);
}
