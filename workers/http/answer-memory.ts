import { getHeapStatistics } from 'node:v8';

/** Share of V8's heap: what an answer becomes on its way to its log is several times as long. */
const heapShare = 0.125;

/** Bytes of an answer that count for nothing: nearly all answers are shorter. */
export const freeBytes = 256 * 1024;

/** How often it is looked whether what others wait for goes on: the first answer, of which the fewest bytes must have come, or a job. */
const lookMs = 5000;
const minGrowth = 256 * 1024;

/**
 * Up to how many times the bound answers and jobs are passed over: where vendors stop half-way, or a slow store takes the answers, each one
 * would let another one in.
 */
const maxPassedOver = 2;

/** Accounts whose last turns are remembered. */
const maxAccounts = 1000;

/** Keeps what its calls return, until it releases it. */
export interface AnswerHolder {
  /** Whose it is. */
  readonly job?: { readonly account: string };
  /** Whether it has any of it. */
  holdsAnswer?: boolean;
}

/**
 * What the answers that are read as a whole, and unfinished events of streams, take of this process's memory, while they come in and as
 * long as their jobs hold them.
 * Beyond the bound vendors are read no further until others have ended. Only the first answer goes on if nothing else will make
 * room: so there is always a job that ends. Next is the account whose last turn is the longest ago, and of its answers one whose job
 * holds some, which it gives back then. If its vendor sends hardly anything, that was its account's turn, and all other answers that are
 * there precede it; and a job that holds answers is not waited for while it gets nothing, unless all that is held is far beyond the bound.
 * Then no answer is passed over either, as the next one would grow beside it: the largest that does not go on is given up.
 */
export class AnswerMemory {
  readonly #bytes: number;
  /** In the order in which they have become long, or were passed over. */
  readonly #growing = new Set<LongAnswer>();
  readonly #held = new Map<AnswerHolder, number>();
  /** Those that have kept others waiting, and got nothing meanwhile: a call of theirs is silent, or may not be made yet. */
  readonly #stalled = new Set<AnswerHolder>();
  /** Its job has gone beyond the bound last: it goes on before all others, and there is no other, until it is over. */
  #turn: LongAnswer | undefined;
  #turns = 0;
  /** The numbers of the accounts' last turns, the oldest first. */
  readonly #lastTurns = new Map<string, number>();
  #total = 0;
  /** Runs while answers wait. */
  #look: NodeJS.Timeout | undefined;

  /** @param bytes of all answers together; more than V8's heap has room for is bounded by that */
  constructor(bytes: number, heapBytes: number = getHeapStatistics().heap_size_limit) {
    this.#bytes = Math.min(bytes, heapBytes * heapShare);
  }

  /**
   * @param resume called when an answer that had to wait may go on
   * @param giveUp called when it must end: it takes memory that others need, and its vendor does not go on with it
   */
  open(holder: AnswerHolder | undefined, resume: () => void, giveUp: () => void): LongAnswer {
    const answer = new LongAnswer(this, holder, resume, giveUp);
    this.#growing.add(answer);
    return answer;
  }

  /** Gives back all that a job holds. */
  release(holder: AnswerHolder): void {
    this.#total -= this.#held.get(holder) ?? 0;
    this.#held.delete(holder);
    this.#stalled.delete(holder);
    holder.holdsAnswer = false;
    this.#endTurn(holder);
    this.#resume();
  }

  /** Counts bytes that have come, or are kept no longer. False if the answer must wait. */
  add(answer: LongAnswer, bytes: number): boolean {
    this.#total += bytes;
    answer.isWaiting = bytes > 0 && !this.#mayGrow(answer);
    // What its job holds will not be released before it, so that another one may have to go on.
    if (answer.isWaiting || bytes < 0) this.#resume();
    if (answer.isWaiting) this.#lookLater();
    return !answer.isWaiting;
  }

  /** An answer has come, or will not come. @param isKept whether its holder keeps it */
  end(answer: LongAnswer, isKept: boolean): void {
    if (!this.#growing.delete(answer)) return;
    const { holder, bytes } = answer;
    if (isKept && holder !== undefined) {
      this.#held.set(holder, (this.#held.get(holder) ?? 0) + bytes);
      this.#stalled.delete(holder);
      holder.holdsAnswer = true;
    } else {
      this.#total -= bytes;
      if (holder === undefined || !this.#held.has(holder)) this.#endTurn(answer.owner);
    }
    this.#resume();
  }

  #endTurn(owner: object): void {
    if (this.#turn?.owner !== owner) return;
    const { account } = this.#turn;
    this.#turn = undefined;
    this.#noteTurn(account);
  }

  #noteTurn(account: string): void {
    this.#lastTurns.delete(account);
    this.#lastTurns.set(account, ++this.#turns);
    const [oldest] = this.#lastTurns.keys();
    if (this.#lastTurns.size > maxAccounts && oldest !== undefined) this.#lastTurns.delete(oldest);
  }

  #resume(): void {
    const first = this.#first;
    if (first === undefined) return;
    // Beyond the bound no other may grow.
    for (const answer of this.#total > this.#bytes ? [first] : this.#growing) {
      if (!answer.isWaiting || !this.#mayGrow(answer)) continue;
      answer.isWaiting = false;
      answer.resume();
    }
  }

  #lookLater(): void {
    const first = this.#first;
    if (first === undefined || this.#look !== undefined) return;
    const { bytes } = first;
    const ending = this.#ending();
    this.#look = setTimeout(() => {
      this.#look = undefined;
      this.#passOver(first, bytes, ending);
    }, lookMs);
    this.#look.unref();
  }

  /**
   * Puts the first answer behind the others if they wait for it, and it has hardly grown, or gives one up if they take too much already; or
   * passes over the jobs for which it waits, too.
   * @param bytes that it had before
   * @param ending the jobs that were expected to end
   */
  #passOver(answer: LongAnswer, bytes: number, ending: readonly AnswerHolder[]): void {
    const first = this.#first;
    if (first?.isWaiting) {
      const still = new Set(this.#ending());
      for (const holder of ending) if (still.has(holder)) this.#stalled.add(holder);
      this.#resume();
    } else if (answer === first && answer.bytes - bytes < minGrowth) {
      if (this.#total - bytes > maxPassedOver * this.#bytes) this.#giveUpLargest(answer);
      else this.#putBehind(answer);
    }
    if ([...this.#growing].some(({ isWaiting }) => isWaiting)) this.#lookLater();
  }

  #putBehind(answer: LongAnswer): void {
    answer.isPassedOver = true;
    this.#growing.delete(answer);
    this.#growing.add(answer);
    // Also if it has not gone beyond the bound itself: the others have waited for it.
    if (this.#turn?.owner === answer.owner) this.#turn = undefined;
    this.#noteTurn(answer.account);
    this.#resume();
  }

  /** Gives up the largest answer whose vendor does not go on: the first, or one that was passed over. Not while a job will make room. */
  #giveUpLargest(first: LongAnswer): void {
    if (this.#ending().length > 0) return;
    const stopped = [...this.#growing].filter(
      (answer) => answer === first || (answer.isPassedOver && !answer.isWaiting),
    );
    stopped.reduce((largest, other) => (other.bytes > largest.bytes ? other : largest)).giveUp();
  }

  #mayGrow(answer: LongAnswer): boolean {
    if (this.#total <= this.#bytes) return true;
    if (answer !== this.#first || this.#ending().length > 0) return false;
    this.#turn = answer;
    return true;
  }

  get #first(): LongAnswer | undefined {
    // One that was passed over is like the others again once those before it are over: it would never end beside ever new ones.
    const eligible = [...this.#growing].filter(({ isPassedOver }, index) => index === 0 || !isPassedOver);
    if (eligible.length === 0) return undefined;
    const sameTurn = eligible.find(({ owner }) => owner === this.#turn?.owner);
    return sameTurn ?? eligible.reduce((first, other) => (this.#precedes(other, first) ? other : first));
  }

  #precedes(one: LongAnswer, other: LongAnswer): boolean {
    const [turn, otherTurn] = [one, other].map(({ account }) => this.#lastTurns.get(account) ?? 0) as [number, number];
    if (turn !== otherTurn) return turn < otherTurn;
    const holds = ({ holder }: LongAnswer): boolean => holder !== undefined && this.#held.has(holder);
    return holds(one) && !holds(other);
  }

  /** The jobs that hold answers and wait for no more of them: they end by themselves. */
  #ending(): AnswerHolder[] {
    const waiting = new Set([...this.#growing].map(({ holder }) => holder));
    const isPassedOver = (holder: AnswerHolder): boolean =>
      this.#stalled.has(holder) && this.#total <= maxPassedOver * this.#bytes;
    return [...this.#held.keys()].filter((holder) => !waiting.has(holder) && !isPassedOver(holder));
  }
}

/** A long answer that comes in. */
export class LongAnswer {
  readonly holder: AnswerHolder | undefined;
  readonly resume: () => void;
  readonly giveUp: () => void;
  bytes = 0;
  isWaiting = false;
  /** Its vendor has sent hardly anything while others waited. */
  isPassedOver = false;
  readonly #memory: AnswerMemory;

  constructor(memory: AnswerMemory, holder: AnswerHolder | undefined, resume: () => void, giveUp: () => void) {
    this.#memory = memory;
    this.holder = holder;
    this.resume = resume;
    this.giveUp = giveUp;
  }

  /** Its job, if that holds its answers. */
  get owner(): object {
    return this.holder ?? this;
  }

  get account(): string {
    return this.holder?.job?.account ?? '';
  }

  /** So many bytes of it are kept now. False if it must wait until it is resumed. */
  growTo(bytes: number): boolean {
    const more = bytes - this.bytes;
    this.bytes = bytes;
    return this.#memory.add(this, more);
  }

  /** @param isKept whether its holder keeps it */
  end(isKept: boolean): void {
    this.#memory.end(this, isKept);
  }
}

/** That of all clients of this process. */
let memory = new AnswerMemory(Number.POSITIVE_INFINITY);

/** Bounds what the answers of all clients take from now on. */
export function boundAnswers(bytes: number): void {
  memory = new AnswerMemory(bytes);
}

/** Counts an answer that has become long; see `AnswerMemory.open`. */
export function countAnswer(holder: AnswerHolder | undefined, resume: () => void, giveUp: () => void): LongAnswer {
  return memory.open(holder, resume, giveUp);
}

/** Gives back the answers that a job holds. */
export function releaseAnswers(holder: AnswerHolder): void {
  memory.release(holder);
}
