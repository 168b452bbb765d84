import type { CompletionRequest } from '../../shared/capabilities/completion.ts';
import { ApiError } from '../../shared/errors.ts';
import { requestText } from '../vendors/request-body.ts';
import { interrupted } from '../vendors/support/interrupted.ts';
import { sumOfAll } from '../vendors/support/sum-usage.ts';
import type { FrameSink, VendorAnswer, VendorFrame } from '../vendors/vendor.ts';
import { inCallersNames } from './callers-names.ts';
import { ChatAsCompletion, toChatRequest } from './chat-as-completion.ts';
import { asSent, callOnce, countSent, type Execute, type Execution, methodOf } from './execution.ts';
import { runInOrder } from './run-in-order.ts';

/** Concurrent chats of one job. */
const chatsAtOnce = 4;

/** Limit of all buffered answers together, in characters; a single one may be as long. */
const maxAnswer = 64 * 1024 * 1024;

/** A legacy completion: the vendor's own if the model has one, else one chat per prompt. */
export const executeCompletion: Execute = async (execution) => {
  const { vendor, row, call, sink } = execution;
  if (row.legacyCompletions) return await methodOf(vendor, 'complete')(call, sink);
  return await completeByChats(execution);
};

async function completeByChats({ vendor, call, sink, part = callOnce }: Execution): Promise<VendorAnswer> {
  const chat = methodOf(vendor, 'chat');
  const job = JSON.parse(requestText(call.request)) as CompletionRequest;
  const prompts = promptsOf(job);
  const output = { hasFrames: false };
  const sent = countSent(call);
  let length = 0;
  const answers = await runInOrder(prompts, chatsAtOnce, call.signal, async (prompt, index, signal) => {
    const translator = new ChatAsCompletion(job, prompt, index * (job.n ?? 1));
    const own = new TranslatingSink(sink, translator, output);
    const asked = { ...call, request: toChatRequest(job, prompt), signal, run: undefined };
    const answering = part(
      asSent(sent, { inputs: [index], signal, hasOutput: () => own.isStarted }, () => chat(asked, own)),
      signal,
      () => !own.isStarted,
    );
    const answer = await answering.catch((thrown) => {
      const error = inCallersNames(thrown, completionNames);
      throw own.isStarted || !output.hasFrames ? error : interrupted(error);
    });
    length += answer.body.length;
    if (length > maxAnswer) throw new ApiError('server_error', 'The answers to all prompts are too long to be held.');
    return { ...answer, choices: call.stream ? [] : translator.whole(answer.body) };
  });
  const usages = answers.map((answer) => answer.usage);
  const usage = sumOfAll(usages, false);
  const calls = usage === null ? undefined : usages.filter((each) => each !== null);
  const tier = new Set(answers.map((answer) => answer.tier));
  const counted = { usage, ...(calls && { calls }), tier };
  if (call.stream) return { body: JSON.stringify({ usage }), ...counted };
  const choices = answers.flatMap((answer) => answer.choices).sort((one, other) => one.index - other.index);
  return { body: JSON.stringify({ choices, ...(usage !== null && { usage }) }), ...counted };
}

/** The names of a chat's fields in a completion, if they differ. */
const completionNames = new Map([
  ['messages', 'prompt'],
  ['max_completion_tokens', 'max_tokens'],
  ['top_logprobs', 'logprobs'],
]);

/** The prompts as texts. @throws ApiError for others, which the endpoint's check should have rejected. */
function promptsOf({ prompt }: CompletionRequest): readonly string[] {
  const prompts = typeof prompt === 'string' ? [prompt] : (prompt ?? []);
  if (prompts.length > 0 && prompts.every((each) => typeof each === 'string')) return prompts;
  throw new ApiError('invalid_request_error', 'The model takes no prompt but a string or an array of strings.', {
    param: 'prompt',
  });
}

/** Passes each chunk of a chat on as a completion's. */
class TranslatingSink implements FrameSink {
  /** Whether the chat has produced anything: then its vendor call classifies its own failure. */
  isStarted = false;
  readonly #sink: FrameSink;
  readonly #translator: ChatAsCompletion;
  readonly #output: { hasFrames: boolean };

  /** @param output is set once anything goes into the sink. */
  constructor(sink: FrameSink, translator: ChatAsCompletion, output: { hasFrames: boolean }) {
    this.#sink = sink;
    this.#translator = translator;
    this.#output = output;
  }

  write({ type, text }: VendorFrame): boolean {
    this.isStarted = true;
    const shown = this.#translator.chunk(text);
    if (shown === undefined) return true;
    this.#output.hasFrames = true;
    return this.#sink.write({ type, text: shown });
  }

  drained(): Promise<void> {
    return this.#sink.drained();
  }
}
