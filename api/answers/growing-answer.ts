import type { ApiError } from '../../shared/errors.ts';

/** What all answers that are sent as they grow have in common: when they begin, how they end, and what is counted. */
export abstract class GrowingAnswer {
  /** Resolves when it has begun (its status is out); rejects with the ApiError that came before that. */
  readonly opened: Promise<void>;
  /** Resolves when the last of it is handed over, with the error that ended it, if any. */
  readonly ended: Promise<ApiError | undefined>;
  /** Called twice a second. */
  onTick: ((now: number) => void) | undefined;
  /** When the first frame came, in ms since 1970. */
  firstFrameAt: number | undefined;
  frames = 0;
  #isOpen = false;
  #isEnded = false;
  #resolveOpened: () => void = () => undefined;
  #rejectOpened: (error: ApiError) => void = () => undefined;
  #resolveEnded: (error: ApiError | undefined) => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve, reject) => {
      this.#resolveOpened = resolve;
      this.#rejectOpened = reject;
    });
    // Nobody may be waiting yet when it fails; whoever awaits later still gets the error.
    this.opened.catch(() => undefined);
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Whether it has begun. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  protected get isEnded(): boolean {
    return this.#isEnded;
  }

  protected countFrame(): void {
    this.firstFrameAt ??= Date.now();
    this.frames++;
  }

  protected markOpen(): void {
    this.#isOpen = true;
    this.#resolveOpened();
  }

  /** @param error why it ended; it must be given where the answer never began */
  protected markEnded(error: ApiError | undefined): void {
    this.#isEnded = true;
    if (!this.#isOpen && error !== undefined) this.#rejectOpened(error);
    this.#resolveEnded(error);
  }
}
