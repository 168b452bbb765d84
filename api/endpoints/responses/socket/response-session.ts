import { ApiError } from '../../../../shared/errors.ts';
import { yieldToEventLoop } from '../../../../shared/runtime/yield-to-event-loop.ts';
import { errorMessage } from '../../../replies/response-socket-reply.ts';
import { closeCodes, type SocketConnection } from '../../../replies/socket-connection.ts';
import { type ParsedMessage, refusedMessage, type SocketEnvelope } from './parse-socket-message.ts';

/** Limits of a response socket. Times in ms. */
export interface SessionLimits {
  /** Idle time after which it is closed. */
  readonly idleMs: number;
  /** OpenAI's sixty minutes. */
  readonly lifetimeMs: number;
  /** Concurrent responses of all lanes, and number of named lanes. OpenAI's figures. */
  readonly running: number;
  readonly lanes: number;
  /** Waiting messages, and their total bytes, at which reading pauses. */
  readonly waiting: number;
  readonly waitingBytes: number;
}

/** The limits except the idle time, which is configurable. */
export const sessionLimits: Omit<SessionLimits, 'idleMs'> = {
  lifetimeMs: 3_600_000,
  running: 16,
  lanes: 32,
  waiting: 16,
  waitingBytes: 1024 * 1024,
};

/** A running socket request. */
export interface RunningTurn {
  readonly responseId: string;
  /** Never rejects. */
  run(parsed: ParsedMessage): Promise<void>;
  cancel(): void;
  leave(): void;
}

/** The callbacks of a session. */
export interface SessionWork {
  /** Parses a message (see `parseSocketMessage`): synchronously, or later when it is large. */
  readonly parse: (message: Buffer, isBinary: boolean) => ParsedMessage | Promise<ParsedMessage>;
  readonly openTurn: (envelope: SocketEnvelope) => RunningTurn;
  /** Reports an unexpected error. */
  readonly onFault: (error: unknown) => void;
  /** Called with the size of a message that no longer waits. */
  readonly onAccepted?: (bytes: number) => void;
}

interface WaitingTurn {
  readonly envelope: SocketEnvelope;
  readonly parsed: ParsedMessage;
  readonly bytes: number;
}

/**
 * The requests of one response socket. Each lane (a `stream_id`, or none) runs its requests in order; lanes run
 * concurrently. A client that reads slowly or sends much is not read from until there is room, so that memory stays within
 * the limits. https://developers.openai.com/api/docs/guides/websocket-mode
 */
export class ResponseSession {
  readonly #connection: SocketConnection;
  readonly #work: SessionWork;
  readonly #limits: SessionLimits;
  readonly #running = new Map<string | undefined, RunningTurn>();
  readonly #lanes = new Set<string>();
  readonly #timers: NodeJS.Timeout[];
  readonly #idle: NodeJS.Timeout;
  #waiting: WaitingTurn[] = [];
  /** Messages that were received but do not run yet, including those being parsed. */
  #waitingCount = 0;
  #waitingBytes = 0;
  #isParsing = false;
  #intake: Promise<void> = Promise.resolve();
  #ending: ApiError | undefined;
  #isClosed = false;

  constructor(connection: SocketConnection, work: SessionWork, limits: SessionLimits) {
    this.#connection = connection;
    this.#work = work;
    this.#limits = limits;
    this.#idle = setTimeout(() => this.#closeIdle(), limits.idleMs);
    this.#timers = [this.#idle, setTimeout(() => this.end(tooOld(limits)), limits.lifetimeMs)];
    connection.onDrain(() => this.#continue());
    void connection.closed.then(() => this.#close());
  }

  /** Whether requests are running. */
  get isBusy(): boolean {
    return this.#running.size > 0;
  }

  /** Queues a message, in order of arrival. */
  take(message: Buffer, isBinary: boolean): void {
    if (this.#isClosed) return;
    this.#idle.refresh();
    this.#waitingCount++;
    // A large message is moved to another thread and is empty then.
    const bytes = message.length;
    this.#waitingBytes += bytes;
    this.#intake = this.#intake
      .then(async () => {
        this.#accept(await this.#parse(message, isBinary), bytes);
        this.#goOn();
      })
      .catch((error) => this.#fail(error));
  }

  /** Lets running requests finish, accepts no others, then sends the reason and closes. Lanes without one get it at once. */
  end(reason: ApiError): void {
    if (this.#ending !== undefined) return;
    this.#ending = reason;
    for (const { envelope, bytes } of this.#waiting) {
      const error = this.#tooLate(envelope);
      if (error !== undefined) this.#connection.send([errorMessage(error, envelope.streamId)]);
      this.#uncount(bytes);
    }
    this.#waiting = [];
    this.#goOn();
  }

  /** Parses a message. An internal error refuses it like an invalid one. */
  async #parse(message: Buffer, isBinary: boolean): Promise<ParsedMessage> {
    try {
      const parsed = this.#work.parse(message, isBinary);
      this.#isParsing = parsed instanceof Promise;
      this.#regulate();
      return await parsed;
    } catch (error) {
      this.#work.onFault(error);
      return refusedMessage(ApiError.from(error));
    } finally {
      this.#isParsing = false;
    }
  }

  #accept(parsed: ParsedMessage, bytes: number): void {
    const { envelope } = parsed.requirements;
    const error = this.#refuse(envelope) ?? this.#tooLate(envelope);
    if (error !== undefined) this.#connection.send([errorMessage(error, envelope.streamId)]);
    if (error !== undefined || envelope.type === 'response.cancel' || this.#ending !== undefined) this.#uncount(bytes);
    else this.#waiting.push({ envelope, parsed, bytes });
  }

  /** Handles what needs no waiting; returns an error if it fails. */
  #refuse(envelope: SocketEnvelope): ApiError | undefined {
    if (envelope.type === 'response.cancel' && envelope.refusal === undefined) return this.#cancel(envelope);
    const { streamId } = envelope;
    if (streamId === undefined || this.#lanes.has(streamId)) return undefined;
    if (this.#lanes.size >= this.#limits.lanes) return tooManyLanes(this.#limits);
    this.#lanes.add(streamId);
    return undefined;
  }

  /** The reason of the end, if nothing else would tell a lane of it until the running requests of the others have ended. */
  #tooLate({ type, streamId }: SocketEnvelope): ApiError | undefined {
    return type === 'response.create' && !this.#running.has(streamId) ? this.#ending : undefined;
  }

  #cancel({ streamId, responseId }: SocketEnvelope): ApiError | undefined {
    const turns = [...this.#running.values()];
    const turn =
      responseId === undefined
        ? this.#running.get(streamId)
        : turns.find((running) => running.responseId === responseId);
    turn?.cancel();
    if (turn !== undefined) return undefined;
    const param = responseId === undefined ? null : 'response_id';
    return new ApiError('invalid_request_error', 'There is no such response under way, so none was cancelled.', {
      param,
    });
  }

  #continue(): void {
    try {
      this.#goOn();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Starts waiting requests, pauses or resumes reading, and closes when ending. */
  #goOn(): void {
    // The bytes for which a connection is cut may complete a message: it counts as refused, and its client sends it again.
    if (this.#isClosed || this.#connection.isClosing) return;
    while (!this.#connection.isFull && this.#running.size < this.#limits.running) {
      const index = this.#waiting.findIndex(({ envelope }) => !this.#running.has(envelope.streamId));
      const [next] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (next === undefined) break;
      this.#start(next);
    }
    this.#regulate();
    if (this.#ending === undefined || this.#running.size > 0) return;
    this.#connection.send([errorMessage(this.#ending)]);
    this.#connection.close(closeCodes.goingAway, this.#ending.code);
  }

  #start({ envelope, parsed, bytes }: WaitingTurn): void {
    const turn = this.#work.openTurn(envelope);
    this.#running.set(envelope.streamId, turn);
    this.#uncount(bytes);
    turn
      .run(parsed)
      .catch((error) => this.#work.onFault(error))
      .then(() => {
        this.#running.delete(envelope.streamId);
        if (!this.#isClosed) this.#idle.refresh();
        // A refused message awaits nothing, and thousands of them may wait behind one request.
        yieldToEventLoop(() => this.#continue());
      })
      .catch((error) => this.#fail(error));
  }

  /** The session's state is lost: closes this connection, and no other. */
  #fail(error: unknown): void {
    this.#work.onFault(error);
    this.#connection.close(closeCodes.failed, 'server_error');
  }

  #uncount(bytes: number): void {
    this.#waitingCount--;
    this.#waitingBytes -= bytes;
    this.#work.onAccepted?.(bytes);
  }

  /** A cancellation after a full queue waits with it, as it cannot be recognized before it is read. */
  #regulate(): void {
    const hasMuch = this.#waitingCount >= this.#limits.waiting || this.#waitingBytes >= this.#limits.waitingBytes;
    this.#connection.setReading(!hasMuch && !this.#isParsing && !this.#connection.isFull);
  }

  #closeIdle(): void {
    if (this.#running.size > 0 || this.#waitingCount > 0) this.#idle.refresh();
    else this.#connection.close(closeCodes.finished, 'idle');
  }

  #close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#waiting = [];
    for (const turn of this.#running.values()) turn.leave();
  }
}

function tooOld({ lifetimeMs }: SessionLimits): ApiError {
  const minutes = Math.round(lifetimeMs / 60_000);
  return new ApiError(
    'websocket_connection_limit_reached',
    `Responses websocket connection limit reached (${minutes} minutes). Create a new websocket connection to continue.`,
  );
}

function tooManyLanes({ lanes }: SessionLimits): ApiError {
  return new ApiError(
    'websocket_stream_limit_reached',
    `This WebSocket connection has reached its maximum number of distinct stream IDs (${lanes}). Reuse an existing stream_id or open a new WebSocket connection.`,
    { param: 'stream_id' },
  );
}
