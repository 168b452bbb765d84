import { tokenLogprob } from '../chat/logprobs.ts';
import type { Part } from '../media-answer.ts';
import type { CompletionAnswer, CompletionChoice } from './completion-answer.ts';
import type { CompletionRequest } from './completion-request.ts';

/** The data shared by all chunks of one completion, and the facts that its serialization depends on. */
export interface Completion {
  id: string;
  /** Unix seconds. */
  created: number;
  request: CompletionRequest;
  answer: CompletionAnswer;
}

function envelope({ id, created, request }: Completion) {
  return { id, object: 'text_completion', created, model: request.model.id, system_fingerprint: 'fp_sandbox' };
}

/**
 * The body of a non-streamed answer: CreateCompletionResponse as JSON text.
 * @param reportsUsage `false`: it is left out
 */
export function completionBody(completion: Completion, reportsUsage: boolean): string {
  const { request, answer } = completion;
  return JSON.stringify({
    ...envelope(completion),
    choices: answer.choices.map(({ index, tokens, firstOffset, finishReason }) => ({
      text: tokens.join(''),
      index,
      logprobs: toLogprobs(tokens, firstOffset, request.logprobs),
      finish_reason: finishReason,
    })),
    ...(reportsUsage && { usage: answer.usage }),
  });
}

/** All events of a streamed answer; the tokens of several choices alternate. */
export async function* completionParts(completion: Completion, withDone: boolean): AsyncGenerator<Part> {
  const { request, answer } = completion;
  const head = envelope(completion);
  const event = (choices: object[], usage: object | null): string => {
    // With include_usage every chunk has the field, and only the last one has a value in it.
    return `data: ${JSON.stringify({ ...head, choices, ...(request.includeUsage && { usage }) })}\n\n`;
  };
  let left = answer.choices.map((choice) => choiceChunks(choice, request.logprobs));
  while (left.length > 0) {
    const unfinished: typeof left = [];
    for (const chunks of left) {
      const { value, done } = chunks.next();
      if (done) continue;
      yield { data: event([value], null), counts: value.text !== '' };
      unfinished.push(chunks);
    }
    left = unfinished;
  }
  if (request.includeUsage) yield { data: event([], answer.usage), counts: false };
  if (withDone) yield { data: 'data: [DONE]\n\n', counts: false };
}

function* choiceChunks({ index, tokens, firstOffset, finishReason }: CompletionChoice, logprobs: number | undefined) {
  let offset = firstOffset;
  for (const token of tokens) {
    yield { text: token, index, logprobs: toLogprobs([token], offset, logprobs), finish_reason: null };
    offset += [...token].length;
  }
  yield { text: '', index, logprobs: null, finish_reason: finishReason };
}

function toLogprobs(tokens: readonly string[], firstOffset: number, count: number | undefined) {
  if (count === undefined || tokens.length === 0) return null;
  let offset = firstOffset;
  const all = tokens.map((token) => {
    const start = offset;
    offset += [...token].length;
    return { ...tokenLogprob(token, count), start };
  });
  return {
    tokens: all.map(({ token }) => token),
    token_logprobs: all.map(({ logprob }) => logprob),
    top_logprobs: all.map(({ token, logprob, top_logprobs: others }) => {
      return { [token]: logprob, ...Object.fromEntries(others.map((other) => [other.token, other.logprob])) };
    }),
    text_offset: all.map(({ start }) => start),
  };
}
