import type { ToolCall } from './chat-request.ts';

/** The answer received so far. */
export interface ChatAnswer {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: string | undefined;
}

export const emptyAnswer: ChatAnswer = { text: '', reasoning: '', toolCalls: [], finishReason: undefined };

interface WireCall {
  readonly index?: number;
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

interface WireMessage {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly WireCall[];
}

interface WireChoice {
  readonly index: number;
  readonly delta?: WireMessage;
  readonly message?: WireMessage;
  readonly finish_reason?: string | null;
}

/** A chunk of a stream, or a whole completion. An `error` is the last message of a failed stream. */
export interface WireCompletion {
  readonly choices?: readonly WireChoice[];
  readonly error?: { readonly message: string; readonly code?: string };
}

/** The answer with one more chunk (or the whole completion) of its first choice. */
export function withCompletion(answer: ChatAnswer, { choices }: WireCompletion): ChatAnswer {
  const choice = choices?.find(({ index }) => index === 0);
  const message = choice?.delta ?? choice?.message;
  if (choice === undefined) return answer;
  return {
    text: answer.text + (message?.content ?? ''),
    reasoning: answer.reasoning + (message?.reasoning_content ?? ''),
    toolCalls: withCalls(answer.toolCalls, message?.tool_calls ?? []),
    finishReason: choice.finish_reason ?? answer.finishReason,
  };
}

/** Calls arrive in pieces: the first one names the call, the others append to its arguments. */
function withCalls(calls: readonly ToolCall[], pieces: readonly WireCall[]): readonly ToolCall[] {
  if (pieces.length === 0) return calls;
  const all = [...calls];
  for (const [position, { index = position, id, function: called }] of pieces.entries()) {
    const call = all[index] ?? { id: '', name: '', arguments: '' };
    all[index] = {
      id: id ?? call.id,
      name: call.name + (called?.name ?? ''),
      arguments: call.arguments + (called?.arguments ?? ''),
    };
  }
  return all;
}
