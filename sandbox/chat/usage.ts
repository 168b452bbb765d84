import { isAbsent } from '../json-value.ts';
import { type PromptCache, PromptReader } from '../prompt-cache.ts';
import type { ChatAnswer, ChoiceAnswer } from './chat-answer.ts';
import type { ChatMessage, ContentPart } from './chat-message.ts';
import type { ChatRequest } from './chat-request.ts';

/** Every message costs this much in addition to its text, and the start of the answer costs three: OpenAI's own rule. */
const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_ANSWER = 3;
const TOKENS_PER_ATTACHMENT = 85;

/** Tokens of one call, as OpenAI's `usage` names them. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number; audio_tokens: 0 };
  completion_tokens_details: {
    reasoning_tokens: number;
    audio_tokens: 0;
    accepted_prediction_tokens: 0;
    rejected_prediction_tokens: 0;
  };
}

/** Counts a call's tokens, and adds the prompt to the cache. */
export function countUsage(request: ChatRequest, answer: ChatAnswer, cache: PromptCache): Usage {
  const prompt = readPrompt(request);
  let completion = 0;
  let reasoning = 0;
  for (const choice of answer.choices) {
    completion += countTokens(choice);
    reasoning += choice.reasoning.length;
  }
  const promptTokens = prompt.tokens + request.messages.length * TOKENS_PER_MESSAGE + TOKENS_PER_ANSWER;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completion,
    total_tokens: promptTokens + completion,
    prompt_tokens_details: { cached_tokens: cache.cachedTokens(prompt), audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

function countTokens(choice: ChoiceAnswer): number {
  let tokens = choice.reasoning.length + (choice.content?.length ?? 0);
  for (const call of choice.calls) tokens += 1 + call.input.length;
  return tokens;
}

function readPrompt(request: ChatRequest): PromptReader {
  const prompt = new PromptReader(request.model.id);
  if (request.tools.offered !== undefined) prompt.addText(JSON.stringify(request.tools.offered));
  for (const message of request.messages) readMessage(prompt, message);
  return prompt;
}

function readMessage(prompt: PromptReader, message: ChatMessage): void {
  prompt.addOpaque(message.role, 0);
  if (typeof message.content === 'string') prompt.addText(message.content);
  else for (const part of message.content) readPart(prompt, part);
  if (!isAbsent(message.tool_calls)) prompt.addText(JSON.stringify(message.tool_calls));
  if (!isAbsent(message.function_call)) prompt.addText(JSON.stringify(message.function_call));
}

function readPart(prompt: PromptReader, part: ContentPart): void {
  if (part.type === 'text') prompt.addText(part.text);
  else if (part.type === 'refusal') prompt.addText(part.refusal);
  else prompt.addOpaque(attachmentIdentity(part), TOKENS_PER_ATTACHMENT);
}

/** Enough to distinguish two attachments: hashing megabytes of base64 would cost tens of milliseconds. */
function attachmentIdentity(part: ContentPart): string {
  const data =
    part.type === 'image_url'
      ? part.image_url.url
      : part.type === 'input_audio'
        ? part.input_audio.data
        : JSON.stringify(part);
  return `${part.type} ${data.length} ${data.slice(0, 2048)} ${data.slice(-2048)}`;
}
