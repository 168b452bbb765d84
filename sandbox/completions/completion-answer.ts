import { composeAnswer } from '../chat/chat-answer.ts';
import { tokenLogprob } from '../chat/logprobs.ts';
import { type PromptCache, PromptReader } from '../prompt-cache.ts';
import { splitTokens, textStart } from '../tokens.ts';
import type { CompletionRequest } from './completion-request.ts';

/** One choice of a completion, as tokens; an echoed prompt's come first. */
export interface CompletionChoice {
  index: number;
  tokens: readonly string[];
  /** Offset of the first token in the prompt and its continuation, in characters. */
  firstOffset: number;
  finishReason: 'stop' | 'length';
}

/** A legacy completion's answer and usage. */
export interface CompletionAnswer {
  choices: readonly CompletionChoice[];
  usage: CompletionUsage;
  /** The pace that a prompt requests; undefined if none does. */
  tokensPerSecond: number | undefined;
}

/** Tokens of one call, as OpenAI's `usage` names them. */
interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number; audio_tokens: 0 };
}

const QUOTED_SUFFIX = 40;

/** Composes the answer: each prompt is continued with the sandbox chat's reply to it. */
export function composeCompletion(request: CompletionRequest, cache: PromptCache): CompletionAnswer {
  const choices: CompletionChoice[] = [];
  let promptTokens = 0;
  let cachedTokens = 0;
  let completionTokens = 0;
  let tokensPerSecond: number | undefined;
  for (const { text, tokens } of request.prompts) {
    const candidates = continuations(request, text);
    tokensPerSecond ??= candidates.tokensPerSecond;
    completionTokens += candidates.all.reduce((sum, candidate) => sum + candidate.tokens.length, 0);
    promptTokens += tokens;
    cachedTokens += cachedTokensOf(request, text, cache);
    for (const candidate of best(candidates.all, request.choices)) {
      const echoed = request.echo ? splitTokens(text) : [];
      choices.push({
        index: choices.length,
        tokens: [...echoed, ...candidate.tokens],
        firstOffset: request.echo ? 0 : [...text].length,
        finishReason: candidate.finishReason,
      });
    }
  }
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: Math.min(cachedTokens, promptTokens), audio_tokens: 0 as const },
  };
  return { choices, usage, tokensPerSecond };
}

interface Candidate {
  tokens: readonly string[];
  finishReason: 'stop' | 'length';
}

function continuations(request: CompletionRequest, text: string) {
  const before = request.suffix === '' ? '' : `(to stand before "${textStart(request.suffix, QUOTED_SUFFIX)}") `;
  const answer = composeAnswer(
    {
      ...request,
      messages: [{ role: 'user', content: before + text }],
      choices: request.bestOf,
      topLogprobs: undefined,
      tools: { offered: undefined, allowed: [], mode: 'none', parallel: false },
      responseFormat: { type: 'text' },
      reasoningEffort: 'none',
    },
    '',
  );
  const all = answer.choices.map(({ content, finishReason }): Candidate => {
    return { tokens: content ?? [], finishReason: finishReason === 'length' ? 'length' : 'stop' };
  });
  return { all, tokensPerSecond: answer.tokensPerSecond };
}

/** The candidates with the highest log probability per token, in order of creation if equal. */
function best(candidates: readonly Candidate[], count: number): readonly Candidate[] {
  if (candidates.length <= count) return candidates;
  const mean = ({ tokens }: Candidate): number => {
    return tokens.reduce((sum, token) => sum + tokenLogprob(token, 0).logprob, 0) / Math.max(1, tokens.length);
  };
  return candidates.toSorted((one, other) => mean(other) - mean(one)).slice(0, count);
}

function cachedTokensOf(request: CompletionRequest, text: string, cache: PromptCache): number {
  const reader = new PromptReader(request.model.id);
  reader.addText(text);
  return cache.cachedTokens(reader);
}
