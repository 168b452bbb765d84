import type OpenAI from 'openai';

/** What one choice of a legacy completion says, whichever form it came in. */
export interface SaidInCompletion {
  readonly index: number;
  text: string;
  finish: string | null;
  /** Null where no chunk brought any. */
  logprobs: Required<OpenAI.CompletionChoice.Logprobs> | null;
}

/** The choices that completions, whole or in chunks, add up to: a fold of its own, apart from the gateway's. */
export function saidInCompletions(completions: Iterable<Pick<OpenAI.Completion, 'choices'>>): SaidInCompletion[] {
  const said: SaidInCompletion[] = [];
  for (const { choices } of completions) {
    for (const { index, text, finish_reason: finish, logprobs } of choices) {
      said[index] ??= { index, text: '', finish: null, logprobs: null };
      const choice = said[index] as SaidInCompletion;
      choice.text += text;
      choice.finish = finish ?? choice.finish;
      if (!logprobs) continue;
      choice.logprobs ??= { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
      choice.logprobs.tokens.push(...(logprobs.tokens ?? []));
      choice.logprobs.token_logprobs.push(...(logprobs.token_logprobs ?? []));
      choice.logprobs.top_logprobs.push(...(logprobs.top_logprobs ?? []));
      choice.logprobs.text_offset.push(...(logprobs.text_offset ?? []));
    }
  }
  return said;
}
