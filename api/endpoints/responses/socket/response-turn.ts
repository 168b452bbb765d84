import { ApiError } from '../../../../shared/errors.ts';
import type { JobIdentity } from '../../../../shared/jobs/job-state.ts';
import { admitAndEnqueue } from '../../../admission/admit-job.ts';
import type { Submission } from '../../../admission/submission.ts';
import { type BodyShare, shareOfReads } from '../../../bounds/body-shares.ts';
import { readMs } from '../../../bounds/bounded-reads.ts';
import { largestBody } from '../../../http/body/read-body.ts';
import { logFault } from '../../../http/errors.ts';
import { recordRequest, showServed } from '../../../http/request-report.ts';
import { describeJob } from '../../../pipeline/describe-job.ts';
import { checkByNewestKey, ignoredByAll, withCheck } from '../../../pipeline/validate-request.ts';
import type { AnswerReader } from '../../../replies/answer-reader.ts';
import { cancelAbandoned, cancelUnreadable } from '../../../replies/cancel-job.ts';
import { ClientConnection, WaitLimits } from '../../../replies/client-connection.ts';
import { sendStreamed } from '../../../replies/open-reply.ts';
import { errorMessage, ResponseSocketReply } from '../../../replies/response-socket-reply.ts';
import { tryToEnd } from '../../../replies/try-to-end.ts';
import type { ViewedJob } from '../../../replies/view.ts';
import type { Context } from '../../../state.ts';
import { conversationItems } from '../conversation-cache.ts';
import { continuing, type ParsedResponse } from '../earlier-turns.ts';
import type { ResponseViewOptions } from '../parse-response.ts';
import { forNextTurn, socketEvents } from '../response-view.ts';
import type { ParsedMessage, SocketEnvelope } from './parse-socket-message.ts';
import { contextOfTurn, type TurnContext, viewedTurn } from './turn-context.ts';

/** A request whose job is queued. */
interface BegunTurn {
  readonly submission: Submission;
  readonly viewed: ViewedJob<ResponseViewOptions>;
  /** What the next request needs of it; undefined if there is no room to keep it. */
  readonly kept: Pick<ParsedResponse, 'request' | 'hasMedia'> | undefined;
  readonly reply: ResponseSocketReply;
  readonly reader: AnswerReader;
}

/** The end of an empty answer. */
const emptyEnd = {
  seq: 1,
  type: 'end',
  text: JSON.stringify({ response: { status: 'completed', incomplete_details: null, output: [], usage: null } }),
} as const;

/**
 * One request on a response socket, handled as by `POST /v1/responses`: checked, admitted, queued and counted in the same
 * way, its events sent as they arrive. A warm-up (`generate: false`) makes no job: it is handled here, and known only to the
 * requests of its connection.
 */
export class ResponseTurn {
  readonly responseId: string;
  readonly #context: TurnContext;
  readonly #ctx: Context;
  readonly #envelope: SocketEnvelope;
  readonly #waits: ClientConnection;
  #isCancelled = false;
  /** Ends its job, once there is one. */
  #endJob: (() => void) | undefined;

  constructor(context: TurnContext, envelope: SocketEnvelope) {
    this.#context = context;
    this.#ctx = contextOfTurn(context.ctx);
    this.#envelope = envelope;
    this.#waits = new ClientConnection(context.ctx.res, context.services.handover);
    this.responseId = `resp_${this.#ctx.state.jobId}`;
  }

  /** Runs to its end; errors are sent to the client. Keeps no reference to the request, which may be large, while its job runs. */
  run(parsed: ParsedMessage): Promise<void> {
    return this.#run(this.#begin(parsed), parsed.requirements.previousResponseId);
  }

  async #run(beginning: Promise<BegunTurn | undefined>, previous: string | undefined): Promise<void> {
    const { services, cache, connection } = this.#context;
    const { state } = this.#ctx;
    const { streamId } = this.#envelope;
    let status = 200;
    try {
      const begun = await beginning;
      if (begun !== undefined) await this.#follow(begun);
    } catch (thrown) {
      const error = ApiError.from(thrown);
      logFault(services.log, state, error);
      state.streamError = error;
      status = error.status;
      connection.send([errorMessage(error, streamId)]);
    } finally {
      this.#waits.close();
    }
    const hasFailed = state.streamError !== undefined && state.streamError.code !== 'cancelled';
    if (hasFailed && previous !== undefined) cache.evict(streamId, previous);
    recordRequest(services, this.#ctx, status);
  }

  /** Cancels the request: its job, if there is one, ends cancelled, which is sent to the client. */
  cancel(): void {
    this.#isCancelled = true;
    this.#endJob?.();
  }

  /** Its client has disconnected. */
  leave(): void {
    this.#waits.leave();
  }

  /** Queues its job; answers a warm-up, which has none. */
  async #begin(read: ParsedMessage): Promise<BegunTurn | undefined> {
    const { services, endpoint } = this.#context;
    const { state } = this.#ctx;
    const { refusal, generate } = this.#envelope;
    if (refusal !== undefined) throw ApiError.fromData(refusal);
    services.busyLoop.assertRoom();
    state.caller = await this.#waits.wait(services.callers.findAgain(state.caller), readMs);
    const { account } = state.caller;
    const continued = this.#continue(read);
    const assertActive = async (): Promise<void> => {
      state.caller = await this.#waits.wait(services.callers.assertActive(state.caller), readMs);
    };
    const share = shareOfReads(services.bodies, state.caller);
    try {
      const asking = { services, account, params: {}, connection: this.#waits, share, assertActive };
      const parsed = (await endpoint.resolve?.(continued, asking)) ?? continued;
      const checked = await this.#waits.wait(checkByNewestKey(services, endpoint, parsed, state), readMs);
      const ignored = ignoredByAll(checked);
      if (ignored) state.facts.ignored = ignored;
      if (generate) return await this.#submit(withCheck(parsed, checked), share);
      await this.#warmUp(parsed);
      return undefined;
    } finally {
      share.close();
    }
  }

  /** Prepends a conversation that this connection has cached; others come from the store. */
  #continue(parsed: ParsedResponse): ParsedResponse {
    const previous = parsed.requirements.previousResponseId;
    const known = previous === undefined ? undefined : this.#context.cache.find(previous);
    if (known === undefined) return parsed;
    const items = conversationItems(known);
    const continued = {
      ...parsed,
      hasMedia: parsed.hasMedia || known.hasMedia,
      requirements: { ...parsed.requirements, previousResponseId: undefined },
    } as ParsedResponse;
    return continuing(continued, { ...known, items });
  }

  async #submit(parsed: ParsedResponse, share: BodyShare): Promise<BegunTurn> {
    const { services, endpoint, preferences, cache } = this.#context;
    const submission = await describeJob(this.#ctx, services, endpoint, { parsed, bodyHash: '', share }, preferences);
    const { job } = submission;
    const viewed = viewedTurn(this.#context, job, parsed);
    if (this.#isCancelled) throw cancelled();
    const { request, hasMedia } = parsed;
    const kept = cache.reserve(request.length) ? { request, hasMedia } : undefined;
    const reply = this.#open(viewed, kept !== undefined);
    const reader = services.readers.open(job, reply, {
      onServed: (served) => showServed(this.#ctx, served),
      isCreator: true,
    });
    const begun = { submission, viewed, kept, reply, reader };
    try {
      await admitAndEnqueue(services, submission, this.#waits);
      return begun;
    } catch (error) {
      this.#close(begun);
      throw error;
    }
  }

  /** Sends the answer of its job to the end. */
  async #follow(begun: BegunTurn): Promise<void> {
    const { services, endpoint } = this.#context;
    const { submission, viewed, kept, reply, reader } = begun;
    const { job } = submission;
    const context = { ctx: this.#ctx, services, connection: this.#waits, job, view: endpoint.view, isCreator: true };
    try {
      this.#mayCancel(job);
      reader.begin(new WaitLimits(services, job, reply, { ownDeadlineAt: submission.ownDeadlineAt, endsJob: true }));
      await sendStreamed(context, reply);
    } catch (error) {
      await cancelAbandoned(services, submission, this.#waits, { canBeResumed: () => reply.isOpen });
      throw error;
    } finally {
      this.#close(begun);
    }
    if (kept !== undefined) this.#remember(viewed, kept, reply);
  }

  #close({ submission, kept, reply, reader }: BegunTurn): void {
    const { services, cache } = this.#context;
    reader.close();
    reply.abandon();
    if (reader.failure !== undefined) cancelUnreadable(services, submission, reader.failure);
    // What is cached is counted there.
    cache.release((kept?.request.length ?? 0) + reply.reserved);
  }

  /** From now on the job can be cancelled, which its client may have requested already. */
  #mayCancel(job: JobIdentity): void {
    const { services } = this.#context;
    this.#endJob = () => void tryToEnd(services, job, cancelled());
    if (this.#isCancelled) this.#endJob();
  }

  async #warmUp(parsed: ParsedResponse): Promise<void> {
    const { services } = this.#context;
    const { state } = this.#ctx;
    state.caller = await this.#waits.wait(services.callers.assertActive(state.caller), readMs);
    state.facts.model = parsed.model;
    state.facts.warm_up = true;
    const { echo } = parsed.viewOptions;
    // It cannot be found elsewhere, whatever the request sets.
    const viewOptions = { ...parsed.viewOptions, echo: { ...echo, store: false } };
    const job = { id: state.jobId, model: parsed.model, createdAt: Date.now() };
    const viewed = viewedTurn(this.#context, job, { viewOptions });
    const reply = this.#open(viewed, true);
    reply.frame(emptyEnd);
    reply.flush();
    this.#context.cache.release(reply.reserved);
    this.#remember(viewed, parsed, reply);
  }

  /** @param isKept whether the answer's frames are kept, to be continued */
  #open(viewed: ViewedJob<ResponseViewOptions>, isKept: boolean): ResponseSocketReply {
    const { endpoint, connection, cache } = this.#context;
    const { view } = endpoint;
    const { streamId } = this.#envelope;
    return new ResponseSocketReply({
      connection,
      streamId,
      events: socketEvents(viewed),
      view,
      keptLength: isKept ? largestBody : 0,
      reserve: (characters) => cache.reserve(characters),
    });
  }

  /** Caches what the next turn needs. */
  #remember(
    viewed: ViewedJob<ResponseViewOptions>,
    { request, hasMedia }: Pick<ParsedResponse, 'request' | 'hasMedia'>,
    reply: ResponseSocketReply,
  ): void {
    const frames = reply.kept;
    if (frames === undefined) return;
    const { cache, endpoint } = this.#context;
    const { output } = JSON.parse(endpoint.view.held(forNextTurn(viewed), frames)) as { output: unknown };
    const { media, affinity, afterInput } = viewed.viewOptions;
    const response = { id: this.responseId, request, afterInput, output: JSON.stringify(output) };
    cache.keep(this.#envelope.streamId, { ...response, hasMedia, media, affinity });
  }
}

function cancelled(): ApiError {
  return new ApiError('cancelled', 'The response was cancelled by its owner.');
}
