import type OpenAI from 'openai';

/** What one choice of an answer says, whichever form it came in. */
export interface Said {
  readonly index: number;
  content: string | null;
  reasoning: string;
  finish: string | null;
  readonly tools: { id: string; name: string; arguments: string }[];
  readonly logprobs: unknown[];
}

type Reasoning = { reasoning_content?: string | null };

/** The choices of a held answer. */
export function saidWhole(completion: OpenAI.Chat.ChatCompletion): Said[] {
  return completion.choices.map(({ index, message, finish_reason: finish, logprobs }) => ({
    index,
    content: message.content,
    reasoning: (message as Reasoning).reasoning_content ?? '',
    finish,
    tools: (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.type === 'function' ? call.function.name : call.custom.name,
      arguments: call.type === 'function' ? call.function.arguments : call.custom.input,
    })),
    logprobs: logprobs?.content ?? [],
  }));
}

/** The choices that the chunks of a streamed answer add up to: a fold of its own, apart from the gateway's. */
export function saidInChunks(chunks: Iterable<OpenAI.Chat.ChatCompletionChunk>): Said[] {
  const said: Said[] = [];
  for (const { choices } of chunks) {
    for (const choice of choices) {
      said[choice.index] ??= {
        index: choice.index,
        content: null,
        reasoning: '',
        finish: null,
        tools: [],
        logprobs: [],
      };
      add(said[choice.index] as Said, choice);
    }
  }
  return said;
}

function add(said: Said, { delta, finish_reason: finish, logprobs }: OpenAI.Chat.ChatCompletionChunk.Choice): void {
  if (typeof delta.content === 'string') said.content = (said.content ?? '') + delta.content;
  said.reasoning += (delta as Reasoning).reasoning_content ?? '';
  for (const call of delta.tool_calls ?? []) {
    said.tools[call.index] ??= { id: call.id ?? '', name: call.function?.name ?? '', arguments: '' };
    (said.tools[call.index] as { arguments: string }).arguments += call.function?.arguments ?? '';
  }
  said.logprobs.push(...(logprobs?.content ?? []));
  said.finish = finish ?? said.finish;
}
